"""Reads torch's operator schemas through torchgen, the only module that does, and distils what the generator needs.

As a program it takes the three files, and prints `name<tab>json` for each overload.
"""

import json
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torchgen.api import structured
from torchgen.api.cpp import return_names
from torchgen.api.meta import name as meta_name
from torchgen.api.translate import translate
from torchgen.api.types import DispatcherSignature
from torchgen.context import native_function_manager
from torchgen.gen import get_grouped_native_functions, parse_native_yaml
from torchgen.model import Argument, DeviceCheckType, DispatchKey, NativeFunction, NativeFunctionsGroup, SelfArgument

Record = dict[str, Any]


def distilled(native_functions: Path, tags: Path, derivatives: Path) -> dict[str, Record]:
    """Every overload by its name (e.g. "add.out"), as values that JSON can hold.

    The keys of a record are the fields of `model.aten.Overload`; `cpp` holds those of `model.aten.Signature`.
    """
    parsed = parse_native_yaml(str(native_functions), str(tags))
    differentiable = _differentiable(derivatives)
    cpu = parsed.backend_indices[DispatchKey.CPU]
    records: dict[str, Record] = {}
    for entry in get_grouped_native_functions(parsed.native_functions):
        group = entry if isinstance(entry, NativeFunctionsGroup) and entry.structured else None
        members = tuple(entry.functions()) if isinstance(entry, NativeFunctionsGroup) else (entry,)
        host = any(cpu.has_kernel(m) or (_composite(m) and "generated" not in m.tags) for m in members)
        for function in members:
            with native_function_manager(function):
                name = str(function.func.name)
                records[name] = _record(function, group, name in differentiable, host)
    return dict(sorted(records.items()))


def _differentiable(derivatives: Path) -> frozenset[str]:
    """The overloads with a derivative formula: torch differentiates them whichever kernel computes them."""
    heads = (line for line in derivatives.read_text(encoding="utf-8").splitlines() if line.startswith("- name: "))
    return frozenset(head.removeprefix("- name: ").partition("(")[0].strip() for head in heads)


def _record(function: NativeFunction, group: NativeFunctionsGroup | None, differentiable: bool, host: bool) -> Record:
    if not (function.structured or function.structured_delegate):
        group = None
    composite = _composite(function)
    delegate = function.structured_delegate is not None
    return {
        "args": list(_args(function)),
        "returns": list(_returns(function)),
        "provision": (
            "structured" if function.structured else "delegate" if delegate else "composite" if composite else "plain"
        ),
        "group": str(group.out.func.name) if group is not None else None,
        "composite_kernel": composite or delegate,
        # A member of a structured group (silu_backward) has a derivative of its own, or is called without one; a
        # form that writes into `out` has none.
        "implicit": function.has_composite_implicit_autograd_kernel
        and not (delegate or differentiable or function.func.is_out_fn()),
        "view": function.is_view_op,
        "host": host,
        "pointwise": "pointwise" in function.tags,
        "one_device": function.device_check is DeviceCheckType.ExactSame and not composite,
        "cpp": _signature(function, group),
    }


def _composite(function: NativeFunction) -> bool:
    return bool(
        function.has_composite_implicit_autograd_kernel
        or function.has_composite_explicit_autograd_kernel
        or function.has_composite_explicit_autograd_non_functional_kernel
    )


def _args(function: NativeFunction) -> Iterator[list[Any]]:
    arguments = function.func.arguments
    keyword = {id(a) for a in arguments.flat_kwarg_only}
    out = {id(a) for a in arguments.out}
    for arg in _plain_arguments(arguments.flat_all):
        yield [arg.name, str(arg.type), arg.default, id(arg) in keyword, id(arg) in out, arg.is_write]


def _plain_arguments(arguments: Sequence[Any]) -> Iterator[Argument]:
    for arg in arguments:
        yield arg.argument if isinstance(arg, SelfArgument) else arg


def _returns(function: NativeFunction) -> Iterator[list[Any]]:
    names = return_names(function)
    for ret, name in zip(function.func.returns, names, strict=True):
        yield [ret.name if ret.name is not None else name, str(ret.type), ret.annotation is not None]


def _signature(function: NativeFunction, group: NativeFunctionsGroup | None) -> Record:
    """The kernel takes plain integers; `at::_ops` takes SymInt, so redispatching needs a translation."""
    kernel = DispatcherSignature.from_schema(function.func, symint=False)
    operator = DispatcherSignature.from_schema(function.func, symint=True)
    context = kernel.arguments()
    return {
        "operator": function.func.name.unambiguous_name(),
        "header": function.root_name,
        "returns": kernel.returns_type().cpp_type(),
        "params": [[b.nctype.type.cpp_type(), b.name] for b in context],
        "redispatch": [e.expr for e in translate(context, operator.arguments(), method=False)],
        "meta": meta_name(group) if group is not None else None,
        "meta_args": (
            [e.expr for e in translate(context, structured.meta_arguments(group), method=False)]
            if group is not None
            else []
        ),
        "iterator": group is not None and group.out.structured_inherits == "TensorIteratorBase",
    }


def _main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # of whoever asked and is no more
    for name, record in distilled(*map(Path, sys.argv[1:])).items():
        print(name, json.dumps(record, separators=(",", ":")), sep="\t")


if __name__ == "__main__":
    _main()

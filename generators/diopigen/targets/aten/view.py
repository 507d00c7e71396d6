"""What the wrapper templates lay out: one view for each source file."""

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from textwrap import wrap

from diopigen.c_spelling import c_signature
from diopigen.model.aten import Binding, Drifted, FromArg
from diopigen.model.op import Function, Op, Role
from diopigen.model.program import Program
from diopigen.targets.aten.calls import CallView, WrapperCall, call
from diopigen.targets.aten.served import Served
from diopigen.targets.aten.wrappers import Unservable, WrapperView, check, wrapper
from diopigen.targets.cpp.lines import WIDTH, folded
from diopigen.text import wrapped

SHARDS = 8  # files; an op's wrappers stay together, and an op that is added or changed compiles one file


@dataclass(frozen=True, slots=True, kw_only=True)
class OpView:
    """The wrappers of one op of the schemas."""

    title: tuple[str, ...]  # a comment: ("// add: add.Tensor, add.out, add_.Tensor",)
    calls: tuple[CallView, ...]
    wrappers: tuple[WrapperView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileView:
    index: int  # e.g. 3
    includes: tuple[str, ...]  # e.g. ("ATen/ops/add_meta.h", "ATen/ops/add_ops.h")
    declarations: tuple[str, ...]  # e.g. ("DIOPI_API diopiError_t diopiAdd(...);",): of the C functions that it reaches
    functions: tuple[str, ...]  # e.g. ('constinit VendorFunction<decltype(::diopiAdd)> diopiAdd{{"diopiAdd"}};',)
    ops: tuple[OpView, ...]
    wrappers: tuple[WrapperView, ...]  # in the order of registration: alike signatures together


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentWriteView:
    overload: str  # e.g. "native_batch_norm"
    argument: str  # e.g. "running_mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationView:
    files: tuple[str, ...]  # e.g. ("register_operators_0", "register_optimizer")
    derivations: tuple[str, ...]  # e.g. ("derive_rounding", "derive_padding")
    drifted: tuple[tuple[str, ...], ...]  # e.g. (('{"gelu", "torch 2.14 has no such operator; ..."},',),)
    silent: tuple[SilentWriteView, ...]  # what an op calls inout and torch's schema does not
    one_device: tuple[str, ...]  # e.g. ("bucketize.Tensor",): torch refuses tensors of two devices


def shard(op: str) -> int:
    """The file that holds the wrappers of `op`; the same in every process and on every machine."""
    return zlib.crc32(op.encode()) % SHARDS


def shards(program: Program) -> Iterator[tuple[int, Program]]:
    """Each with all that its file is written from; an empty one, too, so that the list of files never changes."""
    functions = {f.symbol: f for f in program.functions}
    reached: dict[str, dict[str, None]] = {}
    for binding in program.bindings:
        owners = (functions[route.symbol].op for route in binding.routes)
        reached.setdefault(binding.op, {}).update(dict.fromkeys(owners))
    for index in range(SHARDS):
        ops = [op for op in program.ops if op.name in reached and shard(op.name) == index]
        beside = (other for op in ops for name in reached[op.name] if (other := program.op(name)) is not None)
        yield index, program.part(ops, beside)


def file_view(program: Program, index: int) -> FileView:
    """Of one shard."""
    functions = {f.symbol: f for f in program.functions}
    served: dict[str, list[Served]] = {}
    for binding in program.bindings:
        if binding.wrapper is None:
            served.setdefault(binding.op, []).append(_one(binding, functions))
    ops = {op.name: op for op in program.ops}
    return _file_view(index, ops, [(ops[name], served[name]) for name in ops if name in served])


def unservable(program: Program) -> Iterator[tuple[Binding, str]]:
    """Bindings that no wrapper can be written for, each with the reason."""
    functions = {f.symbol: f for f in program.functions}
    ops = {op.name: op for op in program.ops}
    for binding in program.bindings:
        if binding.wrapper is None:
            try:
                for part in _one(binding, functions).by_op():
                    check(part, ops[part.binding.op])
            except Unservable as reason:
                yield binding, str(reason)


def registration_view(program: Program) -> RegistrationView:
    """Every file that registers operators: the shards, and the hand-written wrappers that the schemas name."""
    written = sorted({b.wrapper for b in program.bindings if b.wrapper is not None})
    shards = [f"register_operators_{index}" for index in range(SHARDS)]
    functions = {f.symbol: f for f in program.functions}
    silent = (write for b in program.bindings for write in _silent_writes(b, functions))
    return RegistrationView(
        files=(*shards, *(f"register_{name}" for name in written)),
        derivations=tuple(f"derive_{name}" for name in program.derivations),
        drifted=tuple(_drifted(d) for d in program.drifted),
        silent=tuple(sorted(set(silent), key=lambda w: (w.overload, w.argument))),
        one_device=program.one_device,
    )


def _drifted(drifted: Drifted) -> tuple[str, ...]:
    """An entry of the list, whose reason is folded where it is longer than the line."""
    overload, indent = json.dumps(drifted.overload), 8
    entry = f"{{{overload}, {json.dumps(drifted.reason)}}},"
    if indent + len(entry) <= WIDTH:
        return (entry,)
    parts = wrap(drifted.reason, WIDTH - indent - 6, drop_whitespace=False)
    return (f"{{{overload},", *(f" {json.dumps(part)}" for part in parts[:-1]), f" {json.dumps(parts[-1])}}},")


def _silent_writes(binding: Binding, functions: dict[str, Function]) -> Iterator[SilentWriteView]:
    for route in binding.routes:
        inout = {p.name for p in functions[route.symbol].params if p.role is Role.INOUT}
        for param, source in route.args:
            given = binding.overload.arg(source.name) if isinstance(source, FromArg) else None
            if param in inout and given is not None and not given.mutated:
                yield SilentWriteView(overload=binding.overload.name, argument=given.name)


def _one(binding: Binding, functions: dict[str, Function]) -> Served:
    return Served(binding=binding, functions=tuple(functions[r.symbol] for r in binding.routes))


def _file_view(index: int, ops: Mapping[str, Op], bound: list[tuple[Op, list[Served]]]) -> FileView:
    views = tuple(_op_view(op, bindings, ops) for op, bindings in bound)
    kept = [served for _, bindings in bound for served in bindings]
    stems = {(s.overload.cpp.header, s.overload.cpp.meta is not None) for s in kept}
    includes = sorted({f"ATen/ops/{h}_meta.h" for h, meta in stems if meta} | {f"ATen/ops/{h}_ops.h" for h, _ in stems})
    symbols = sorted({symbol for s in kept for symbol in s.binding.symbols})
    reached = {f.symbol: c_signature(f) for s in kept for f in s.functions}
    signatures = {s.overload.name: (s.overload.cpp.returns, *(t for t, _ in s.overload.cpp.params)) for s in kept}
    wrappers = sorted((w for v in views for w in v.wrappers), key=lambda w: (signatures[w.overload], w.name))
    return FileView(
        index=index,
        includes=tuple(includes),
        declarations=tuple(line for s in sorted(reached) for line in folded(f"DIOPI_API {reached[s]};")),
        functions=tuple(line for symbol in symbols for line in _vendor_function(symbol)),
        ops=views,
        wrappers=tuple(wrappers),
    )


def _op_view(op: Op, bindings: list[Served], ops: Mapping[str, Op]) -> OpView:
    """Overloads whose calls are the same text share one."""
    calls: dict[tuple[object, ...], WrapperCall] = {}
    wrappers: list[WrapperView] = []
    for served in bindings:
        parts: list[tuple[Served, Op, WrapperCall]] = []
        for part in served.by_op():
            own = call(part)
            shared = calls.setdefault((own.params, _body(own.view)), own)
            parts.append((part, ops[part.binding.op], shared))
        wrappers.append(wrapper(parts))
    title = wrapped(f"{op.name}: {', '.join(s.overload.name for s in bindings)}", WIDTH, "// ")
    return OpView(title=title, calls=tuple(c.view for c in calls.values()), wrappers=tuple(wrappers))


def _vendor_function(symbol: str) -> tuple[str, ...]:
    return folded(f'constinit VendorFunction<decltype(::{symbol})> {symbol}{{{{"{symbol}"}}}};')


def _body(view: CallView) -> CallView:
    return replace(view, head=())

"""A call as a C file that needs only the contract's headers, libc and the libraries."""

from dataclasses import dataclass
from typing import Any

from diopi_conformance.process.wire import ON_OTHER_BYTES, OTHER_OUTPUT
from diopi_conformance.repro.c_call import Arguments, argument_type
from diopi_conformance.repro.c_text import PLAIN, comment, identifier, listed, real, string, whole
from diopi_conformance.repro.example import Example, Expectation, Host, Made, Tensor
from diopi_conformance.repro.python_file import FileHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorView:
    """Each field as C text; names of arrays that are not there are NULL."""

    c: str  # e.g. "input", "tensors_2"
    name: str  # with its quotes
    dtype: str
    number: int
    role: str
    ndim: int
    sizes: str
    strides: str
    strides_name: str
    offset: int
    elements: int
    unwritten: str
    before: str
    before_name: str
    count: int
    values: str
    values_name: str
    bounds: str
    bounds_name: str
    choices: str
    choices_name: str
    first: str
    first_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    c: str
    name: str
    type: str
    actual: str  # the number as int64_t or double
    values: str
    bounds: str
    choices: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CView:
    vendor: str
    symbol: str
    case: str
    reason: str
    file: str
    program: str
    include: str
    runtime: str
    library: str
    seconds: int
    tensors: tuple[TensorView, ...]
    given: int
    allocated: int
    host: tuple[HostView, ...]
    types: str
    declarations: tuple[str, ...]
    arguments: str
    fresh: str
    calls: int
    other_output: int
    on_other_bytes: str


def c_view(example: Example, about: FileHeader, include: str) -> CView:
    """What the template lays out; `include` is the folder of the contract's headers. Raises Unwritable."""
    room = Arguments(example)
    arguments = ["context", *map(room.argument, example.arguments)]
    return CView(
        vendor=comment(about.vendor),
        symbol=example.symbol,
        case=comment(about.case),
        reason=comment(about.reason),
        file=comment(about.file),
        program=comment(about.file.removesuffix(".c")),
        include=comment(include),
        runtime=string(about.runtime),
        library=string(about.library),
        seconds=about.seconds,
        tensors=(*map(_tensor, example.tensors), *map(_made, example.made)),
        given=len(example.tensors),
        allocated=len(example.made),
        host=tuple(map(_host, example.host)),
        types=", ".join(["diopiContextHandle_t", *map(argument_type, example.arguments)]),
        declarations=tuple(room.declarations),
        arguments=", ".join(arguments),
        fresh=listed(map(str, example.fresh)),
        calls=len(example.fresh),
        other_output=OTHER_OUTPUT,
        on_other_bytes=ON_OTHER_BYTES,
    )


def _tensor(tensor: Tensor) -> TensorView:
    c = identifier(tensor.name, "in" if tensor.role == "input" else "out")
    return TensorView(
        c=c,
        name=string(tensor.name),
        dtype=tensor.dtype,
        number=tensor.number,
        role=tensor.role.upper(),
        ndim=len(tensor.sizes),
        sizes=listed(map(str, tensor.sizes)) or "0",
        strides=listed(map(str, tensor.strides)) or "0",
        strides_name=f"{c}_strides",
        offset=tensor.offset,
        elements=tensor.elements,
        unwritten=str(tensor.unwritten).lower(),
        before=listed(f"0x{byte:02x}" for byte in tensor.before),
        before_name=f"{c}_before" if tensor.before else "NULL",
        **_expected(c, tensor.expectation),
    )


def _made(made: Made) -> TensorView:
    c = identifier(made.name, "made")
    role = ("MAYBE_ABSENT" if made.optional else "ALLOCATED") if made.present else "ABSENT"
    return TensorView(
        c=c,
        name=string(made.name),
        dtype=made.dtype,
        number=made.number,
        role=role,
        ndim=len(made.sizes),
        sizes=listed(map(str, made.sizes)) or "0",
        strides="" if made.strides is None else listed(map(str, made.strides)) or "0",
        strides_name="NULL" if made.strides is None else f"{c}_strides",
        offset=0,
        elements=0,
        unwritten="false",
        before="",
        before_name="NULL",
        **_expected(c, made.expectation),
    )


def _expected(c: str, expectation: Expectation) -> dict[str, Any]:
    starts = [0]
    for choice in expectation.choices:
        starts.append(starts[-1] + len(choice))
    flat = [number for choice in expectation.choices for number in choice]
    texts = {
        "values": listed(map(real, expectation.values)),
        "bounds": listed(map(real, expectation.bounds)),
        "choices": listed(map(whole, flat)),
        "first": listed(map(str, starts)) if flat else "",
    }
    names = {f"{name}_name": f"{c}_{name}" if text else "NULL" for name, text in texts.items()}
    return {**texts, **names, "count": len(expectation.choices) or len(expectation.values)}


def _host(host: Host) -> HostView:
    c = identifier(host.name, "host")
    kind = "unsigned char" if host.kind == "bool" else PLAIN[host.kind]
    choices = host.expectation.choices
    return HostView(
        c=c,
        name=string(host.name),
        type=kind,
        actual=f"({'int64_t' if choices else 'double'}){c}.value",
        values="".join(map(real, host.expectation.values)),
        bounds="".join(map(real, host.expectation.bounds)),
        choices=whole(choices[0][0]) if choices else "",
    )

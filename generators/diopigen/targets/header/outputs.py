"""Which headers there are and what each declares."""

from collections.abc import Callable, Iterator
from functools import partial

from diopigen.model.op import Function
from diopigen.model.program import Program
from diopigen.model.runtime import CFunction
from diopigen.targets.header.view import HeaderView, abi_view, dtypes_view, header_view, operators
from diopigen.targets.output import Part, Piece, Render

_RUNTIME_HEADERS = (
    ("diopirt", "The run-time side of the contract: tensors, contexts, scalars, errors.", ()),
    (
        "diopirt_ext",
        "What a framework may offer beside the contract, and what element types are.",
        ("diopi/diopirt.h",),
    ),
    ("diopi_register", "What a vendor's initLibrary() registers.", ("diopi/diopirt.h",)),
    ("device", "The device table: what a vendor's chip can do.", ("diopi/diopi_register.h",)),
    ("collectives", "The table of collectives: what several chips do together.", ("diopi/diopirt.h",)),
)
_OPERATOR_HEADERS = (
    ("functions", "The operators."),
    ("functions_ext", "Operators of large models: attention, rotary embedding, RMS norm."),
    ("functions_lmdeploy", "Operators of language-model serving."),
    ("functions_mmcv", "Operators of computer vision and point clouds."),
    ("functions_sparse", "Operators on sparse tensors."),
)
ABI = "include/diopi/abi.h"
_OWN_TEMPLATES = ("diopirt", "diopirt_ext", "diopi_register", "device", "collectives", "abi", "dtypes")
_FUNCTIONS = "header/functions.h.j2"
View = Callable[[Program], HeaderView]


def outputs(program: Program, render: Render) -> Iterator[Part]:
    """The headers, under include/diopi; one without operators is left out."""
    for name, part, view in _headers(program):
        template = f"header/{name}.h.j2" if name in _OWN_TEMPLATES else _FUNCTIONS
        yield Part(f"include/diopi/{name}.h", part, partial(_text, template, view, render))


def own_output(program: Program, render: Render) -> Iterator[Part]:
    """The header of the vendor's own operators, where it has any."""
    if (name := program.own_header) is not None:
        vendor = name.removeprefix("functions_")
        view = partial(
            _operators, name=name, doc=f"The operators that only {vendor} has.", source=f"schemas of {vendor}"
        )
        yield Part(f"include/diopi/{name}.h", program.part(program.own()), partial(_text, _FUNCTIONS, view, render))


def pieces(program: Program, render: Render) -> Iterator[Piece]:
    """The declarations of each op."""
    for op in program.ops:
        text = render("header/declarations.h.j2", operators(program.forms(op.name)))
        yield Piece(paths=f"include/diopi/{op.header}.h", text=text)


def views(program: Program) -> Iterator[tuple[str, HeaderView]]:
    """Each header's name and view."""
    return ((name, view(part)) for name, part, view in _headers(program))


def _text(template: str, view: View, render: Render, part: Program) -> str:
    return render(template, view(part))


def _headers(program: Program) -> Iterator[tuple[str, Program, View]]:
    """Each header's name, the part of the program that it is of, and what gives its view."""
    for name, doc, includes in _RUNTIME_HEADERS:
        rest = _runtime_functions(program, name)
        view = partial(header_view, name=name, doc=doc, source="schemas/runtime.yaml", includes=includes, rest=rest)
        yield name, program.part(()), view
    operators = []
    for name, doc in _OPERATOR_HEADERS:
        owners = {f.op for f in program.functions if f.header == name}
        if owners or _runtime_functions(program, name):
            operators.append(name)
            part = program.part(op for op in program.ops if op.name in owners)
            yield name, part, partial(_operators, name=name, doc=doc)
    yield "abi", program, partial(abi_view, headers=tuple(operators))
    yield "dtypes", program.part(()), dtypes_view


def _operators(program: Program, name: str, doc: str, source: str = "schemas/ops") -> HeaderView:
    functions, rest = _functions(program, name), _runtime_functions(program, name)
    return header_view(program, name, doc, source, ("diopi/diopirt.h",), functions, rest)


def _runtime_functions(program: Program, header: str) -> tuple[CFunction, ...]:
    return tuple(f for f in program.runtime.functions if f.header == header)


def _functions(program: Program, header: str) -> tuple[Function, ...]:
    return tuple(f for f in program.functions if f.header == header)

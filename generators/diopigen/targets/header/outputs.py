"""Which headers there are and what each declares."""

from collections.abc import Iterator

from diopigen.model.op import Function
from diopigen.model.program import Program
from diopigen.targets.header.view import HeaderView, abi_view, header_view
from diopigen.targets.output import Output, Render

_OPERATOR_HEADERS = (
    ("functions", "The operators."),
    ("functions_ext", "Operators of large models: attention, rotary embedding, RMS norm."),
    ("functions_lmdeploy", "Operators of language-model serving."),
    ("functions_mmcv", "Operators of computer vision and point clouds."),
    ("functions_sparse", "Operators on sparse tensors."),
)
_OWN_TEMPLATES = ("diopirt", "diopi_register", "device", "abi")


def outputs(program: Program, render: Render) -> Iterator[Output]:
    """The headers, under include/diopi; one without operators is left out."""
    for name, view in views(program):
        template = name if name in _OWN_TEMPLATES else "functions"
        yield Output(path=f"include/diopi/{name}.h", text=render(f"header/{template}.h.j2", view))


def views(program: Program) -> Iterator[tuple[str, HeaderView]]:
    """Each header's name and view."""
    runtime = program.runtime
    by_header = {
        name: tuple(f for f in runtime.functions if f.header == name)
        for name in ("diopirt", "diopi_register", "functions")
    }
    source = "schemas/runtime.yaml"
    yield "diopirt", header_view(
        program,
        "diopirt",
        "The run-time side of the contract: tensors, contexts, scalars, errors.",
        source,
        (),
        rest=by_header["diopirt"],
    )
    yield "diopi_register", header_view(
        program,
        "diopi_register",
        "What a vendor's initLibrary() registers.",
        source,
        ("diopi/diopirt.h",),
        rest=by_header["diopi_register"],
    )
    yield "device", header_view(
        program,
        "device",
        "The device table: what a vendor's chip can do.",
        source,
        ("diopi/diopi_register.h",),
    )
    operators = tuple(name for name, _ in _OPERATOR_HEADERS if name in by_header or _functions(program, name))
    for name, doc in _OPERATOR_HEADERS:
        if name in operators:
            functions, rest = _functions(program, name), by_header.get(name, ())
            yield name, header_view(
                program, name, doc, "schemas/ops", ("diopi/diopirt.h",), functions=functions, rest=rest
            )
    yield "abi", abi_view(program, operators)


def _functions(program: Program, header: str) -> tuple[Function, ...]:
    return tuple(f for f in program.functions if f.header == header)

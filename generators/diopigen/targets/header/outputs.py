"""Which headers there are and what each declares."""

from collections.abc import Iterator

from diopigen.model.op import Function
from diopigen.model.program import Program
from diopigen.model.runtime import CFunction
from diopigen.targets.header.view import HeaderView, abi_view, dtypes_view, header_view
from diopigen.targets.output import Output, Render

_RUNTIME_HEADERS = (
    ("diopirt", "The run-time side of the contract: tensors, contexts, scalars, errors.", ()),
    (
        "diopirt_ext",
        "What a framework may offer beside the contract, and what element types are.",
        ("diopi/diopirt.h",),
    ),
    ("diopi_register", "What a vendor's initLibrary() registers.", ("diopi/diopirt.h",)),
    ("device", "The device table: what a vendor's chip can do.", ("diopi/diopi_register.h",)),
)
_OPERATOR_HEADERS = (
    ("functions", "The operators."),
    ("functions_ext", "Operators of large models: attention, rotary embedding, RMS norm."),
    ("functions_lmdeploy", "Operators of language-model serving."),
    ("functions_mmcv", "Operators of computer vision and point clouds."),
    ("functions_sparse", "Operators on sparse tensors."),
)
ABI = "include/diopi/abi.h"
_OWN_TEMPLATES = ("diopirt", "diopirt_ext", "diopi_register", "device", "abi", "dtypes")


def outputs(program: Program, render: Render) -> Iterator[Output]:
    """The headers, under include/diopi; one without operators is left out."""
    for name, view in views(program):
        template = name if name in _OWN_TEMPLATES else "functions"
        yield Output(path=f"include/diopi/{name}.h", text=render(f"header/{template}.h.j2", view))


def views(program: Program) -> Iterator[tuple[str, HeaderView]]:
    """Each header's name and view."""
    for name, doc, includes in _RUNTIME_HEADERS:
        rest = _runtime_functions(program, name)
        yield name, header_view(program, name, doc, "schemas/runtime.yaml", includes, rest=rest)
    operators = []
    for name, doc in _OPERATOR_HEADERS:
        functions, rest = _functions(program, name), _runtime_functions(program, name)
        if functions or rest:
            operators.append(name)
            yield name, header_view(program, name, doc, "schemas/ops", ("diopi/diopirt.h",), functions, rest)
    yield "abi", abi_view(program, tuple(operators))
    yield "dtypes", dtypes_view(program)


def _runtime_functions(program: Program, header: str) -> tuple[CFunction, ...]:
    return tuple(f for f in program.runtime.functions if f.header == header)


def _functions(program: Program, header: str) -> tuple[Function, ...]:
    return tuple(f for f in program.functions if f.header == header)

"""The C++ of a null library: each function of the contract hands its tensors to one class that computes nothing."""

from collections.abc import Iterator

from diopigen.c_spelling import c_args
from diopigen.model.op import Function, Role
from diopigen.model.program import Program
from diopigen.model.type import TensorType


def source(program: Program) -> str:
    """All functions of the schemas, in their order; NULL_LIBRARY says what they do."""
    headers = sorted({function.header for function in program.functions})
    lines = [
        '#include "null_library.h"',
        "",
        *(f"#include <diopi/{header}.h>" for header in headers),
        "",
        'extern "C" {',
    ]
    for function in program.functions:
        lines += ["", *_definition(function)]
    return "\n".join([*lines, "", "}", ""])


def _definition(function: Function) -> Iterator[str]:
    args = c_args(function)
    yield f"diopiError_t {function.symbol}({', '.join(map(str, args))}) {{"
    yield f"    null_library::Call call({args[0].name});"
    for role in ("in", "out"):
        for param in function.params:
            tensor = param.type if isinstance(param.type, TensorType) else None
            if tensor is None:
                continue
            named = f"{param.name}, {tensor.count}" if tensor.count else param.name
            if role == "in" and param.role in (Role.IN, Role.INOUT):
                yield f"    call.in({named});"
            elif role == "out" and param.role is Role.CALLEE_OUT:
                yield f"    call.allocated({param.name});"
            elif role == "out" and param.role in (Role.OUT, Role.INOUT):
                yield f"    call.out({named});"
    for param in function.params:
        if param.role is Role.HOST_OUT:
            yield f"    call.host({param.name});"
    yield "    return diopiSuccess;"
    yield "}"

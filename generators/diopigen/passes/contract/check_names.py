"""The rules of names that reach C: none is reserved there, and no function has one twice."""

import re
from collections.abc import Collection, Iterator

from diopigen.diagnostics import Span
from diopigen.model.op import Form, Function, Op, Param, Place, Role
from diopigen.model.program import Program
from diopigen.model.reserved import free_name, reserved
from diopigen.passes.contract.verify_kernels import Finding


def reserved_name(name: str, span: Span, taken: Collection[str] = ()) -> Iterator[Finding]:
    """A finding if nothing that reaches C can have that name; `taken` are what the contract declares."""
    reason = "declared by the contract itself" if name in taken else reserved(name)
    if reason is not None:
        hint = f"use another name, for instance '{free_name(name, taken)}'"
        yield Finding(code="reserved-name", message=f"'{name}' is {reason}", span=span, hint=hint)


def v12_names_can_be_spelled_in_c(op: Op, functions: tuple[Function, ...], program: Program) -> Iterator[Finding]:
    """V12: no parameter has a name that C, C++ or a macro takes, and no two of a function have the same."""
    declared = program.runtime.names
    seen: dict[str, Span] = {}
    for function in functions:
        spans = dict(_spans(op, function))
        for name, span in spans.items():
            if seen.setdefault(name, span) is span:
                yield from reserved_name(name, span, declared)
        for name in _twice(op, function):
            yield Finding(
                code="duplicate-name",
                message=f"two parameters of '{function.symbol}' are called '{name}'",
                span=spans[name],
                hint="rename one of them",
            )


def v13_tensors_are_handles_in_c(op: Op, functions: tuple[Function, ...], program: Program) -> Iterator[Finding]:
    """V13: what `c` says of a tensor is a handle, and one that can be written where the function writes."""
    for function in functions:
        for param in function.params:
            if param.tensor is None or param.c is None:
                continue
            pointed = param.tensor.count is not None or param.role is Role.CALLEE_OUT
            handles = "(const )?diopi(Const)?TensorHandle_t" if param.role is Role.IN else "diopiTensorHandle_t"
            if re.fullmatch(handles + (r" ?\*" if pointed else ""), param.c) is None:
                path = "backward.c" if function.form is Form.BACKWARD else "c"
                yield Finding(
                    code="not-a-handle",
                    message=f"'{param.name}' of '{function.symbol}' is a tensor, but '{param.c}' is not a handle",
                    span=op.place(f"{path}.{param.name}").span,
                    hint=f"write 'diopiTensorHandle_t{'*' if pointed else ''}', or remove it",
                )


def _twice(op: Op, function: Function) -> Iterator[str]:
    """Names of two parameters; that an argument is called like an output is another rule's."""
    names = [param.name for param in function.params] + list(function.counts)
    both = {arg.name for arg in op.args} & {out.name for out in op.outs}
    return (name for name in dict.fromkeys(names) if names.count(name) > 1 and name not in both)


def _spans(op: Op, function: Function) -> Iterator[tuple[str, Span]]:
    """Every name among the C parameters, and where it is written."""
    for param in function.params:
        written = op.places.at(f"backward.grad_outputs.{param.name}:") or op.places.at(f"backward.keeps.{param.name}:")
        yield param.name, param.span if written is None else written.span
        if param.tensor is not None and param.tensor.count is not None:
            yield param.tensor.count, _type_place(op, param).word(param.tensor.count)


def _type_place(op: Op, param: Param) -> Place:
    return op.places.at(f"args.{param.arg}") or op.places.at(f"out.{param.arg}") or op.place("out")

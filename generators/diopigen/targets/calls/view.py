"""What the template lays out: for each function the calls of ATen behind it, spelled."""

from collections.abc import Sequence
from dataclasses import dataclass

from diopigen.c_spelling import CArg, c_args
from diopigen.model.aten import AtenCall, Calls, DtypeOf, IntoParam
from diopigen.model.op import Function, Op, Role
from diopigen.model.program import Program
from diopigen.model.type import TensorType
from diopigen.targets.calls.spelling import argument, condition
from diopigen.targets.cpp.lines import folded
from diopigen.text import mentions
from diopigen.vocabulary.checks import CHECK


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchView:
    condition: tuple[str, ...]  # e.g. ("dim == nullptr",); empty where no other branch is left, or there is no choice
    lines: tuple[str, ...]  # e.g. ("write(out, at::_ops::relu::call(tensor(input)));",)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionView:
    head: tuple[str, ...]  # e.g. ("diopiError_t diopiRelu(...)",)
    branches: tuple[BranchView, ...]
    choice: bool  # the branches stand in an if


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsView:
    source: str  # e.g. "schemas/ops/activation.yaml"
    headers: tuple[str, ...]  # e.g. ("relu_ops.h",), in ATen/ops
    functions: tuple[FunctionView, ...]


def calls_view(program: Program, topic: str, symbols: Sequence[str]) -> CallsView:
    """The functions of one topic in `symbols`."""
    calls = {c.symbol: c for c in program.calls}
    functions = {f.symbol: f for f in program.functions}
    served = [(functions[symbol], calls[symbol]) for symbol in symbols]
    return CallsView(
        source=program.source(topic),
        headers=tuple(sorted({f"{call.overload.cpp.header}_ops.h" for _, c in served for call in c.calls})),
        functions=tuple(_function(f, c, _is_wide(f, c, program.op(f.op))) for f, c in served),
    )


def _is_wide(function: Function, calls: Calls, op: Op | None) -> bool:
    """Whether half types may be computed as float32: none that is drawn, nor kept in the types that come in."""
    kept = {param.role for param in function.params} & {Role.INOUT, Role.CALLEE_OUT}
    typed = any(isinstance(feed, IntoParam | DtypeOf) for call in calls.calls for _, feed in call.args)
    return not (kept or typed or (op is not None and CHECK[op.check].random))


def _function(function: Function, calls: Calls, wide: bool) -> FunctionView:
    choice = len(calls.calls) > 1 or bool(calls.calls[0].conditions)
    indent = 12 if choice else 8
    branches = [
        BranchView(condition=_condition(function, calls, position), lines=_call(function, call, indent, wide))
        for position, call in enumerate(calls.calls)
    ]
    if not calls.complete:
        branches.append(BranchView(condition=(), lines=(f'refuse("{function.symbol} with these arguments");',)))
    used = " ".join(line for branch in branches for line in (*branch.condition, *branch.lines))
    params = ", ".join(_declared(arg, used) for arg in c_args(function))
    head = folded(f"diopiError_t {function.symbol}({params})", after=2)
    return FunctionView(head=head, branches=tuple(branches), choice=choice)


def _condition(function: Function, calls: Calls, position: int) -> tuple[str, ...]:
    if position and position == len(calls.calls) - 1 and calls.complete:
        return ()
    holds = " && ".join(condition(function, c) for c in calls.calls[position].conditions)
    return folded(holds, indent=19 if position else 12, hang=0, after=3) if holds else ()


def _declared(arg: CArg, used: str) -> str:
    """A parameter; one that no call reads has no name."""
    return str(arg) if mentions(used, arg.name) else arg.type


def _call(function: Function, call: AtenCall, indent: int, wide: bool) -> tuple[str, ...]:
    args = ", ".join(argument(function, arg, feed, wide=wide) for arg, feed in call.args)
    called = f"at::_ops::{call.overload.cpp.operator}::call({args})"
    if not call.results:
        return folded(f"{called};", indent)
    if len(call.overload.returns) == 1:
        opening, closing = _written(function, call.results[0][1])
        return folded(f"{opening}{called}{closing};", indent)
    lines = list(folded(f"const auto results = {called};", indent))
    for index, name in call.results:
        opening, closing = _written(function, name)
        lines.append(f"{opening}std::get<{index}>(results){closing};")
    return tuple(lines)


def _written(function: Function, name: str) -> tuple[str, str]:
    """What stands before and after a result on its way into the parameter."""
    param = function.param(name)
    assert param is not None
    if param.role is Role.HOST_OUT:
        return f"*{name} = ", ""
    if param.role is Role.CALLEE_OUT:
        return f"allocate(ctx, {name}, ", ")"
    if isinstance(param.type, TensorType) and param.type.count is not None:
        return f"write({name}, {param.type.count}, ", ")"
    return f"write({name}, ", ")"

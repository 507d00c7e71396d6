"""What each argument of one ATen operator is when a C function calls it, and for which calls the operator serves."""

from collections.abc import Iterator
from dataclasses import dataclass

from diopigen.model.aten import (
    Absent,
    Always,
    AtenArg,
    AtenCall,
    Condition,
    Default,
    DtypeOf,
    Equals,
    Feed,
    FromArg,
    FromDerive,
    FromLiteral,
    FromParam,
    FromReturn,
    Given,
    IntoParam,
    Overload,
    Raised,
    Route,
    SameRank,
    Wanted,
)
from diopigen.model.expr import Expr, Name, Number, Text, names
from diopigen.model.op import Function, Param, Role
from diopigen.model.type import ENUMERATORS, FloatOf, Promote, TensorType, Value, ValueType


def call_of(function: Function, overload: Overload, route: Route) -> AtenCall | None:
    """The call, or None where an argument stays without a value or an input would be written."""
    feeds = _Feeds(function=function, overload=overload, route=route)
    if feeds.unseeded:
        return None
    args = tuple((arg, feed) for arg in overload.args if (feed := feeds.feed(arg)) is not None)
    if len(args) < len(overload.args):
        return None
    direct = {feed.name for _, feed in args if isinstance(feed, IntoParam)}
    return AtenCall(
        overload=overload,
        args=args,
        conditions=tuple(dict.fromkeys((*feeds.of_sources(), *feeds.of_arguments()))),
        results=tuple((index, p.name) for index, p in feeds.returned.items() if p.name not in direct),
    )


@dataclass(slots=True, kw_only=True)
class _Feeds:
    """One function, one overload, and the route from the overload to the function."""

    function: Function
    overload: Overload
    route: Route

    @property
    def sourced(self) -> Iterator[tuple[Param, object]]:
        for name, source in self.route.args:
            param = self.function.param(name)
            assert param is not None
            yield param, source

    @property
    def returned(self) -> dict[int, Param]:
        return {source.index: param for param, source in self.sourced if isinstance(source, FromReturn)}

    @property
    def unseeded(self) -> bool:
        """The operator draws its numbers from a generator that nobody gives it."""
        return any(isinstance(s, Absent) and _is_generator(p) for p, s in self.sourced)

    def param(self, arg: AtenArg) -> Param | None:
        """The C parameter behind an argument; one that is worked out of its namesake is that namesake."""
        for param, source in self.sourced:
            if isinstance(source, FromArg) and source.name == arg.name:
                return param
            if isinstance(source, FromDerive) and param.name == arg.name and arg.name in names(source.expr):
                return param
        return None

    def feed(self, arg: AtenArg) -> Feed | None:
        if arg.out:
            return self._output([a.name for a in self.overload.args if a.out].index(arg.name))
        param = self.param(arg)
        if arg.mutated:
            return self._changed(param)
        if param is not None:
            return self._raised(param) or FromParam(name=param.name)
        required = dict(self.route.require)
        if arg.name in required:
            return Always(value=required[arg.name])
        return self._implied(arg) or (Default() if arg.default is not None else None)

    def _raised(self, param: Param) -> Feed | None:
        """Inputs of several types meet in that of the output."""
        for out in self.returned.values():
            common = out.tensor.element if out.tensor is not None else None
            common = common.element if isinstance(common, FloatOf) else common
            tensor = param.tensor
            if isinstance(common, Promote) and preallocated(out) and tensor is not None and tensor.count is None:
                return Raised(name=param.name, out=out.name) if tensor.element in common.elements else None
        return None

    def _output(self, index: int) -> Feed | None:
        """A tensor that the caller has allocated; the operator may not ask for one that is not there."""
        param = self.returned.get(index)
        return IntoParam(name=param.name) if param is not None and preallocated(param) else None

    def _changed(self, param: Param | None) -> Feed | None:
        """An input stays as it is; an operator that only writes over its tensor writes the output."""
        if param is not None:
            return IntoParam(name=param.name) if param.role is Role.INOUT else None
        return self._output(0) if len(self.returned) == 1 else None

    def _implied(self, arg: AtenArg) -> Feed | None:
        outs = list(self.returned.values())
        if arg.name == "output_mask":
            return Wanted(names=tuple(param.name for param in outs))
        if not outs or not preallocated(outs[0]):
            return None
        if arg.name in ("dtype", "input_dtype"):
            return DtypeOf(name=outs[0].name)
        if arg.name == "keepdim":
            reduced = next(p for p in self.function.params if p.role is Role.IN and p.tensor is not None)
            return SameRank(out=outs[0].name, input=reduced.name)
        return None

    def of_sources(self) -> Iterator[Condition]:
        """Parameters that the operator does not know must have the one value that it computes with."""
        for param, source in self.sourced:
            if isinstance(source, Absent):
                yield Given(name=param.name, given=False)
            elif isinstance(source, FromLiteral):
                yield Equals(name=param.name, value=source.value)
            elif isinstance(source, FromDerive):
                yield from _constant(param, source.expr)

    def of_arguments(self) -> Iterator[Condition]:
        """Required values, and optional parameters of which the operator must have one."""
        required = dict(self.route.require)
        for arg in self.overload.args:
            param = self.param(arg)
            if param is None or arg.out:
                continue
            if arg.name in required:
                yield Equals(name=param.name, value=required[arg.name])
            elif _lacking(param, arg):
                yield Given(name=param.name, given=True)


def preallocated(param: Param) -> bool:
    """One tensor that every caller has allocated."""
    kind = param.type
    return param.role is Role.OUT and isinstance(kind, TensorType) and kind.count is None and not kind.optional


def _is_generator(param: Param) -> bool:
    return isinstance(param.type, ValueType) and param.type.value is Value.GENERATOR


def _constant(param: Param, expr: Expr) -> Iterator[Condition]:
    """A value that the schema derives from nothing: the operator computes with that one alone."""
    match expr:
        case Number():
            yield Equals(name=param.name, value=float(expr.text))
        case Text():
            yield Equals(name=param.name, value=expr.text)
        case Name() if isinstance(param.type, ValueType) and param.type.value in ENUMERATORS:
            yield Equals(name=param.name, value=expr.name)
        case _:
            return


def _lacking(param: Param, arg: AtenArg) -> bool:
    if not param.type.optional or arg.type.endswith("?") or arg.default not in (None, "None"):
        return False
    if isinstance(param.type, TensorType):
        return param.type.count is None
    return isinstance(param.type, ValueType) and param.type.value not in (Value.STR, Value.GENERATOR)

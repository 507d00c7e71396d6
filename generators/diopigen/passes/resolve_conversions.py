"""Finds what the adaptor converts for each parameter: the rule of convert_config.yaml that speaks for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from diopigen.diagnostics import Span
from diopigen.model.dtype import DType, DTypes, Kind
from diopigen.model.op import Function, Op, Param
from diopigen.model.type import Accumulate, ComplexOf, Element, Fixed, FloatOf, Promote, RealOf, TensorType, Var
from diopigen.model.vendor import Cast, Conversion, Layouts, Rule, Vendor

# What every conversion is made of; they are called as they are, so nothing may convert for them.
CAST, COPY = "diopiCastDtype", "diopiCopyInp"
PRIMITIVES = (CAST, COPY)

RANKS = {"NCL": 3, "NLC": 3, "NCHW": 4, "NHWC": 4, "NCDHW": 5, "NDHWC": 5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolver:
    """Finds the rule that speaks for each parameter: the argument's, else the function's, else the common one.

    The most specific level that says something of dtypes decides about dtypes alone; likewise of layouts.
    """

    vendor: Vendor
    dtypes: DTypes

    def conversions(self, function: Function, op: Op) -> Iterator[Conversion]:
        """One for each tensor that has something to convert."""
        if function.symbol in PRIMITIVES:
            return
        for param in function.params:
            if param.tensor is None:
                continue
            casts = self._casts(function, param)
            layouts = self._layouts(function, op, param)
            names = () if layouts is None else fitting(layouts.names, op)
            contiguous = self._contiguous(function, param)
            if casts or names or contiguous is not None:
                yield Conversion(
                    param=param.name,
                    casts=casts,
                    layouts=names,
                    layout_span=layouts.span if layouts is not None and names else None,
                    contiguous=contiguous is not None,
                    contiguous_span=contiguous,
                )

    def _rules(self, function: Function) -> Iterator[Rule]:
        """The function's own rule, then the common one."""
        for rule in self.vendor.rules:
            if any(symbol == function.symbol for symbol, _ in rule.functions):
                yield rule
        for rule in self.vendor.rules:
            if not rule.functions:
                yield rule

    def _casts(self, function: Function, param: Param) -> tuple[Cast, ...]:
        for rule in self._rules(function):
            single = next((t for t in rule.tensor_casts if t.param == param.name), None)
            casts = rule.casts if single is None else single.casts
            if casts:
                taken = element_dtypes(element_of(param), function, self.dtypes)
                return tuple(cast for cast in casts if cast.source in taken)
        return ()

    def _layouts(self, function: Function, op: Op, param: Param) -> Layouts | None:
        for rule in self._rules(function):
            for name in (param.name, None):
                found = next((item for item in rule.layouts if item.param == name), None)
                if found is not None:
                    return found
        return None

    def _contiguous(self, function: Function, param: Param) -> Span | None:
        for rule in self._rules(function):
            for name in (param.name, None):
                found = next((item for item in rule.contiguous if item.param == name), None)
                if found is not None:
                    return found.span if found.wanted else None
        return None


def fitting(names: tuple[str, ...], op: Op) -> tuple[str, ...]:
    """The layouts of `names` for the ranks that the op's own `layouts` speak of."""
    ranks = {RANKS[name] for name in op.layouts if name in RANKS}
    return tuple(name for name in names if RANKS[name] in ranks)


def element_dtypes(element: Element, function: Function, dtypes: DTypes) -> tuple[DType, ...]:
    """Every dtype that a tensor of `element` can have in some call of `function`."""
    match element:
        case Fixed():
            return (element.dtype,)
        case Var():
            found = dict(function.elements).get(element.name)
            return () if found is None else found.members
        case Promote():
            each = (d for e in element.elements for d in element_dtypes(e, function, dtypes))
            return tuple(dict.fromkeys(each))
        case FloatOf():
            inner = element_dtypes(element.element, function, dtypes)
            floats = [d for d in inner if d.kind in (Kind.FLOAT, Kind.COMPLEX)]
            return _with(floats, dtypes.named("f32") if len(floats) < len(inner) else None)
        case Accumulate():
            inner = element_dtypes(element.element, function, dtypes)
            wide = [d for d in inner if d.kind not in (Kind.INTEGER, Kind.BOOL)]
            return _with(wide, dtypes.named("i64") if len(wide) < len(inner) else None)
        case ComplexOf():
            return tuple(dtypes.complex_of(d) for d in element_dtypes(element.element, function, dtypes))
        case RealOf():
            return tuple(dtypes.real_of(d) for d in element_dtypes(element.element, function, dtypes))
        case other:
            assert_never(other)


def _with(found: list[DType], more: DType | None) -> tuple[DType, ...]:
    return tuple(dict.fromkeys([*found, *([] if more is None else [more])]))


def element_of(param: Param) -> Element:
    assert isinstance(param.type, TensorType)
    return param.type.element

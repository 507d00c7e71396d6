"""Finds what the adaptor converts for each parameter: the rule of convert_config.yaml that speaks for it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar, assert_never

from diopigen.model.op import Function, Param, Role
from diopigen.model.type import Accumulate, ComplexOf, Element, Fixed, FloatOf, Promote, RealOf, TensorType, Var
from diopigen.model.vendor import Cast, Casts, Contiguous, Conversion, Implementation, Layouts, Origin, Rule, Vendor
from diopigen.vocabulary.dtype import DType, DTypes, Kind

# What every conversion is made of; they are called as they are, so nothing may convert for them.
CAST, COPY = "diopiCastDtype", "diopiCopyInp"
PRIMITIVES = (CAST, COPY)

_Said = TypeVar("_Said", Casts, Layouts, Contiguous)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is decided for one tensor of one function.

    Of all that speaks of a thing the first decides alone, and the others are overridden.
    """

    param: Param
    casts: tuple[Casts, ...]  # e.g. (of the argument, of common_config): most specific first
    layouts: tuple[Layouts, ...]
    contiguous: tuple[Contiguous, ...]
    taken: tuple[DType, ...]  # what the schema lets the tensor be
    conversion: Conversion | None  # None: nothing to convert


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolver:
    """Finds the rule that speaks for each parameter: the argument's, else the function's, else the common one.

    The most specific level that says something of dtypes decides about dtypes alone; likewise of layouts. So a tensor
    is never cast twice: casts of several levels do not follow each other. Where a base serves the function, its entry
    follows the vendor's entry, and its common one the vendor's common one.
    """

    vendor: Vendor
    dtypes: DTypes

    def decisions(self, function: Function, implementation: Implementation) -> Iterator[Decision]:
        """One for each tensor, in the order of conversion; none for what conversions are made of, for compositions, and
        where there is no adaptor. The functions that a composition calls convert for themselves.
        """
        if function.symbol in PRIMITIVES or implementation.origin in (Origin.COMPOSITE, Origin.EXPORTED):
            return
        rules = tuple(_rules(self.vendor, function, implementation))
        for param in function.converted:
            casts = _saying([rule.casts for rule in rules], param)
            layouts = _saying([rule.layouts for rule in rules], param)
            contiguous = _saying([rule.contiguous for rule in rules], param)
            taken = element_dtypes(element_of(param), function, self.dtypes)
            yield Decision(
                param=param,
                casts=casts,
                layouts=layouts,
                contiguous=contiguous,
                taken=taken,
                conversion=_conversion(param, casts[:1], layouts[:1], contiguous[:1], taken),
            )


def _rules(vendor: Vendor, function: Function, implementation: Implementation) -> Iterator[Rule]:
    """The function's own rules, then the common ones; of each the vendor's first, then those of its bases."""
    files = (vendor.rules, *_rules_of_bases(vendor, implementation))
    for rules in files:
        yield from (rule for rule in rules if any(symbol == function.symbol for symbol, _ in rule.functions))
    for rules in files:
        yield from (rule for rule in rules if not rule.functions)


def _rules_of_bases(vendor: Vendor, implementation: Implementation) -> Iterator[tuple[Rule, ...]]:
    """Of the base that serves the function, after those of the bases that build on it."""
    if implementation.origin is Origin.BASE:
        serving = implementation.name.partition("::")[0]
        yield from (base.rules for base in vendor.bases if serving in base.base)
        yield from (base.rules for base in vendor.bases if serving == base.name)


def conversions(decisions: Iterable[Decision]) -> tuple[Conversion, ...]:
    """One for each tensor that has something to convert."""
    return tuple(decision.conversion for decision in decisions if decision.conversion is not None)


def _saying(levels: Iterable[tuple[_Said, ...]], param: Param) -> tuple[_Said, ...]:
    """What speaks of `param`, the most specific first: of one level, the argument's own before that of all tensors."""
    return tuple(item for said in levels for name in (param.name, None) for item in said if item.param == name)


def _conversion(
    param: Param,
    casts: tuple[Casts, ...],
    layouts: tuple[Layouts, ...],
    contiguous: tuple[Contiguous, ...],
    taken: tuple[DType, ...],
) -> Conversion | None:
    """What the deciding rules come to, at most one of each kind; an allocated tensor lies as its function likes."""
    acting = tuple(cast for said in casts for cast in applicable(said, taken))
    given = param.role is not Role.CALLEE_OUT
    ordered = next((said for said in layouts if said.names and given), None)
    wanted = next((said.span for said in contiguous if said.wanted and given), None)
    if not acting and ordered is None and wanted is None:
        return None
    return Conversion(
        param=param.name,
        casts=acting,
        layouts=ordered.names if ordered is not None else (),
        layout_span=ordered.span if ordered is not None else None,
        contiguous=wanted is not None,
        contiguous_span=wanted,
    )


def applicable(said: Casts, taken: tuple[DType, ...]) -> tuple[Cast, ...]:
    """The casts that can touch a tensor whose dtypes are `taken`."""
    return tuple(cast for cast in said.casts if cast.source in taken)


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

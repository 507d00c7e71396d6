"""How each vendor serves the functions of an op, and what its adaptor converts for them."""

from collections.abc import Iterator
from dataclasses import dataclass

from diopigen.model.op import Function
from diopigen.model.vendor import Conversion
from diopigen.targets.coverage.rows import Row, State
from diopigen.targets.docs.markdown import code, prose
from diopigen.targets.docs.paths import place, relative, vendor_page
from diopigen.targets.docs.site import Index, Site
from diopigen.vocabulary.layouts import orders


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRow:
    symbol: str
    states: tuple[str, ...]  # e.g. ("portable, 24 cases passed", "missing"), one for each vendor


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionRow:
    vendor: str
    symbol: str
    what: str  # e.g. "`input`, `weight`: f16 as f32"
    place: str  # the rule that said so


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorsView:
    links: tuple[str, ...]  # e.g. ("[droplet](../../vendors/droplet.md)",)
    services: tuple[ServiceRow, ...]
    conversions: tuple[ConversionRow, ...]


def vendors_view(functions: tuple[Function, ...], site: Site, index: Index, page: str) -> VendorsView:
    """What all vendors have of the functions of one op, for the page `page`."""
    rows = [(function, index.rows.get(function.symbol, ())) for function in functions]
    names = tuple(coverage.vendor for coverage in site.coverages)
    shown = frozenset(site.sources)
    return VendorsView(
        links=tuple(f"[{prose(name)}]({relative(page, vendor_page(name))})" for name in names),
        services=tuple(
            ServiceRow(symbol=code(function.symbol), states=tuple(map(_state, found))) for function, found in rows
        ),
        conversions=tuple(
            line
            for _, found in rows
            for name, row in zip(names, found, strict=True)
            for line in _conversions(name, row, page, shown)
        ),
    )


def _state(row: Row) -> str:
    if row.state is State.MISSING or not row.figures.cases:
        return row.state.value
    figures = row.figures
    share = f"{figures.passed}" if figures.passed == figures.cases else f"{figures.passed} of {figures.cases}"
    return f"{row.state.value}, {share} cases passed"


def _conversions(vendor: str, row: Row, page: str, shown: frozenset[str]) -> Iterator[ConversionRow]:
    """A row for each thing that the adaptor does; parameters with the same conversion share it."""
    together: dict[tuple[str, str], list[str]] = {}
    for conversion in row.conversions:
        for what, rule in _parts(conversion, page, shown):
            together.setdefault((what, rule), []).append(code(conversion.param))
    for (what, rule), params in together.items():
        symbol = code(row.function.symbol)
        yield ConversionRow(vendor=vendor, symbol=symbol, what=f"{', '.join(params)}: {what}", place=rule)


def _parts(conversion: Conversion, page: str, shown: frozenset[str]) -> Iterator[tuple[str, str]]:
    for cast in conversion.casts:
        yield f"{cast.source.name} as {cast.target.name}", place(page, cast.span, shown)
    if conversion.layouts and conversion.layout_span is not None:
        yield f"in {' or '.join(orders(conversion.layouts))} order", place(page, conversion.layout_span, shown)
    if conversion.contiguous and conversion.contiguous_span is not None:
        yield "made contiguous", place(page, conversion.contiguous_span, shown)

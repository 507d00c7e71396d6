"""What the pages of a coverage lay out: every number and word already spelled."""

from dataclasses import dataclass

from diopigen.targets.coverage.chart import Chart, chart
from diopigen.targets.coverage.figures import Figures
from diopigen.targets.coverage.rows import Cell, Row, State
from diopigen.targets.coverage.totals import Coverage, Total
from diopigen.vocabulary.dtype import DType, Kind
from diopigen.vocabulary.layouts import orders

MEANINGS = {
    State.OWN: "written by the vendor",
    State.EXPORTED: "written with C linkage, exported as it is",
    State.BASE: "written for a base vendor",
    State.GENERATED: "generated for the vendor",
    State.PORTABLE: "a portable kernel",
    State.KERNEL: "from the schema's kernel line",
    State.COMPOSED: "composed of other functions",
    State.CONVERTED: "the adaptor gives the function another element type",
    State.MISSING: "nothing implements it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    text: str  # e.g. "f32" for a conversion to it, "own", "" where the function never has this type
    slug: str  # e.g. "converted"; "none" where the function never has this type
    title: str  # e.g. "f64 is converted to f32 (input, out)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowView:
    symbol: str
    op: str
    topic: str
    header: str
    dtypes: str  # e.g. "f16 f32": those it has, as the filter asks for them
    states: str  # e.g. "own own:f16 converted:f64": of the function, and with each dtype
    state: str
    slug: str
    source: str
    cells: tuple[CellView, ...]
    other: str  # e.g. "input: NHWC": what is converted besides element types
    cases: str  # e.g. "24", "20 of 24", "" where none ran
    cases_slug: str  # "passed", "bad" or "none": what the filter asks for
    ulp: str  # e.g. "2.4": the worst error of what passed
    overloads: int
    overload_names: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalView:
    name: str
    functions: int
    counts: tuple[int, ...]  # one for each state of functions, in order
    converted: int
    share: str  # e.g. "98.1 %"
    cases: str
    ulp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateView:
    word: str  # e.g. "kernel line"
    slug: str
    meaning: str
    functions: int | None  # None for CONVERTED, which counts cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the filters offer: the value and the word of each."""

    topic: tuple[tuple[str, str], ...]
    header: tuple[tuple[str, str], ...]
    dtype: tuple[tuple[str, str], ...]
    state: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageView:
    vendor: str
    doc: str
    all: TotalView
    headers: tuple[TotalView, ...]
    topics: tuple[TotalView, ...]
    states: tuple[StateView, ...]
    function_states: tuple[str, ...]  # the columns of `counts`
    dtypes: tuple[str, ...]
    choices: Choices
    bad: int  # functions with cases that did not pass
    rows: tuple[RowView, ...]
    bound: int
    served: int
    run: str | None  # e.g. "7600 of 7600 planned cases passed"
    chart: Chart
    site: str  # the address of the documentation; may be empty


def view(coverage: Coverage, html: bool, site: str = "") -> CoverageView:
    """The view; the texts are escaped for tables of Markdown unless `html`, whose templates escape."""
    dtypes = sorted(dict.fromkeys(cell.dtype for row in coverage.rows for cell in row.cells), key=_order)
    text = str if html else _markdown
    return CoverageView(
        vendor=text(coverage.vendor),
        doc=text(coverage.doc),
        all=_total(coverage.all),
        headers=tuple(_total(total) for total in coverage.headers),
        topics=tuple(_total(total) for total in coverage.topics),
        states=tuple(_state(state, coverage.all) for state in State),
        function_states=tuple(state.value for state, _ in coverage.all.states),
        dtypes=tuple(dtype.name for dtype in dtypes),
        choices=Choices(
            topic=tuple((total.name, total.name) for total in coverage.topics),
            header=tuple((total.name, total.name) for total in coverage.headers),
            dtype=tuple((dtype.name, dtype.name) for dtype in dtypes),
            state=tuple((state.slug, state.value) for state in State),
        ),
        bad=sum(_slug(row.figures) == "bad" for row in coverage.rows),
        rows=tuple(_row(row, dtypes) for row in coverage.rows),
        bound=len(coverage.bound),
        served=len(coverage.served),
        run=None if coverage.run is None else _run(coverage.run.planned, coverage.run.total),
        chart=chart(coverage.topics),
        site=site,
    )


def _markdown(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _order(dtype: DType) -> tuple[int, int, str]:
    """bool, integers, floats, complex; each by size."""
    return tuple(Kind).index(dtype.kind), dtype.size, dtype.name


def _state(state: State, total: Total) -> StateView:
    counts = dict(total.states)
    return StateView(word=state.value, slug=state.slug, meaning=MEANINGS[state], functions=counts.get(state))


def _total(total: Total) -> TotalView:
    return TotalView(
        name=total.name,
        functions=total.functions,
        counts=tuple(count for _, count in total.states),
        converted=total.converted,
        share=f"{100 * total.implemented / max(1, total.functions):.1f} %",
        cases=_cases(total.figures),
        ulp=_ulp(total.figures),
    )


def _cases(figures: Figures) -> str:
    if figures.passed == figures.cases:
        return str(figures.cases) if figures.cases else ""
    return f"{figures.passed} of {figures.cases}"


def _ulp(figures: Figures) -> str:
    return "" if figures.ulp is None else f"{figures.ulp:.3g}"


def _slug(figures: Figures) -> str:
    if not figures.cases:
        return "none"
    return "passed" if figures.passed == figures.cases else "bad"


def _run(planned: int, total: Figures) -> str:
    parts = [f"{total.passed} of {planned} planned cases passed"]
    parts += [f"{total.lacking} not implemented"] if total.lacking else []
    parts += [f"{total.bad} bad"] if total.bad else []
    parts += [f"{planned - total.cases} did not run"] if planned > total.cases else []
    return ", ".join(parts)


def _row(row: Row, dtypes: list[DType]) -> RowView:
    cells = tuple(_cell(row.cell(dtype), dtype) for dtype in dtypes)
    had = [(dtype.name, cell.slug) for dtype, cell in zip(dtypes, cells, strict=True) if row.cell(dtype) is not None]
    states = dict.fromkeys((row.state.slug, *(slug for _, slug in had), *(f"{slug}:{name}" for name, slug in had)))
    return RowView(
        symbol=row.function.symbol,
        op=row.function.op,
        topic=row.topic,
        header=row.function.header,
        dtypes=" ".join(name for name, _ in had),
        states=" ".join(states),
        state=row.state.value,
        slug=row.state.slug,
        source=row.source,
        cells=cells,
        other="; ".join(_other(row)),
        cases=_cases(row.figures),
        cases_slug=_slug(row.figures),
        ulp=_ulp(row.figures),
        overloads=len(row.overloads),
        overload_names=", ".join(row.overloads),
    )


def _cell(cell: Cell | None, dtype: DType) -> CellView:
    if cell is None:
        return CellView(text="", slug="none", title="")
    cases = f"; {_cases(cell.figures)} cases passed" if cell.figures.cases else ""
    cases += f", worst error {_ulp(cell.figures)} ULP" if cell.figures.ulp is not None else ""
    if not cell.casts:
        title = f"{dtype.name}: {MEANINGS[cell.state]}{cases}"
        return CellView(text=cell.state.value.split()[0], slug=cell.state.slug, title=title)
    targets = ", ".join(dict.fromkeys(target.name for _, target in cell.casts))
    params = ", ".join(param for param, _ in cell.casts)
    title = f"{dtype.name} is converted to {targets} ({params}){cases}"
    return CellView(text=targets, slug=State.CONVERTED.slug, title=title)


def _other(row: Row) -> list[str]:
    """What is converted besides element types."""
    layouts: dict[str, list[str]] = {}
    for conversion in row.conversions:
        words = " or ".join(orders(conversion.layouts)) or ("contiguous" if conversion.contiguous else "")
        if words:
            layouts.setdefault(words, []).append(conversion.param)
    return [f"{', '.join(params)} as {words}" for words, params in layouts.items()]

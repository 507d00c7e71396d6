"""The report as one HTML page that needs nothing else: no network, no other file, no server."""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from diopi_conformance.report.histogram import LABELS, Histogram, histogram
from diopigen.page import kit
from diopigen.page.site import site_link
from op_tools.phases import BACKWARD, FORWARD, OPTIMIZER
from op_tools.report.operators import Form, Gathering, Operator, in_order, quantile
from op_tools.report.sources import Sources
from op_tools.store import layout

_BARS = 20  # operators in the chart of time
_WIDE = 460  # units of the longest bar
_NAMES = 330  # units left of the bars
_STEP = 20  # units from bar to bar
_FORMS = 40  # of an operator that are spelled out
_LINKS = 20  # captures of a form that are linked


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str  # e.g. "p50 ms"
    title: str  # what it means
    numbers: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    text: str  # e.g. "1.5 MB"
    key: str  # what it is sorted by; empty where there is nothing
    slug: str = ""  # the color


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    place: str  # e.g. "op-3", in the page
    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    label: str
    y: int
    width: float
    text: str  # e.g. "12.3 ms (45.1 %)"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormView:
    given: str
    calls: str
    total: str
    median: str
    links: tuple[str, ...]
    more: int  # captures that are not linked


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorView:
    place: str
    name: str
    functions: str
    phases: str
    fault: str
    left: tuple[str, ...]
    forms: tuple[FormView, ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    title: str
    good: bool
    figures: tuple[tuple[str, str], ...]
    broken: tuple[str, ...]
    faults: tuple[tuple[str, str], ...]  # where the operator stands in the page, and what was said
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    bars: tuple[Bar, ...]
    bars_height: int
    bars_from: int
    histogram: Histogram
    labels: int
    operators: tuple[OperatorView, ...]
    site: str  # the address of the documentation; may be empty


_COLUMNS = (
    ("calls", "as the tool says that saw most of them"),
    ("total ms", "of all timed calls"),
    ("share", "of the time of all operators"),
    ("p50 ms", "half of the calls took no longer"),
    ("p95 ms", "of 20 calls 19 took no longer"),
    ("p99 ms", "of 100 calls 99 took no longer"),
    ("bytes", "of tensors that went in and out, in all calls"),
    ("FLOP", "in all calls, by torch's formulas"),
    ("GB/s", "bytes by time"),
    ("GFLOP/s", "FLOP by time"),
    ("compared", "results that were held against the CPU"),
    ("wrong", "results or calls that differ by more than is allowed"),
    ("max ULP", "the worst error, in units in the last place"),
    ("max abs", "the worst error"),
    ("max rel", "the worst error by the size of its element"),
    ("fallbacks", "calls that ran on the CPU"),
    ("overflows", "calls that gave infinities or NaN"),
    ("captures", "calls that are kept on disk"),
)


def page(gathering: Gathering, sources: Sources, folder: Path, path: Path) -> str:
    """The text of the page about `folder`, with links for a page that lies at `path`."""
    environment = kit.environment(Path(__file__).parent / "page_files")
    up = os.path.relpath(folder, path.parent)
    shown = view(gathering, sources, folder.name, up, site_link(path, "op-tools.html"))
    return environment.get_template("operators.html.j2").render(view=shown)


def view(gathering: Gathering, sources: Sources, title: str, up: str, site: str) -> PageView:
    """What the page lays out; `up` leads from the page to the results."""
    ordered = in_order(gathering)
    places = {operator.name: f"op-{number}" for number, operator in enumerate(ordered)}
    total = sum(operator.total for operator in ordered)
    told = set(gathering.faults.values())
    bars = _bars(ordered, total)
    return PageView(
        title=title,
        good=not any(operator.wrong or operator.overflows for operator in ordered),
        figures=_figures(ordered, total),
        broken=tuple(sources.broken),
        faults=(
            *((places[name], text) for text, name in gathering.faults.items()),
            *((places[o.name], _counted(o)) for o in ordered if _counted(o) and o.name not in told),
        ),
        columns=tuple(Column(name=name, title=text, numbers=True) for name, text in _COLUMNS),
        rows=tuple(Row(place=places[o.name], name=o.name, cells=_cells(o, total)) for o in ordered),
        bars=bars,
        bars_height=len(bars) * _STEP,
        bars_from=_NAMES,
        histogram=histogram(ulp for operator in ordered for ulp in operator.ulps),
        labels=LABELS,
        operators=tuple(_operator(operator, places[operator.name], up) for operator in ordered),
        site=site,
    )


def _counted(operator: Operator) -> str:
    """What is wrong with an operator whose calls no tool tells one by one; "" for nothing."""
    counts = ((operator.wrong, "wrong"), (operator.overflows, "with infinities or NaN"))
    counted = ", ".join(f"{count} {what}" for count, what in counts if count)
    return f"{operator.name}: {counted}" if counted else ""


def _figures(ordered: list[Operator], total: float) -> tuple[tuple[str, str], ...]:
    counts = (
        ("operators", str(len(ordered))),
        ("calls", str(sum(o.calls for o in ordered))),
        ("ms", f"{total:.4g}" if total else ""),
        *(
            (f"ms in {phase}", f"{time:.4g}" if time else "")
            for phase, time in ((phase, _time_in(ordered, phase)) for phase in (FORWARD, BACKWARD, OPTIMIZER))
        ),
        ("results compared", _count(sum(o.results for o in ordered))),
        ("wrong", str(sum(o.wrong for o in ordered))),
        ("calls on the CPU", _count(sum(o.fallbacks for o in ordered))),
        ("overflows", _count(sum(o.overflows for o in ordered))),
        ("captures", _count(sum(o.captured for o in ordered))),
    )
    return tuple((name, text) for name, text in counts if text)


def _time_in(ordered: list[Operator], phase: str) -> float:
    return sum(operator.spent[phase] for operator in ordered)


def _cells(o: Operator, total: float) -> tuple[Cell, ...]:
    share = 100 * o.total / total if total else None
    return (
        _cell(str(o.calls), o.calls),
        _cell(f"{o.total:.4g}", o.total or None),
        _cell(f"{share or 0:.1f} %", share),
        *(_cell(f"{t or 0:.4g}", t) for t in map(o.quantile, (0.5, 0.95, 0.99))),
        _cell(scaled(o.bytes, "B"), o.bytes or None),
        _cell(scaled(o.flop, ""), o.flop or None),
        *(_cell(f"{(rate or 0) / 1e9:.3g}", rate) for rate in (o.rate(o.bytes), o.rate(o.flop))),
        _cell(str(o.results), o.results or None),
        _cell(str(o.wrong), o.wrong or (0 if o.results else None), "bad" if o.wrong else "pass" if o.results else ""),
        _cell(f"{o.ulp or 0:.3g}", o.ulp),
        *(_cell(f"{error:.2g}", error if o.results or o.wrong else None) for error in (o.absolute, o.relative)),
        _cell(str(o.fallbacks), o.fallbacks or None, "known" if o.fallbacks else ""),
        _cell(str(o.overflows), o.overflows or None, "bad" if o.overflows else ""),
        _cell(str(o.captured), o.captured or None),
    )


def _cell(text: str, key: float | None, slug: str = "") -> Cell:
    if key is None:
        return Cell(text="", key="")
    return Cell(text=text, key="Infinity" if math.isinf(key) else repr(key), slug=slug)


def _count(number: int) -> str:
    return str(number) if number else ""


def scaled(number: float, unit: str) -> str:
    """With three digits and a letter for the thousands, e.g. "1.5 MB"."""
    for letter in ("", "k", "M", "G", "T"):
        if abs(number) < 1000:
            return f"{number:.3g} {letter}{unit}".rstrip()
        number /= 1000
    return f"{number:.3g} P{unit}"


def _bars(ordered: list[Operator], total: float) -> tuple[Bar, ...]:
    shown = [operator for operator in ordered if operator.total][:_BARS]
    rest = total - sum(operator.total for operator in shown)
    lengths = [(operator.name, operator.total) for operator in shown]
    if len(shown) == _BARS and rest > 0:
        lengths.append(("all others", rest))
    most = max((length for _, length in lengths), default=1.0)
    return tuple(
        Bar(
            label=name,
            y=number * _STEP,
            width=round(_WIDE * length / most, 1),
            text=f"{length:.4g} ms ({100 * length / total:.1f} %)",
        )
        for number, (name, length) in enumerate(lengths)
    )


def _operator(operator: Operator, place: str, up: str) -> OperatorView:
    forms = sorted(operator.forms.values(), key=lambda form: (-form.total, -form.calls, form.given))
    return OperatorView(
        place=place,
        name=operator.name,
        functions=", ".join(sorted(name for name in operator.functions if name and name != operator.name)),
        phases=", ".join(f"{count} in {phase}" for phase, count in sorted(operator.phases.items())),
        fault=operator.fault,
        left=tuple(f"{reason} ({count})" for reason, count in sorted(operator.left.items())),
        forms=tuple(_form(form, up) for form in forms[:_FORMS]),
        more=max(0, len(forms) - _FORMS),
    )


def _form(form: Form, up: str) -> FormView:
    median = quantile(form.milliseconds, 0.5)
    return FormView(
        given=form.given,
        calls=str(form.calls or len(form.captures)),
        total=f"{form.total:.4g}" if form.calls else "",
        median="" if median is None else f"{median:.4g}",
        links=tuple(quote(f"{up}/{folder}/{layout.INPUT}") for folder in form.captures[:_LINKS]),
        more=max(0, len(form.captures) - _LINKS),
    )

"""Sums over the rows of a coverage: of all, by header, by topic, and of the ATen overloads."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce

from diopigen.model.program import Program
from diopigen.targets.coverage.figures import Figures, Run
from diopigen.targets.coverage.rows import Row, State, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Some rows, counted."""

    name: str  # e.g. "arithmetic"
    functions: int
    states: tuple[tuple[State, int], ...]  # of functions; every state but CONVERTED, in order
    converted: int  # functions for which the adaptor converts something
    figures: Figures

    @property
    def implemented(self) -> int:
        return self.functions - dict(self.states)[State.MISSING]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """All that one vendor has and lacks."""

    vendor: str
    doc: str  # one sentence
    rows: tuple[Row, ...]
    all: Total
    headers: tuple[Total, ...]
    topics: tuple[Total, ...]
    bound: tuple[str, ...]  # ATen overloads that the schemas bind
    served: tuple[str, ...]  # those of them whose functions are all there
    run: Run | None  # None: the suite has not been run


def coverage(program: Program, run: Run | None) -> Coverage:
    """The coverage of the program's vendor."""
    assert program.vendor is not None
    found = rows(program, run)
    present = {row.function.symbol for row in found if row.state is not State.MISSING}
    served = (b for b in program.bindings if present.issuperset(b.symbols))
    return Coverage(
        vendor=program.vendor.name,
        doc=program.vendor.doc,
        rows=found,
        all=_total("all", found),
        headers=_grouped(found, lambda row: row.function.header),
        topics=tuple(sorted(_grouped(found, lambda row: row.topic), key=lambda total: total.name)),
        bound=tuple(sorted(b.overload.name for b in program.bindings)),
        served=tuple(sorted(b.overload.name for b in served)),
        run=run,
    )


def _grouped(found: Iterable[Row], key: Callable[[Row], str]) -> tuple[Total, ...]:
    groups: dict[str, list[Row]] = {}
    for row in found:
        groups.setdefault(key(row), []).append(row)
    return tuple(_total(name, group) for name, group in groups.items())


def _total(name: str, group: Iterable[Row]) -> Total:
    members = tuple(group)
    states = tuple(
        (state, sum(row.state is state for row in members)) for state in State if state is not State.CONVERTED
    )
    return Total(
        name=name,
        functions=len(members),
        states=states,
        converted=sum(row.converted for row in members),
        figures=reduce(Figures.plus, (row.figures for row in members), Figures()),
    )

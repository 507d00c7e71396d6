"""One source per topic, so that a changed op compiles its topic's file and no other."""

from collections.abc import Iterator

from diopigen.model.program import Program
from diopigen.model.vendor import Origin
from diopigen.targets.calls.view import calls_view
from diopigen.targets.output import Output, Render

_FUNCTIONS = 40  # of one unit: beyond that a topic is split, for a unit is compiled by one process


def outputs(program: Program, render: Render) -> Iterator[Output]:
    """The sources of the functions whose plan is a call of ATen."""
    planned = {p.symbol for p in program.plans if p.implementation.origin is Origin.ATEN}
    topics: dict[str, list[str]] = {}
    for op in program.ops:
        topics.setdefault(op.topic, []).extend(f.symbol for f in program.forms(op.name) if f.symbol in planned)
    for topic, symbols in topics.items():
        for part, start in enumerate(range(0, len(symbols), _FUNCTIONS), start=1):
            suffix = f"_{part}" if len(symbols) > _FUNCTIONS else ""
            view = calls_view(program, topic, symbols[start : start + _FUNCTIONS])
            yield Output(path=f"calls/calls_{topic}{suffix}.cpp", text=render("calls/calls.cpp.j2", view))

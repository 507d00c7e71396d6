"""One source per topic, so that a changed op compiles its topic's file and no other."""

from collections.abc import Iterator

from diopigen.model.program import Program
from diopigen.targets.composites.view import composites_view
from diopigen.targets.output import Output, Render


def outputs(program: Program, render: Render) -> Iterator[Output]:
    """The sources of the functions that the vendor's plans compose."""
    composed = {composition.symbol for composition in program.compositions}
    owners = {f.op for f in program.functions if f.symbol in composed}
    for topic in dict.fromkeys(op.topic for op in program.ops if op.name in owners):
        view = composites_view(program, topic)
        yield Output(path=f"composites/composite_{topic}.cpp", text=render("composites/composite.cpp.j2", view))

"""One source per topic, so that a changed op compiles its topic's file and no other."""

from collections.abc import Iterator

from diopigen.model.program import Program
from diopigen.model.vendor import Origin
from diopigen.targets.kernels.view import kernels_view
from diopigen.targets.output import Output, Render


def outputs(program: Program, render: Render) -> Iterator[Output]:
    """The sources of the functions whose plan is the schema's own expression."""
    generated = frozenset(p.symbol for p in program.plans if p.implementation.origin is Origin.GENERATED)
    owners = {f.op for f in program.functions if f.symbol in generated}
    for topic in dict.fromkeys(op.topic for op in program.ops if op.name in owners):
        view = kernels_view(program, topic, generated)
        yield Output(path=f"kernels/elementwise_{topic}.cpp", text=render("kernels/elementwise.cpp.j2", view))

"""Sources of a topic's operators, a few in each: a changed op compiles one, which takes seconds even for a GPU."""

from collections.abc import Iterator

from diopigen.model.program import Program
from diopigen.model.vendor import Origin
from diopigen.targets.kernels.view import kernels_view
from diopigen.targets.output import Output, Render

_MOST = 8  # operators of a source


def outputs(program: Program, render: Render) -> Iterator[Output]:
    """The sources of the functions whose plan is the schema's own expression."""
    generated = frozenset(p.symbol for p in program.plans if p.implementation.origin is Origin.GENERATED)
    owners = {f.op for f in program.functions if f.symbol in generated}
    topics: dict[str, list[str]] = {}
    for op in program.ops:
        if op.name in owners:
            topics.setdefault(op.topic, []).append(op.name)
    for topic, ops in topics.items():
        for first in range(0, len(ops), _MOST):
            part = ops[first : first + _MOST]
            symbols = frozenset(f.symbol for f in program.functions if f.op in part) & generated
            name = f"elementwise_{topic}_{first // _MOST}" if first else f"elementwise_{topic}"
            view = kernels_view(program, topic, symbols)
            yield Output(path=f"kernels/{name}.cpp", text=render("kernels/elementwise.cpp.j2", view))

"""Sources of a topic's operators, a few in each: a changed op compiles one, which takes seconds even for a GPU."""

from collections.abc import Iterator
from functools import partial

from diopigen.model.op import Op
from diopigen.model.program import Program
from diopigen.model.vendor import Origin
from diopigen.targets.kernels.view import kernels_view
from diopigen.targets.output import Part, Piece, Render

_MOST = 8  # operators of a source


def outputs(program: Program, render: Render) -> Iterator[Part]:
    """The sources of the functions whose plan is the schema's own expression."""
    generated = _generated(program)
    owners = {f.op for f in program.functions if f.symbol in generated}
    topics: dict[str, list[Op]] = {}
    for op in program.ops:
        if op.name in owners:
            topics.setdefault(op.topic, []).append(op)
    for topic, ops in topics.items():
        for first in range(0, len(ops), _MOST):
            part = ops[first : first + _MOST]
            name = f"elementwise_{topic}_{first // _MOST}" if first else f"elementwise_{topic}"
            yield Part(f"kernels/{name}.cpp", program.part(part), partial(_kernels, topic=topic, render=render))


def pieces(program: Program, render: Render) -> Iterator[Piece]:
    """The functors and the functions of each op."""
    generated = _generated(program)
    for op in program.ops:
        view = kernels_view(program.part((op,)), op.topic, generated)
        for part in ("functors", "functions") if view.functions else ():
            yield Piece(
                paths=f"kernels/elementwise_{op.topic}*.cpp",
                text=render(f"kernels/{part}.cpp.j2", view),
                beside="#include <string_view>" if view.texts else "",
            )


def _kernels(program: Program, topic: str, render: Render) -> str:
    return render("kernels/elementwise.cpp.j2", kernels_view(program, topic, _generated(program)))


def _generated(program: Program) -> frozenset[str]:
    return frozenset(p.symbol for p in program.plans if p.implementation.origin is Origin.GENERATED)

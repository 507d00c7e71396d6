"""Which files the adaptor of a vendor consists of."""

from collections.abc import Iterator

from diopigen.model.program import Program
from diopigen.targets.adaptor.view import AdaptorView, adaptor_view, primitives_view, record_view
from diopigen.targets.output import Output, Render


def outputs(program: Program, render: Render) -> Iterator[Output]:
    """Paths are relative to the vendor's output folder; without a vendor there is nothing to write.

    One source per topic, so that a changed op compiles its topic's file and no other.
    """
    if program.vendor is None:
        return
    for view in _views(program):
        yield Output(path=f"adaptor/adaptor_{view.topic}.cpp", text=render("adaptor/adaptor.cpp.j2", view))
    primitives = primitives_view(program)
    yield Output(path="adaptor/primitives.cpp", text=render("adaptor/primitives.cpp.j2", primitives))
    yield Output(path="adaptor/abi_record.cpp", text=render("adaptor/abi_record.cpp.j2", record_view(program)))


def _views(program: Program) -> Iterator[AdaptorView]:
    planned = {plan.symbol for plan in program.plans}
    served = {f.op for f in program.functions if f.symbol in planned}
    for topic in dict.fromkeys(op.topic for op in program.ops if op.name in served):
        yield adaptor_view(program, topic)

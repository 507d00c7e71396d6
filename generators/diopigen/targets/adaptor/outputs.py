"""Which files the adaptor of a vendor consists of."""

from collections.abc import Iterable, Iterator
from functools import partial

from diopigen.model.op import Function, Op
from diopigen.model.program import Program
from diopigen.model.vendor import Origin
from diopigen.targets.adaptor.view import (
    adaptor_view,
    declarations_view,
    primitives_view,
    record_view,
)
from diopigen.targets.output import Output, Part, Render


def outputs(program: Program, render: Render) -> Iterator[Output | Part]:
    """Paths are relative to the vendor's output folder; without a vendor there is nothing to write.

    One source per topic, so that a changed op compiles its topic's file and no other.
    """
    if program.vendor is None:
        return
    for topic, ops in _topics(program).items():
        text = partial(_adaptor, topic=topic, render=render)
        yield Part(f"adaptor/adaptor_{topic}.cpp", program.part(ops), text)
    primitives = primitives_view(program)
    yield Output(path="adaptor/primitives.cpp", text=render("adaptor/primitives.cpp.j2", primitives))
    yield Output(path="adaptor/abi_record.cpp", text=render("adaptor/abi_record.cpp.j2", record_view(program)))
    for name in (program.vendor.name, *(base.name for base in program.vendor.bases)):
        yield declarations(name, _own_functions(program, name), render)


def declarations(vendor: str, functions: Iterable[Function], render: Render) -> Output:
    """The header that declares these functions in the namespace of `vendor`, for its own sources.

    It has the name that the established adaptor gives it, and a folder of its own for each vendor.
    """
    text = render("adaptor/impl_functions.hpp.j2", declarations_view(vendor, functions))
    return Output(path=f"declarations/{vendor}/impl_functions.hpp", text=text)


def _own_functions(program: Program, vendor: str) -> Iterator[Function]:
    """Those that stand in the vendor's own namespace: one from a namespace inside it has another name."""
    assert program.vendor is not None
    namespace = f"impl::{vendor}"
    found = program.vendor.implementations
    own = {i.symbol for i in found if i.namespace == namespace and i.origin is not Origin.EXPORTED}
    return (function for function in program.functions if function.symbol in own)


def _topics(program: Program) -> dict[str, list[Op]]:
    """The ops of which the vendor has a function that it does not export itself, by topic."""
    planned = {plan.symbol for plan in program.plans if plan.implementation.origin is not Origin.EXPORTED}
    served = {f.op for f in program.functions if f.symbol in planned}
    topics: dict[str, list[Op]] = {}
    for op in program.ops:
        if op.name in served:
            topics.setdefault(op.topic, []).append(op)
    return topics


def _adaptor(program: Program, topic: str, render: Render) -> str:
    return render("adaptor/adaptor.cpp.j2", adaptor_view(program, topic))

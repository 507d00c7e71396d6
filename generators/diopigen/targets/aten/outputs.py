"""Which files the ATen wrappers consist of."""

from collections.abc import Iterator

from diopigen.model.program import Program
from diopigen.targets.aten.view import file_views, registration_view
from diopigen.targets.output import Output, Render


def outputs(program: Program, render: Render) -> Iterator[Output]:
    """Paths are relative to the vendor's output folder; without bindings there is nothing to write."""
    if not program.bindings:
        return
    for view in file_views(program):
        yield Output(path=f"aten/operators_{view.index}.cpp", text=render("aten/operators.cpp.j2", view))
    yield Output(path="aten/registration.cpp", text=render("aten/registration.cpp.j2", registration_view(program)))

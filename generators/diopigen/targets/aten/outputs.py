"""Which files the ATen wrappers consist of."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from diopigen.model.program import Program
from diopigen.targets.aten.view import file_view, registration_view, shards
from diopigen.targets.output import Output, Part, Render


def outputs(program: Program, render: Render) -> Iterator[Output | Part]:
    """Paths are relative to the vendor's output folder; without bindings there is nothing to write."""
    if not program.bindings:
        return
    for index, part in shards(program):
        text = partial(_operators, index=index, render=render)
        yield Part(f"aten/operators_{index}.cpp", part, text)
    for file in program.rewritten:
        if file.text:
            yield Output(path=f"aten/{'/'.join(Path(file.path).parts[-2:])}", text=file.text)
    yield Output(path="aten/registration.cpp", text=render("aten/registration.cpp.j2", registration_view(program)))


def _operators(program: Program, index: int, render: Render) -> str:
    return render("aten/operators.cpp.j2", file_view(program, index))

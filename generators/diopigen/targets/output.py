"""What a target yields, and how its templates are rendered."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from diopigen.page import kit

if TYPE_CHECKING:
    import jinja2

    from diopigen.model.program import Program


# The targets of vendors that print what kernels and cases say; each gives the pieces of an entry. Others cannot.
OF_ENTRIES = ("kernels", "compiler", "conformance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A file to write; `path` is relative to the output root and uses forward slashes."""

    path: str  # e.g. "include/diopi/functions.h"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What one entry alone says in a file; it stands there once."""

    paths: str  # a pattern; e.g. "kernels/elementwise_activation*.cpp": one of these
    text: str
    beside: str = ""  # what the file has elsewhere if it has the piece; where neither is, there is nothing to replace


class Part:
    """A file to write, made when its text is asked for, whose text follows from a part of the program alone."""

    def __init__(self, path: str, program: "Program", text: "Callable[[Program], str]") -> None:
        self.path = path
        self.program = program
        self._text = text

    @property
    def text(self) -> str:
        return self._text(self.program)


def made(output: Output | Part) -> Output:
    """Whatever earlier runs made."""
    return output if isinstance(output, Output) else Output(path=output.path, text=output.text)


@cache
def environment(folder: Path) -> "jinja2.Environment":
    """The one environment of all templates in `folder`."""
    return kit.environment(folder)


Render = Callable[[str, object], str]


def renderer(templates: Path) -> Render:
    """A function that renders `templates/<name>` with the one variable `view`."""
    loaded = environment(templates)

    def render(name: str, view: object) -> str:
        return loaded.get_template(name).render(view=view)

    return render

"""Pages of the command line: what the programs' parsers say, as Markdown."""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from diopigen.targets.docs.markdown import code, prose
from diopigen.targets.docs.site import CommandHelp, ProgramHelp

_AS_IT_IS = "\b"  # begins a paragraph whose lines stay as they are


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionView:
    names: str  # e.g. "`-V, --version`"
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandView:
    name: str  # e.g. "diopigen lint"
    usage: str
    paragraphs: tuple[str, ...]
    options: tuple[OptionView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramView:
    program: CommandView
    sections: tuple[tuple[str, tuple[CommandView, ...]], ...]  # e.g. (("Generate", (...)), ...)


def program_view(program: ProgramHelp) -> ProgramView:
    """One program."""
    return ProgramView(
        program=_command(program.program),
        sections=tuple((title, tuple(map(_command, commands))) for title, commands in program.sections),
    )


def _command(command: CommandHelp) -> CommandView:
    return CommandView(
        name=command.name,
        usage=command.usage,
        paragraphs=tuple(paragraph for text in command.text.split("\n\n") for paragraph in _paragraphs(text)),
        options=tuple(OptionView(names=code(names), text=prose(text)) for names, text in command.options),
    )


def _paragraphs(text: str) -> Iterator[str]:
    """What is indented below a line is a block of its own."""
    if not text.startswith(_AS_IT_IS):
        yield prose(text)
        return
    lines = text.removeprefix(_AS_IT_IS).strip("\n").splitlines()
    if not lines[0].startswith(" "):
        yield prose(lines.pop(0))
    block = textwrap.dedent("\n".join(lines))
    yield f"```\n{block}\n```"

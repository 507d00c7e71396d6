"""What the three programs have in common: version, colours, help in sections, commands that load when called for."""

import ast
import os
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import click

from diopigen.boundary import Program
from diopigen.programs import loading
from diopigen.verbosity import Loudness, choose

_PACKAGE = "diopigen"  # the distribution that has the three programs
_COLOURS = {"auto": None, "always": True, "never": False}


class CommandGroup(Program):
    """A program whose `sections` list its commands for the help, by title.

    Commands that nothing has added are the `command` of the module of that name in `package`.
    """

    package: ClassVar[str] = ""  # e.g. "op_tools.commands"
    sections: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __init__(self, *words: Any, **extra: Any) -> None:
        super().__init__(*words, **extra)
        _add_shared_options(self, hidden=False)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in self.sections.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if found is None and self.package and cmd_name in self._loadable():
            with loading():
                found = import_module(self._module(cmd_name)).command
            assert isinstance(found, click.Command)
            self.add_command(found, cmd_name)
        if found is not None and not any(param.name == "color" for param in found.params):
            _add_shared_options(found, hidden=True)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, self._sentence(name)) for name in names])

    def _loadable(self) -> tuple[str, ...]:
        return tuple(name for names in self.sections.values() for name in names)

    def _module(self, name: str) -> str:
        return f"{self.package}.{name.replace('-', '_')}"

    def _sentence(self, name: str) -> str:
        """The first sentence of a command's help; a module that is not loaded is not loaded for it."""
        command = self.commands.get(name)
        return _first_sentence(_docstring(self._module(name)) if command is None else command.help or "")


class SectionedCommand(click.Command):
    """A command with many options: `sections` lists the names of their parameters for the help, by title."""

    def __init__(self, *words: Any, sections: Mapping[str, tuple[str, ...]], **extra: Any) -> None:
        super().__init__(*words, **extra)
        self.sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        titles = {name: title for title, names in self.sections.items() for name in names}
        shown: dict[str, list[tuple[str, str]]] = {title: [] for title in (*self.sections, _OTHERS)}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                shown[titles.get(param.name or "", _OTHERS)].append(record)
        for title, records in shown.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


_OTHERS = "Other options"


def _add_shared_options(command: click.Command, hidden: bool) -> None:
    """What every command takes, before its name and behind it; the help of the program shows it."""
    shared: dict[str, Any] = {"hidden": hidden, "expose_value": False, "is_eager": True}
    options = (
        click.option(
            "-q", "--quiet", is_flag=True, callback=_choosing(Loudness.QUIET), help=f"Only {_QUIETLY}.", **shared
        ),
        click.option(
            "-v", "--verbose", is_flag=True, callback=_choosing(Loudness.VERBOSE), help=f"Also {_VERBOSELY}.", **shared
        ),
        click.option(
            "--color",
            type=click.Choice(tuple(_COLOURS)),
            default=None if hidden else "auto",
            show_default=True,
            callback=_choose_colour,
            help="When to use colours: auto is on a terminal, and as NO_COLOR and FORCE_COLOR say.",
            **shared,
        ),
        click.version_option(None, "-V", "--version", package_name=_PACKAGE, hidden=hidden),
    )
    for option in reversed(options):
        option(command)


_QUIETLY = "what is wrong and what was asked for: no progress, no sums, no next steps"
_VERBOSELY = "notes, what was read, and how long it took"


def _choosing(loudness: Loudness) -> Callable[[click.Context, click.Parameter, bool], None]:
    def chosen(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if not value:
            return
        choose(context, loudness)
        if loudness is Loudness.VERBOSE:
            context.call_on_close(_time_teller(context.find_root().info_name or ""))

    return chosen


def _time_teller(program: str) -> Callable[[], None]:
    """Says, when a command has ended, which program it was and how long it ran."""
    from importlib.metadata import version

    begin = time.perf_counter()
    of = f"{program} {version(_PACKAGE)} of {Path(__file__).parent}, Python {sys.version.split()[0]}"
    return lambda: click.echo(f"{of}: {time.perf_counter() - begin:.2f} s", err=True)


def _choose_colour(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Where nothing is chosen the terminal decides; a command has the colours of its program but for its own."""
    if value is None:
        return
    chosen = _COLOURS[value]
    if chosen is None and os.environ.get("NO_COLOR"):
        chosen = False
    elif chosen is None and os.environ.get("FORCE_COLOR"):
        chosen = True
    context.color = chosen


def _docstring(module: str) -> str:
    """That of the function `command` of a module."""
    found = find_spec(module)
    assert found is not None and found.origin is not None
    tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
    commands = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "command")
    return ast.get_docstring(next(commands)) or ""


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".")

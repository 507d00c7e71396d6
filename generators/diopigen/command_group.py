"""What the three programs have in common: version, colours, help in sections, commands that load when called for."""

import ast
import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import click

from diopigen.boundary import Program
from diopigen.programs import loading

_COLOURS = {"auto": None, "always": True, "never": False}


class CommandGroup(Program):
    """A program whose `sections` list its commands for the help, by title.

    Commands that nothing has added are the `command` of the module of that name in `package`.
    """

    package: ClassVar[str] = ""  # e.g. "op_tools.commands"
    sections: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __init__(self, *words: Any, **extra: Any) -> None:
        super().__init__(*words, **extra)
        click.version_option(None, "-V", "--version", package_name="diopigen")(self)
        _colour_option(self, default="auto")

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
            _colour_option(found, default=None)
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


def _colour_option(command: click.Command, default: str | None) -> None:
    """`--color`, which every command takes, before its name and behind it; the help of the program shows it."""
    option = click.option(
        "--color",
        type=click.Choice(tuple(_COLOURS)),
        default=default,
        show_default=True,
        hidden=default is None,
        expose_value=False,
        is_eager=True,
        callback=_choose_colour,
        help="When to use colours: auto is on a terminal, and as NO_COLOR and FORCE_COLOR say.",
    )
    option(command)


def _choose_colour(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """click.echo follows the context, rich the variables; where nothing is chosen both look at the terminal."""
    if value is None:
        return
    chosen = _COLOURS[value]
    if chosen is None and os.environ.get("NO_COLOR"):
        chosen = False
    elif chosen is None and os.environ.get("FORCE_COLOR"):
        chosen = True
    context.color = chosen
    if value != "auto":
        os.environ.pop("FORCE_COLOR" if value == "never" else "NO_COLOR", None)
        os.environ["NO_COLOR" if value == "never" else "FORCE_COLOR"] = "1"


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

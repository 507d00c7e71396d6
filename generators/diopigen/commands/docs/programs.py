"""What the programs say about themselves, asked of their own parsers."""

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module

import click

from diopigen.command_group import CommandGroup
from diopigen.programs import PROGRAMS, missing
from diopigen.targets.docs.site import CommandHelp, ProgramHelp


def programs() -> Iterator[ProgramHelp]:
    """Each program; one whose packages are not installed is left out, and standard error says so."""
    for name in PROGRAMS:
        try:
            yield _program(name, parser(name))
        except ModuleNotFoundError as error:
            print(f"the site has no page for {name}: {missing(str(error.name), name)}", file=sys.stderr)


def parser(program: str) -> CommandGroup:
    """The parser of one of PROGRAMS."""
    module = import_module(PROGRAMS[program])
    return next(value for value in vars(module).values() if isinstance(value, CommandGroup))


def _program(name: str, group: CommandGroup) -> ProgramHelp:
    context = click.Context(group, info_name=name)

    def help_of(command: str) -> CommandHelp:
        found = group.get_command(context, command)
        assert found is not None
        return _command(f"{name} {command}", found, context)

    sections = tuple((title, tuple(map(help_of, commands))) for title, commands in group.sections.items())
    return ProgramHelp(program=_command(name, group, context), sections=sections)


def _command(name: str, command: click.Command, context: click.Context) -> CommandHelp:
    records = (param.get_help_record(context) for param in command.params)
    return CommandHelp(
        name=name,
        usage=" ".join([name, *command.collect_usage_pieces(context)]),
        text=inspect.cleandoc(command.help or ""),
        options=tuple(record for record in records if record is not None),
    )

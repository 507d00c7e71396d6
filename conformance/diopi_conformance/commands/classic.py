"""`diopi-conformance --mode ...`: the established way to ask for what the other commands do."""

import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from diopi_conformance.cases.model_cases import ModelDataError, model_names
from diopi_conformance.classic import ALL, MODES, Classic, ClassicError, translated
from diopigen.verbosity import tell

MARKS = ("--mode", "--get_model_list")  # an option by which this way is known


@click.command("classic")
@click.option("--mode", type=click.Choice(MODES), default="run_test", help="gen_data, gen_case or run_test.")
@click.option("--fname", default=ALL, help="An operator or a function; all_ops.")
@click.option("--model_name", default="", help="Only calls that this model makes.")
@click.option("--filter_dtype", multiple=True, help="Leave this type out, e.g. float64.")
@click.option("--impl_folder", type=click.Path(path_type=Path), help="Of the vendor or its libraries.")
@click.option("--get_model_list", is_flag=True, help="List the models.")
@click.option("--html_report", is_flag=True, help="Write a page too.")
@click.option("--nhwc", is_flag=True, help="Images with their channels innermost.")
@click.option("--four_bytes", "--four-bytes", is_flag=True, help="Indices are int32.")
def command(get_model_list: bool, **options: Any) -> None:
    """The established options, which stand for the other commands. What they stand for is told first."""
    if get_model_list:
        try:
            names = model_names()
        except ModelDataError as error:
            raise click.UsageError(str(error)) from None
        click.echo("\n".join(names))
        return
    try:
        words = translated(Classic(**options), Path())
    except ClassicError as error:
        raise click.UsageError(str(error)) from None
    tell(f"this is 'diopi-conformance {shlex.join(words)}'", err=True)
    module = import_module(f"diopi_conformance.commands.{words[0]}")
    name, context = f"diopi-conformance {words[0]}", click.get_current_context()
    sys.exit(module.command.main(words[1:], prog_name=name, standalone_mode=False, parent=context))


def spelled(args: list[str]) -> list[str]:
    """The arguments as click reads them: several types may follow one --filter_dtype."""
    found: list[str] = []
    listing = False
    for word in args:
        if word.startswith("--"):
            listing = word == "--filter_dtype"
            found += [] if listing else [word]
        else:
            found += ["--filter_dtype", word] if listing else [word]
    return found

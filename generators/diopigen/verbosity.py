"""How much a command says: less with --quiet, more with --verbose, which every command of the three programs takes."""

from enum import IntEnum
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

_KEY = "diopigen.verbosity"  # of what a context keeps


class Loudness(IntEnum):
    QUIET = 0  # what is wrong, and what was asked for
    USUAL = 1  # also progress, sums and what to do next
    VERBOSE = 2  # also notes, and what was read


def choose(context: click.Context, loudness: Loudness) -> None:
    """For all of the command line that `context` is of."""
    context.meta[_KEY] = loudness


def loudness() -> Loudness:
    """What the command line chose; USUAL where none runs."""
    context = click.get_current_context(silent=True)
    found: Loudness = Loudness.USUAL if context is None else context.meta.get(_KEY, Loudness.USUAL)
    return found


def quiet() -> bool:
    """Whether progress, sums and next steps are left out."""
    return loudness() is Loudness.QUIET


def verbose() -> bool:
    """Whether notes are shown."""
    return loudness() is Loudness.VERBOSE


def tell(text: str, *, err: bool = False) -> None:
    """Prints what --quiet leaves out."""
    if not quiet():
        click.echo(text, err=err)


def detail(text: str) -> None:
    """Prints on standard error what only --verbose shows."""
    if verbose():
        click.echo(text, err=True)


def console(**options: Any) -> "Console":
    """A console of rich's that has colours where click.echo has them, as --color says."""
    from rich.console import Console

    context = click.get_current_context(silent=True)
    match None if context is None else context.color:
        case True:
            return Console(force_terminal=True, no_color=False, **options)
        case False:
            return Console(color_system=None, **options)
        case _:
            return Console(**options)

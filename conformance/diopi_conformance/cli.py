"""The command line of the suite; each command is a module of commands/, imported when it is called for."""

from collections.abc import Mapping
from typing import ClassVar

import click

from diopigen.command_group import CommandGroup


class _Commands(CommandGroup):
    package = "diopi_conformance.commands"
    sections: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "Run": ("run", "compiled", "plan", "data"),
        "Look at results": ("report", "repro"),
        "Add cases": ("capture",),
    }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The established options begin without a command; see commands/classic.py."""
        if args and args[0].startswith("-"):
            from diopi_conformance.commands.classic import MARKS, spelled

            if any(word.partition("=")[0] in MARKS for word in args):
                args = ["classic", *spelled(args)]
        return super().parse_args(ctx, args)

    def _loadable(self) -> tuple[str, ...]:
        return (*super()._loadable(), "classic")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def cli() -> None:
    """Run the conformance cases of the schemas against a vendor's library.

    \b
    Examples:
      diopi-conformance plan --vendor droplet --op add       list the cases of one operator
      diopi-conformance run --vendor droplet                 run everything in build/droplet/lib
      diopi-conformance run --vendor droplet --dtype bf16 --jobs 2
      diopi-conformance run --vendor droplet --id 'add/f32/strided/0'
      diopi-conformance run --vendor droplet --failed conformance_results/droplet.json
      diopi-conformance data --vendor droplet --out results  write what PyTorch computes, for machines without it
      diopi-conformance report conformance_results/droplet.json
      diopi-conformance --mode run_test --fname add --impl_folder build/droplet/lib    the established way

    Filters take shell patterns and may be given several times. Exit codes: 0 everything passed, 1 something
    did not or did not run, 2 wrong usage or an unfit machine; docs/exit-codes.md has the others.
    """


def main() -> None:
    """The console script."""
    cli(prog_name="diopi-conformance")


if __name__ == "__main__":
    main()

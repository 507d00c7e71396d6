"""The command line of the suite; each command is a module of commands/, imported when it is called for."""

from importlib import import_module

import click

from diopigen.boundary import Program

# In the order in which help lists them; a name is a module of commands/ whose `command` it is.
_COMMANDS = (
    "plan",
    "data",
    "run",
    "compiled",
    "report",
    "repro",
    "capture",
)


class _Commands(Program):
    """A group that imports a command when it is asked for, so that none pays for the others' imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The established options begin without a command; see commands/classic.py."""
        if args and args[0].startswith("--"):
            from diopi_conformance.commands.classic import MARKS, spelled

            if any(word.partition("=")[0] in MARKS for word in args):
                args = ["classic", *spelled(args)]
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in (*_COMMANDS, "classic"):
            return None
        found: click.Command = import_module(f"diopi_conformance.commands.{cmd_name}").command
        return found


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="diopigen")
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

"""The command `op-tools`."""

from collections.abc import Mapping
from typing import ClassVar

import click

from diopigen.command_group import CommandGroup
from op_tools.environment import BadVariable


class _Commands(CommandGroup):
    """Says what is wrong with a variable in one line, whichever command reads it."""

    refusals = (BadVariable,)
    package = "op_tools.commands"
    sections: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "Run a program": ("run", "monitor", "bisect"),
        "Look at results": ("report", "compare-runs", "replay", "export"),
        "Test a device": ("torch-tests", "coverage"),
    }


@click.group(
    "op-tools",
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
def main() -> None:
    """See, compare, capture, time and replay every operator of a PyTorch program.

    \b
    Examples:
      op-tools run train.py --compare                          compare each operator of a script with the CPU
      op-tools run train.py --capture                          record each call, to run it again elsewhere
      op-tools replay captures --device dipu --acc-check       run the recorded calls on a device
      op-tools bisect train.py --metric loss                   find the operator that makes the loss differ

    In Python: `with op_tools.OpAutoCompare(): ...`. 'op-tools COMMAND --help' describes a command.
    """


if __name__ == "__main__":
    main()

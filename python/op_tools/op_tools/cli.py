"""The command `op-tools`."""

import click

from diopigen.boundary import Program
from op_tools.commands.bisect import command as bisect
from op_tools.commands.compare_runs import command as compare_runs
from op_tools.commands.export import command as export
from op_tools.commands.monitor import command as monitor
from op_tools.commands.replay import command as replay
from op_tools.commands.report import command as report
from op_tools.commands.run import command as run
from op_tools.commands.torch_tests import command as torch_tests
from op_tools.environment import BadVariable


class _Commands(Program):
    """Says what is wrong with a variable in one line, whichever command reads it."""

    refusals = (BadVariable,)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def main() -> None:
    """See, compare, capture, time and replay every operator of a PyTorch program.

    \b
    op-tools run train.py --compare       compare each operator of a script with the CPU
    op-tools run train.py --capture       keep each call, to run it again elsewhere
    op-tools replay captures --device dipu --acc-check
    op-tools export captures              make conformance cases of them
    op-tools report op_tools_results      tell what was found, on one HTML page
    op-tools bisect train.py --metric loss --rtol 1e-3
    op-tools compare-runs on_cpu on_dipu  find where two recorded runs part
    op-tools torch-tests --device dipu    run torch's own tests on a device
    op-tools monitor -- python train.py   write down what a process uses

    In Python: `with op_tools.OpAutoCompare(): ...`
    """


main.add_command(run)
main.add_command(bisect)
main.add_command(compare_runs)
main.add_command(replay)
main.add_command(export)
main.add_command(report)
main.add_command(torch_tests)
main.add_command(monitor)


if __name__ == "__main__":
    main()

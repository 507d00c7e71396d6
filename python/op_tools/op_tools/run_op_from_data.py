"""The established name of `op-tools replay`: `python -m op_tools.run_op_from_data DIR --acc_check`, or the script.

All options are replay's; it has the established spellings, too: --run_times, --only_run_forward, --sync_time_measure,
--acc_check.
"""

import sys
from pathlib import Path

if not __package__:  # started by its path: Python then looks for modules in this folder, and not for the package
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from op_tools.commands.replay import command

if __name__ == "__main__":
    command(prog_name="run_op_from_data.py")

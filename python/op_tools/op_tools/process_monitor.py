"""The established name of `op-tools monitor`: `python -m op_tools.process_monitor --pid PID`, or the script."""

import sys
from pathlib import Path

if not __package__:  # started by its path: Python then looks for modules in this folder, and not for the package
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from op_tools.commands.monitor import command

if __name__ == "__main__":
    command(prog_name="process_monitor.py")

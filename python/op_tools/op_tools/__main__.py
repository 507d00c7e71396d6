"""`python -m op_tools`, the command `op-tools`."""

from op_tools.cli import main

main(prog_name="op-tools")

"""`python -m op_tools` is the command `op-tools`."""

from diopigen.programs import op_tools

op_tools()

"""`python -m diopigen` is the command `diopigen`."""

from diopigen.cli import main

main()

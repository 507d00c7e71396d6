"""`python -m diopigen` is the command `diopigen`."""

from diopigen.programs import diopigen

diopigen()

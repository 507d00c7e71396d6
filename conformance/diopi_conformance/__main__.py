"""`python -m diopi_conformance` is the command `diopi-conformance`."""

from diopigen.programs import diopi_conformance

diopi_conformance()

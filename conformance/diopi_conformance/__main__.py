"""`python -m diopi_conformance` is the console script `diopi-conformance`."""

from diopi_conformance.cli import main

main()

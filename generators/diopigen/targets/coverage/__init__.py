"""What a vendor has of the contract, function by function and type by type."""

from diopigen.targets.coverage.figures import Run, conformance_run
from diopigen.targets.coverage.outputs import FORMATS, page
from diopigen.targets.coverage.totals import Coverage, coverage

__all__ = ["FORMATS", "Coverage", "Run", "conformance_run", "coverage", "page"]

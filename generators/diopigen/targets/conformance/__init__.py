"""The conformance plan: every case of every function, as data that a runner without the generator reads."""

from diopigen.targets.conformance.view import case_lines, outputs, pieces

__all__ = ["case_lines", "outputs", "pieces"]

"""What the compiler back end knows of the operators: one table, read when a program is compiled."""

from diopigen.targets.compiler.outputs import outputs, pieces

__all__ = ["outputs", "pieces"]

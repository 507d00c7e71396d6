"""The C headers of the contract."""

from diopigen.targets.header.outputs import ABI, outputs, own_output, pieces, views

__all__ = ["ABI", "outputs", "own_output", "pieces", "views"]

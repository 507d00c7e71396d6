"""The C headers of the contract."""

from diopigen.targets.header.outputs import ABI, outputs, views

__all__ = ["ABI", "outputs", "views"]

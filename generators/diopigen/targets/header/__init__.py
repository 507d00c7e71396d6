"""The C headers of the contract."""

from diopigen.targets.header.outputs import outputs, views

__all__ = ["outputs", "views"]

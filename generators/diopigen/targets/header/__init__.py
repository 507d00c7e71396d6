"""The C headers of the contract."""

from diopigen.targets.header.outputs import outputs

__all__ = ["outputs"]

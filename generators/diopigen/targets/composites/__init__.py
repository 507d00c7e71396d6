"""The functions that are composed of other functions of the contract."""

from diopigen.targets.composites.outputs import outputs

__all__ = ["outputs"]

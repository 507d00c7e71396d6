"""The wrappers through which PyTorch reaches the functions of the contract."""

from diopigen.targets.aten.outputs import outputs

__all__ = ["outputs"]

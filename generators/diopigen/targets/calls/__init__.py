"""Functions of a vendor that only call PyTorch: one ATen operator behind each."""

from diopigen.targets.calls.outputs import outputs

__all__ = ["outputs"]

"""The vendor's own operators as torch_dipu makes them operators of torch."""

from diopigen.targets.torch_operators.outputs import outputs

__all__ = ["outputs"]

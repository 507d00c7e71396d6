"""The elementwise kernels that follow from the schemas' `kernel:` lines."""

from diopigen.targets.kernels.outputs import outputs

__all__ = ["outputs"]

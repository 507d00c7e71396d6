"""The elementwise kernels that follow from the schemas' `kernel:` lines."""

from diopigen.targets.kernels.outputs import outputs, pieces

__all__ = ["outputs", "pieces"]

"""The adaptor: the exported C symbols of a vendor's library and the conversions before and after each."""

from diopigen.targets.adaptor.outputs import declarations, outputs

__all__ = ["declarations", "outputs"]

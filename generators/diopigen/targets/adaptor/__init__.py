"""The adaptor: the exported C symbols of a vendor's library and the conversions before and after each."""

from diopigen.targets.adaptor.outputs import outputs

__all__ = ["outputs"]

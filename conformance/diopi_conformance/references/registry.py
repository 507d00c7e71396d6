"""Which written reference serves which function: by symbol, else by op and form."""

import os
import runpy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.expected.expectations import FILES, SCRATCH

if TYPE_CHECKING:
    from diopi_conformance.cases.plan import Function
    from diopi_conformance.expected.reference_call import ReferenceCall

MEMORY_FORMATS = {
    "contiguous": torch.contiguous_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
    "preserve": torch.preserve_format,
}

Reference = Callable[["ReferenceCall"], dict[str, Any]]

_BY_SYMBOL: dict[str, Reference] = {}


def reference_for(*symbols: str) -> Callable[[Reference], Reference]:
    """Registers the decorated function for these C symbols."""

    def register(function: Reference) -> Reference:
        for symbol in symbols:
            assert symbol not in _BY_SYMBOL, f"'{symbol}' has two written references"
            _BY_SYMBOL[symbol] = function
        return function

    return register


def load_files() -> None:
    """Registers the references of a vendor's own operators, whose files the command line names."""
    for path in filter(None, os.environ.get(FILES, "").split(os.pathsep)):
        runpy.run_path(path)


def written_reference(function: "Function") -> Reference | None:
    """The reference written for this function, if there is one."""
    return _BY_SYMBOL.get(function.symbol)


__all__ = ["MEMORY_FORMATS", "SCRATCH", "Reference", "reference_for", "written_reference"]

"""Written references called by symbol, and numbers to call them with."""

from typing import Any

import torch

from diopi_conformance.references import written_reference


def reference(symbol: str, **values: Any) -> dict[str, Any]:
    """What the reference written for this C symbol gives for arguments by name."""
    function: Any = type("Function", (), {"symbol": symbol})
    written = written_reference(function)
    assert written is not None
    call: Any = values
    return written(call)


def numbers(*sizes: int, seed: int = 0) -> torch.Tensor:
    """Normal numbers in float64, of shape `sizes`."""
    return torch.randn(sizes, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))

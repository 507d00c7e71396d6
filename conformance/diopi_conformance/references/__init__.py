"""References written out by hand, for functions that no single PyTorch operator on the CPU computes."""

from diopi_conformance.references import (
    copies,
    detection,
    indexing,
    layers,
    losses,
    norms,
    optimizers,
    randoms,
    scaling,
    windows,
)
from diopi_conformance.references.registry import written_reference

__all__ = [
    "copies",
    "detection",
    "indexing",
    "layers",
    "losses",
    "norms",
    "optimizers",
    "randoms",
    "scaling",
    "windows",
    "written_reference",
]

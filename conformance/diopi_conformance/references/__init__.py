"""References written out by hand, for functions that no single PyTorch operator on the CPU computes."""

from diopi_conformance.references import (
    attention,
    copies,
    decoding,
    detection,
    indexing,
    layers,
    losses,
    norms,
    optimizers,
    randoms,
    scaling,
    serving,
    windows,
)
from diopi_conformance.references.registry import written_reference

__all__ = [
    "attention",
    "copies",
    "decoding",
    "detection",
    "indexing",
    "layers",
    "losses",
    "norms",
    "optimizers",
    "randoms",
    "scaling",
    "serving",
    "windows",
    "written_reference",
]

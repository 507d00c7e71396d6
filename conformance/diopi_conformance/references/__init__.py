"""References written out by hand, for functions that no single PyTorch operator on the CPU computes."""

from diopi_conformance.references import (
    attention,
    copies,
    decoding,
    detection,
    feature_maps,
    filters,
    indexing,
    layers,
    losses,
    norms,
    optimizers,
    point_grouping,
    randoms,
    scaling,
    serving,
    synchronized_norm,
    windows,
)
from diopi_conformance.references.registry import written_reference

__all__ = [
    "attention",
    "copies",
    "decoding",
    "detection",
    "feature_maps",
    "filters",
    "indexing",
    "layers",
    "losses",
    "norms",
    "optimizers",
    "point_grouping",
    "randoms",
    "scaling",
    "serving",
    "synchronized_norm",
    "windows",
    "written_reference",
]

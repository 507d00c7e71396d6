"""Different elements that nobody asked to have in order."""

from typing import TYPE_CHECKING, Any

import numpy as np

from diopi_conformance.judgement.special.registry import Finding, judgement_for
from diopi_conformance.values.elements import Array

if TYPE_CHECKING:
    from diopi_conformance.prepare import Prepared


@judgement_for("diopiUnique")
def unique(prepared: "Prepared", actual: dict[str, Any]) -> Finding:
    """Without `sorted` the elements, or slices along `dim`, are taken into order, and what follows them with them."""
    if prepared.values["sorted"] or "out" not in actual:
        return (), ""
    dim = prepared.values["dim"] or 0
    order = _order(actual["out"], dim)
    actual["out"] = np.take(actual["out"], order, axis=dim)
    if "counts" in actual:
        actual["counts"] = actual["counts"][order]
    if "indices" in actual:
        places = actual["indices"]
        known = (places >= 0) & (places < len(order))
        actual["indices"] = np.where(known, np.argsort(order)[np.where(known, places, 0)], places)
    return (), ""


def _order(elements: Array, dim: int) -> Array:
    """In which order the slices along `dim` grow, the first number of a slice first."""
    rows = np.moveaxis(elements, dim, 0).reshape(elements.shape[dim], -1)
    return np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))

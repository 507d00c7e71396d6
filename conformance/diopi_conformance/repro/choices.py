"""Which indices are right where ties leave a choice: those that lead to an equal value."""

import numpy as np

from diopi_conformance.prepare import Prepared
from diopi_conformance.values.elements import Array
from diopigen.vocabulary.checks import CHECK


def choices(prepared: Prepared, label: str, expected: Array) -> tuple[tuple[int, ...], ...]:
    """For each element of an output of indices all that are right; empty where the output has no choice."""
    function = prepared.function
    tied = CHECK[function.check].positions and function.form != "backward"
    if not tied or prepared.values.get("stable") is True or label != _indices(prepared):
        return ()
    first = next(p for p in function.params if p.is_tensor and p.role in ("in", "inout"))
    source = np.atleast_1d(prepared.values[first.name])
    dim = prepared.values.get("dim")
    if dim is None:
        source, axis = source.reshape(-1), 0
        found = np.atleast_1d(expected).reshape(-1)
    else:
        axis = int(dim) % source.ndim
        found = expected if expected.ndim == source.ndim else np.expand_dims(expected, axis)
    lines = np.moveaxis(source, axis, -1)
    places = np.moveaxis(found, axis, -1)
    wanted = np.take_along_axis(lines, places, -1)[..., None]
    with np.errstate(invalid="ignore"):
        equal = (lines[..., None, :] == wanted) | ((lines[..., None, :] != lines[..., None, :]) & (wanted != wanted))
    ordered = np.moveaxis(equal, -2, axis)  # the index's dimension back to its place, the line behind all
    return tuple(tuple(int(i) for i in np.flatnonzero(line)) for line in ordered.reshape(-1, ordered.shape[-1]))


def _indices(prepared: Prepared) -> str:
    """The output of indices: of several outputs of whole numbers the last."""
    names = [b.label for b in prepared.buffers if b.expected is not None and b.dtype in ("i32", "i64")]
    return names[-1] if names else ""

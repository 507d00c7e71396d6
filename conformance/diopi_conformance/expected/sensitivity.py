"""How a reference answers to small changes of its inputs: what an error of rounding may amount to in each element.

Each input is changed by a tiny relative amount, with random signs, and the answers are added as squares: for a sum
that gives the root of the sum of its terms' squares, however they cancel. One number of an input that is changed alone
shows how many elements of the outputs depend on it, and so, on average, how many numbers an element is made of.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from typing import Any

import numpy as np
import torch

from diopi_conformance.expected.reference import reference, to_numpy
from diopi_conformance.expected.reference_call import Call
from diopi_conformance.judgement.tolerance import Terms
from diopi_conformance.references.registry import SCRATCH
from diopi_conformance.values.draw import source
from diopi_conformance.values.elements import Array
from diopi_conformance.values.inputs import UnsoundCase, Values

_STEP = 2.0**-24  # relative; far above the roundings of float64
_RUNS = 12  # the fewer, the more elements whose terms cancel in all of them
_PROBES = 2  # numbers of each input that are changed alone
_LISTED = 3  # tensors of a list that are probed


@dataclass(frozen=True, slots=True)
class _Source:
    """An argument that the reference reads and that is a float, a tensor of them, or a list of such tensors."""

    forward: bool  # whether the forward of a backward function reads it
    name: str


def sensitivity(call: Call) -> dict[str, Terms]:
    """By output, elements of lists as "tensors[2]"."""
    base = _outputs(call)
    sources = tuple(_sources(call))
    rng = source(call.case.id, "sensitivity", call.case.seed)
    sizes = {label: np.zeros(values.shape) for label, values in base.items()}
    for _ in range(_RUNS):
        changed = call
        for place in sources:
            changed = _with(changed, place, _moved(_held(call, place), rng))
        for label, change in _changes(base, changed):
            with np.errstate(over="ignore"):  # squares of the smallest and the largest numbers are none
                sizes[label] = np.hypot(sizes[label], change / (_STEP * sqrt(_RUNS)))
    lengths = _fan_in(call, sources, base, rng)
    return {name: Terms(magnitude=sizes[name], length=lengths[name]) for name in base}


def _outputs(call: Call) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for name, value in reference(call).items():
        listed = isinstance(value, list | tuple)
        for index, entry in enumerate(value if listed else [value]):
            if entry is not None and entry is not SCRATCH:
                found[f"{name}[{index}]" if listed else name] = np.asarray(to_numpy(entry))
    return found


def _sources(call: Call) -> Iterator[_Source]:
    for values, forward in ((call.values, False), (call.forward or {}, True)):
        for name, value in values.items():
            if any(_smooth(entry) for entry in (value if isinstance(value, list) else [value])):
                yield _Source(forward, name)


def _smooth(value: Any) -> bool:
    if isinstance(value, float):  # whole ones are orders of norms and the like
        return isfinite(value) and not value.is_integer()
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()) and value.numel() > 0


def _held(call: Call, place: _Source) -> Any:
    values: Values = (call.forward or {}) if place.forward else call.values
    return values[place.name]


def _with(call: Call, place: _Source, value: Any) -> Call:
    if not place.forward:
        return replace(call, values={**call.values, place.name: value})
    return replace(call, forward={**(call.forward or {}), place.name: value})


def _moved(value: Any, rng: np.random.Generator) -> Any:
    """Every number changed by about one step, in either direction, no two by the same."""
    if isinstance(value, list):
        return [_moved(entry, rng) for entry in value]
    if not _smooth(value):
        return value
    shape = () if isinstance(value, float) else tuple(value.shape)
    steps = rng.uniform(0.5, 1.5, shape) * np.where(rng.random(shape) < 0.5, -_STEP, _STEP)
    return value * (1 + float(steps)) if isinstance(value, float) else value + value * torch.from_numpy(np.array(steps))


def _changes(base: dict[str, Array], call: Call) -> Iterator[tuple[str, Array]]:
    """By how much the outputs of a changed call differ; nothing where the reference refuses it."""
    try:
        found = _outputs(call)
    except UnsoundCase:
        return
    for label, values in found.items():
        if values.shape == base[label].shape and base[label].dtype.kind in "fc":
            with np.errstate(invalid="ignore", over="ignore"):
                change = np.abs(values - base[label])
            yield label, np.where(np.isfinite(change), change, 0.0)


def _fan_in(
    call: Call, sources: tuple[_Source, ...], base: dict[str, Array], rng: np.random.Generator
) -> dict[str, int]:
    """How many numbers of one input an element of each output depends on, as a few of them show."""
    found = dict.fromkeys(base, 1)
    for place in sources:
        held = _held(call, place)
        entries = held if isinstance(held, list) else [held]
        places = [i for i, e in enumerate(entries) if isinstance(e, torch.Tensor) and _smooth(e)]
        for index in places[:_LISTED]:
            for _ in range(_PROBES):
                one = _one_moved(entries[index], rng)
                value = [one if i == index else e for i, e in enumerate(entries)] if held is entries else one
                for label, change in _changes(base, _with(call, place, value)):
                    reached = np.count_nonzero(change) * one.numel() / max(1, change.size)
                    found[label] = max(found[label], int(np.ceil(reached)))
    return found


def _one_moved(tensor: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    flat = tensor.reshape(-1).clone()
    at = int(rng.integers(flat.numel()))
    flat[at] = flat[at] * 1.0625 if flat[at] else 0.0625
    return flat.reshape(tensor.shape)

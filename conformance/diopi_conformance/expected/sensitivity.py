"""How a computation answers to small changes of its inputs: what an error of rounding may amount to in each element.

Each input is changed by a tiny relative amount, with random signs, and the answers are added as squares: for a sum
that gives the root of the sum of its terms' squares, however they cancel. One number of an input that is changed alone
shows how many elements of the outputs depend on it, and so, on average, how many numbers an element is made of.
"""

from collections.abc import Callable, Iterator, Mapping
from math import isfinite, sqrt
from typing import Any

import numpy as np
import torch

from diopi_conformance.judgement.tolerance import Terms
from diopi_conformance.values.elements import Array

_STEP = 2.0**-24  # relative; far above the roundings of float64
_RUNS = 12  # the fewer, the more elements whose terms cancel in all of them
_PROBES = 2  # numbers of each input that are changed alone
_LISTED = 3  # tensors of a list that are probed

Inputs = Mapping[str, Any]  # tensors, lists of them, numbers, and what else the computation takes
# The outputs for inputs, elements of lists as "tensors[2]"; nothing where it refuses them.
Answer = Callable[[Inputs], dict[str, Array] | None]


def sensitivity(answer: Answer, inputs: Inputs, rng: np.random.Generator) -> dict[str, Terms]:
    """The terms of each output. `answer` computes in float64 and leaves its inputs as they are."""
    base = answer(inputs)
    if base is None:
        return {}
    sources = tuple(name for name, value in inputs.items() if any(map(_smooth, _entries(value))))
    sizes = {label: np.zeros(values.shape) for label, values in base.items()}
    for _ in range(_RUNS):
        moved = {name: _moved(inputs[name], rng) for name in sources}
        for label, change in _changes(answer, base, {**inputs, **moved}):
            with np.errstate(over="ignore"):  # squares of the smallest and the largest numbers are none
                sizes[label] = np.hypot(sizes[label], change / (_STEP * sqrt(_RUNS)))
    lengths = _fan_in(answer, inputs, sources, base, rng)
    return {name: Terms(magnitude=sizes[name], length=lengths[name]) for name in base}


def _entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _smooth(value: Any) -> bool:
    if isinstance(value, float):  # whole ones are orders of norms and the like
        return isfinite(value) and not value.is_integer()
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()) and value.numel() > 0


def _moved(value: Any, rng: np.random.Generator) -> Any:
    """Every number changed by about one step, in either direction, no two by the same."""
    if isinstance(value, list):
        return [_moved(entry, rng) for entry in value]
    if not _smooth(value):
        return value
    shape = () if isinstance(value, float) else tuple(value.shape)
    steps = rng.uniform(0.5, 1.5, shape) * np.where(rng.random(shape) < 0.5, -_STEP, _STEP)
    return value * (1 + float(steps)) if isinstance(value, float) else value + value * torch.from_numpy(np.array(steps))


def _changes(answer: Answer, base: dict[str, Array], inputs: Inputs) -> Iterator[tuple[str, Array]]:
    """By how much the outputs for changed inputs differ; nothing where they are refused."""
    for label, values in (answer(inputs) or {}).items():
        if values.shape == base[label].shape and base[label].dtype.kind in "fc":
            with np.errstate(invalid="ignore", over="ignore"):
                change = np.abs(values - base[label])
            yield label, np.where(np.isfinite(change), change, 0.0)


def _fan_in(
    answer: Answer, inputs: Inputs, sources: tuple[str, ...], base: dict[str, Array], rng: np.random.Generator
) -> dict[str, int]:
    """How many numbers of one input an element of each output depends on, as a few of them show."""
    found = dict.fromkeys(base, 1)
    for name in sources:
        held = inputs[name]
        entries = _entries(held)
        places = [i for i, e in enumerate(entries) if isinstance(e, torch.Tensor) and _smooth(e)]
        for index in places[:_LISTED]:
            for _ in range(_PROBES):
                one = _one_moved(entries[index], rng)
                value = [one if i == index else e for i, e in enumerate(entries)] if held is entries else one
                for label, change in _changes(answer, base, {**inputs, name: value}):
                    reached = np.count_nonzero(change) * one.numel() / max(1, change.size)
                    found[label] = max(found[label], int(np.ceil(reached)))
    return found


def _one_moved(tensor: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    flat = tensor.reshape(-1).clone()
    at = int(rng.integers(flat.numel()))
    flat[at] = flat[at] * 1.0625 if flat[at] else 0.0625
    return flat.reshape(tensor.shape)

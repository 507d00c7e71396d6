"""How far the tensors of two runs are apart, measured against what float32 rounding may do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

Tensors = Mapping[str, torch.Tensor]  # by name

# A tensor agrees when no element is off by more than this share of the tensor's largest element, plus this share of the
# largest element of all tensors: some gradients are zero but for rounding, e.g. that of a key's bias in attention.
OWN_SHARE = 1e-3
COMMON_SHARE = 1e-5
# Where that is not so it may still be off this many times as far as it moves when rounding errors change the weights:
# batch norms over a handful of elements, for one, make much of little.
SENSITIVE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A tensor that does not agree."""

    name: str  # e.g. "encoder.layer.0.attention.query.weight"
    largest: float  # absolute difference; infinite where one has a NaN or another shape or is missing
    scale: float  # the largest element of the reference


def differences(found: Tensors, expected: Tensors, nudged: Sequence[Tensors] = ()) -> list[Difference]:
    """Those of two sets of CPU tensors that do not agree, the worst in relation to its scale first.

    `nudged` are what the reference gives from weights that were changed by rounding errors.
    """
    common = max((largest_element(tensor) for tensor in expected.values()), default=0.0)
    rows = []
    for name in {**expected, **found}:
        if name not in found or name not in expected:
            rows.append(Difference(name=name, largest=float("inf"), scale=0.0))
            continue
        scale, largest = largest_element(expected[name]), _largest_difference(found[name], expected[name])
        allowed = OWN_SHARE * scale + COMMON_SHARE * common
        allowed += SENSITIVE * max((_largest_difference(other[name], expected[name]) for other in nudged), default=0.0)
        if not largest <= allowed:
            rows.append(Difference(name=name, largest=largest, scale=scale))
    return sorted(rows, key=lambda row: -row.largest / max(row.scale, 1e-30))


def largest_element(tensor: torch.Tensor) -> float:
    """The largest absolute value; 0 for an empty tensor."""
    return tensor.abs().max().item() if tensor.numel() else 0.0


def _largest_difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    if found.numel() == 0:
        return 0.0
    largest = (found.double() - expected.double()).abs().max().item()
    return float("inf") if largest != largest else largest

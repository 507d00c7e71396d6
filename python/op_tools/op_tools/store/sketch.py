"""A tensor in little room: sums that tell how far it is from another one, and where.

Elements lie in a matrix that is about square, row after row. Kept are the sums of its rows, each element times the sign
of its column, and the sums of its columns, each times the sign of its row; signs are fixed. Sketches are linear: that
of a difference is the difference of sketches. The squares of a sketch's row sums add up to the square of the 2-norm of
the tensor, on average over signs. One wrong element shows in one row and one column: where they cross is its place.
"""

import math
from typing import Any

import torch

_BLOCK = 1 << 22  # elements that are widened at a time


def columns_of(numel: int) -> int:
    """The width of the matrix, e.g. 3 for 7 elements."""
    return max(1, math.isqrt(max(0, numel - 1)) + 1)


def sketch(tensor: torch.Tensor) -> torch.Tensor:
    """The sums of rows, then those of columns, in float64; infinities and NaN count as 0. Complex elements are two."""
    flat = (torch.view_as_real(tensor) if tensor.is_complex() else tensor).detach().reshape(-1)
    width = columns_of(flat.numel())
    height = math.ceil(flat.numel() / width)
    across, down = signs(width), signs(height)
    rows, columns = torch.zeros(height, dtype=torch.float64), torch.zeros(width, dtype=torch.float64)
    step = max(1, _BLOCK // width)
    for top in range(0, height, step):
        part = flat[top * width : (top + step) * width].double().nan_to_num(0.0, 0.0, 0.0)
        matrix = torch.nn.functional.pad(part, (0, -part.numel() % width)).view(-1, width)
        rows[top : top + step] = matrix @ across
        columns += down[top : top + step] @ matrix
    return torch.cat((rows, columns))


def signs(count: int) -> torch.Tensor:
    """Of the first `count` positions, float64: 1 and -1, the same on every machine."""
    mask = 0xFFFFFFFF
    mixed = (torch.arange(1, count + 1, dtype=torch.int64) * 0x9E3779B1) & mask
    mixed = ((mixed ^ (mixed >> 16)) * 0x85EBCA6B) & mask
    mixed = ((mixed ^ (mixed >> 13)) * 0xC2B2AE35) & mask
    return 1.0 - 2.0 * ((mixed >> 15) & 1).double()


def statistics(tensor: torch.Tensor) -> dict[str, Any]:
    """What a sketch leaves out: how many NaN and infinities, and the largest finite size."""
    flat = (torch.view_as_real(tensor) if tensor.is_complex() else tensor).detach().reshape(-1)
    if not flat.is_floating_point():
        return {"nan": 0, "inf": 0, "largest": float(flat.double().abs().max()) if flat.numel() else 0.0}
    finite = torch.where(flat.isfinite(), flat, torch.zeros((), dtype=flat.dtype))
    return {
        "nan": int(flat.isnan().sum()),
        "inf": int(flat.isinf().sum()),
        "largest": float(finite.abs().max()) if flat.numel() else 0.0,
    }

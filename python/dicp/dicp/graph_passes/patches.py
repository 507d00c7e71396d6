"""Convolutions whose windows lie side by side, e.g. over the patches of a vision transformer, as products of matrices.

A vendor's convolution turns images of few channels into its own order and fills their channels up; a product reads the
windows, which one copy lays out as rows.
"""

from collections.abc import Sequence
from typing import Any

import torch

_STEP = 8  # channels, of which matrix units take whole numbers


def convolution(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """x: [N, C, *sizes]; weight: [filters, C, *windows]. The result lies in the order of the images."""
    del output_padding  # of transposed ones
    if transposed or groups != 1 or not _are_patches(x, weight, stride, padding, dilation):
        return NotImplemented
    rows, filters = _rows(x, weight), weight.flatten(1).t()
    product = rows @ filters if bias is None else torch.addmm(bias, rows, filters)
    counts = [size // window for size, window in zip(x.shape[2:], weight.shape[2:], strict=True)]
    result = product.view(x.shape[0], *counts, weight.shape[0]).movedim(-1, 1)
    return result.contiguous(memory_format=torch._prims_common.suggest_memory_format(x))


def convolution_backward(
    gradient: Any,
    x: Any,
    weight: Any,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> Any:
    """The gradients of x, weight and bias, None where they are not wanted."""
    del bias_sizes, output_padding
    if transposed or groups != 1 or not _are_patches(x, weight, stride, padding, dilation):
        return NotImplemented
    rows = gradient.movedim(1, -1).flatten(0, -2)
    of_x = _pixels(rows @ weight.flatten(1), x, weight) if wanted[0] else None
    of_weight = (rows.t() @ _rows(x, weight)).view(weight.shape) if wanted[1] else None
    return of_x, of_weight, rows.sum(0) if wanted[2] else None


def _are_patches(x: Any, weight: Any, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]) -> bool:
    """Whether a convolution is worth a product: its windows cover the images, and halves have few channels."""
    windows, sizes = list(weight.shape[2:]), x.shape[2:]
    halves = x.dtype == weight.dtype and x.dtype in (torch.float16, torch.bfloat16)
    if not halves or x.shape[1] % _STEP == 0 or list(stride) != windows or not all(isinstance(n, int) for n in sizes):
        return False
    covered = all(size % window == 0 for size, window in zip(sizes, windows, strict=True))
    return covered and not any(padding) and set(dilation) == {1} and max(windows) > 1


def _rows(x: Any, weight: Any) -> Any:
    """The windows as rows of a matrix: [N * windows, C * elements of a window]."""
    rank = weight.dim() - 2
    cut = x
    for d in reversed(range(rank)):
        cut = cut.unflatten(2 + d, (-1, weight.shape[2 + d]))
    places, within = range(2, 2 + 2 * rank, 2), range(3, 3 + 2 * rank, 2)
    return cut.permute(0, *places, 1, *within).flatten(1 + rank).flatten(0, -2)


def _pixels(rows: Any, x: Any, weight: Any) -> Any:
    """The images of which rows are the windows."""
    windows = weight.shape[2:]
    counts = [size // window for size, window in zip(x.shape[2:], windows, strict=True)]
    parts = rows.view(x.shape[0], *counts, x.shape[1], *windows)
    rank = len(windows)
    pairs = [d for k in range(rank) for d in (1 + k, 2 + rank + k)]
    return parts.permute(0, 1 + rank, *pairs).reshape(x.shape)

"""Images between their pixels: bilinear samples, and the grids of points at which regions take them."""

import math

import torch


def padded(planes: torch.Tensor, y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Samples of `planes` [channels, height, width] at points of any one shape: [channels, *points].

    The image is zero outside. Differentiable in all arguments; at a pixel the slopes are those behind it, and zero a
    whole pixel before the first.
    """
    height, width = planes.shape[-2:]
    top, left = y.detach().floor(), x.detach().floor()
    down, right = y - top, x - left
    total = planes.new_zeros(())
    for row, row_share in ((top, 1 - down), (top + 1, down)):
        for column, column_share in ((left, 1 - right), (left + 1, right)):
            known = (row >= 0) & (row < height) & (column >= 0) & (column < width) & (y > -1) & (x > -1)
            picked = planes[:, row.clamp(0, height - 1).long(), column.clamp(0, width - 1).long()]
            total = total + picked * (row_share * column_share * known)
    return total


def clamped(planes: torch.Tensor, y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The same, but border pixels are replicated up to one pixel outside the image; farther out it is zero."""
    height, width = planes.shape[-2:]
    inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
    return padded(planes, y.clamp(0, height - 1), x.clamp(0, width - 1)) * inside


def grid(start: torch.Tensor, length: torch.Tensor, bins: int, ratio: int) -> torch.Tensor:
    """[bins, points of a bin]: the middles of `ratio` equal parts of each bin, one for each pixel if it is 0."""
    size = length / bins
    count = ratio if ratio > 0 else max(0, math.ceil(float(size)))
    parts = (torch.arange(count, dtype=torch.float64) + 0.5) / max(count, 1)
    return start + (torch.arange(bins, dtype=torch.float64)[:, None] + parts) * size


def spread(down: torch.Tensor, across: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both coordinates of all pairs of a row's and a column's points: [rows, columns, points of a bin]."""
    shape = down.shape[0], across.shape[0], down.shape[1], across.shape[1]
    y = down[:, None, :, None].expand(shape).flatten(2)
    x = across[None, :, None, :].expand(shape).flatten(2)
    return y, x


def average(samples: torch.Tensor) -> torch.Tensor:
    """The mean over the last dimension, zero where there is no sample."""
    return samples.sum(-1) / max(samples.shape[-1], 1)


def first_greatest(samples: torch.Tensor) -> torch.Tensor:
    """Where the greatest sample of the last dimension stands; the first of equals."""
    places: torch.Tensor = samples.detach().argmax(-1, keepdim=True)
    return places

"""Pooling of every rank, resampling and windows as columns against torch, over layouts and sizes."""

import itertools
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from families import Families, blank, close, layouts, numbers

from portable import ERROR, build

SIZES = [((5,), (12,)), ((8,), (3,)), ((4, 6), (7, 1)), ((1, 9), (5, 4)), ((3, 2, 5), (4, 6, 3))]
MODES = {1: ("linear",), 2: ("bilinear", "bicubic"), 3: ("trilinear",)}


@pytest.fixture(scope="module")
def kernels() -> Families:
    names = ("max_pooling", "adaptive_pooling", "pooling", "resampling", "windows")
    return Families(build(names))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("channels", [3, 70])
def test_a_maximum_is_found_in_every_rank(kernels: Families, rank: int, channels: int) -> None:
    x = torch.randperm(2 * channels * 7**rank).view(2, channels, *[7] * rank).double()
    leaf = x.clone().requires_grad_()
    torch_pool = (torch.max_pool1d_with_indices, F.max_pool2d_with_indices, F.max_pool3d_with_indices)[rank - 1]
    each = ([3] * rank, [2] * rank, [1] * rank, [2] * rank)
    expected, places = torch_pool(leaf, *each)
    grad = numbers(tuple(expected.shape), torch.float64)
    expected.backward(grad)
    for layout, variant in enumerate(layouts(x)):
        out, indices, grad_input = blank(expected.detach(), layout), blank(places, layout), blank(x, layout)
        kernels(f"diopiMaxPool{rank}dWithIndices", out, indices, variant, *each, False)
        assert torch.equal(out, expected.detach()) and torch.equal(indices, places)
        incoming = list(layouts(grad))[layout]
        kernels(f"diopiMaxPool{rank}dBackward", grad_input, incoming, variant, *each, False, indices)
        close(grad_input, leaf.grad)
        kernels(f"diopiPool{rank}dBackward", grad_input, incoming, variant, b"max", *each, False, True, False, None)
        close(grad_input, leaf.grad)


def test_a_gradient_goes_into_every_second_slice(kernels: Families) -> None:
    grad, places = torch.ones(1, 1, 2, 1, 1), torch.tensor([5, 14]).view(1, 1, 2, 1, 1)
    whole = torch.full((1, 1, 8, 2, 2), 77.0)
    part = whole[:, :, ::2]
    kernels("diopiAdaptiveMaxPool3dBackward", part, grad, part, places)
    assert part.flatten().nonzero().flatten().tolist() == [5, 14]
    assert (whole[:, :, 1::2] == 77).all()


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 3, 9])
def test_an_adaptive_maximum_and_its_gradient(kernels: Families, rank: int, size: int) -> None:
    x = torch.randperm(6 * 7**rank).view(2, 3, *[7] * rank).double()
    leaf = x.clone().requires_grad_()
    torch_pool = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)[rank - 1]
    expected, places = torch_pool(leaf, [size] * rank, return_indices=True)
    grad = numbers(tuple(expected.shape), torch.float64)
    expected.backward(grad)
    for layout, variant in enumerate(layouts(x)):
        out, indices, grad_input = blank(expected.detach(), layout), blank(places, layout), blank(x, layout)
        kernels(f"diopiAdaptiveMaxPool{rank}dWithIndices", out, indices, variant, [size] * rank)
        assert torch.equal(out, expected.detach()) and torch.equal(indices, places)
        kernels(f"diopiAdaptiveMaxPool{rank}dBackward", grad_input, list(layouts(grad))[layout], variant, indices)
        close(grad_input, leaf.grad)


@pytest.mark.parametrize(("before", "after"), SIZES)
def test_the_nearest_element_is_the_one_of_torch(
    kernels: Families, before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    x = numbers((2, 3, *before))
    leaf = x.clone().requires_grad_()
    expected = F.interpolate(leaf, size=after, mode="nearest")
    grad = numbers(tuple(expected.shape), seed=1)
    expected.backward(grad)
    for layout, variant in enumerate(layouts(x)):
        out, grad_input = blank(expected.detach(), layout), blank(x, layout)
        kernels("diopiUpsampleNearest", out, variant, after)
        assert torch.equal(out, expected.detach())
        kernels("diopiUpsampleNearestBackward", grad_input, list(layouts(grad))[layout], after, x.shape)
        close(grad_input, leaf.grad)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(("before", "after"), SIZES)
def test_interpolation_and_its_gradient(
    kernels: Families, before: tuple[int, ...], after: tuple[int, ...], align_corners: bool
) -> None:
    for mode in MODES[len(before)]:
        x = numbers((2, 3, *before), torch.float64)
        leaf = x.clone().requires_grad_()
        expected = F.interpolate(leaf, size=after, mode=mode, align_corners=align_corners)
        grad = numbers(tuple(expected.shape), torch.float64, 1)
        expected.backward(grad)
        tail = (align_corners, mode.encode())
        for layout, variant in enumerate(layouts(x)):
            out, grad_input = blank(expected.detach(), layout), blank(x, layout)
            kernels("diopiUpsampleLinear", out, variant, after, *tail)
            close(out, expected.detach())
            kernels("diopiUpsampleLinearBackward", grad_input, list(layouts(grad))[layout], after, x.shape, *tail)
            close(grad_input, leaf.grad)


@pytest.mark.parametrize("rank", [2, 3])
def test_positions_outside_of_the_input_are_zero(kernels: Families, rank: int) -> None:
    x = numbers((2, 3, *range(4, 4 + rank)), torch.float64)
    grid = numbers((2, *range(2, 2 + rank), rank), torch.float64, 1)
    for mode, variant in itertools.product(("nearest", "bilinear", "bicubic")[: 5 - rank], layouts(x)):
        expected = F.grid_sample(x, grid, mode=mode, align_corners=False)
        out = blank(expected)
        kernels("diopiGridSample", out, variant, grid, mode.encode())
        close(out, expected)
    grid.fill_(torch.nan)
    kernels("diopiGridSample", out, x, grid, b"bilinear")
    assert not out.any()


@pytest.mark.parametrize("size", [(2, 3, 7, 8), (70, 6, 5)])
def test_windows_become_columns_and_come_back(kernels: Families, size: tuple[int, ...]) -> None:
    x = numbers(size)
    given = ([3, 2], [1, 2], [1, 0], [2, 1])
    columns = F.unfold(x, *given)
    planes = F.fold(columns, size[-2:], *given)
    for layout, variant in enumerate(layouts(x)):
        out, back = blank(columns, layout), blank(planes, layout)
        kernels("diopiIm2Col", out, variant, *given)
        assert torch.equal(out, columns)
        kernels("diopiCol2Im", back, out, size[-2:], *given)
        close(back, planes)


def test_what_does_not_fit_is_refused(kernels: Families) -> None:
    x = numbers((1, 2, 4, 4))
    assert kernels.status("diopiUpsampleLinear", blank(x), x, (4, 4), False, b"trilinear") == ERROR
    assert "'mode' is 'trilinear', which does not stretch 2 dimensions" in kernels.last_error()
    columns = numbers((1, 8, 4))
    assert kernels.status("diopiIm2Col", columns, x, [2, 2], [1, 1], [0, 0], [1, 1]) == ERROR
    assert "there are 4 columns of 8 elements, expected 9 of 8" in kernels.last_error()

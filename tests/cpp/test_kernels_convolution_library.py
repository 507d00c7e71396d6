"""Which convolutions of halves a launcher's library is asked for, in which memory; against torch in float64."""

import ctypes
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from portable import FLAGS, Portable, build

PARTS = Path(__file__).parent / "kernels"
LIBRARY = (*FLAGS, "-I", str(PARTS), '-DDIOPI_LAUNCHER_HEADER="library_convolution.h"')
FIRST, LAST = torch.contiguous_format, torch.channels_last


class Library:
    def __init__(self, path: Path) -> None:
        self.kernels = Portable(path)
        self._calls = ctypes.CDLL(str(path)).library_convolution_calls

    def calls(self) -> tuple[int, ...]:
        """Of each step, so far."""
        return tuple(self._calls(step) for step in range(3))


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(build(("convolution",), LIBRARY))


def drawn(*sizes: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(sizes))
    return torch.randn(sizes, generator=generator).bfloat16()


def laid_out(tensor: torch.Tensor, order: torch.memory_format) -> torch.Tensor:
    return tensor.contiguous(memory_format=order)


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found.double(), wanted, rtol=2e-2, atol=2e-2 * wanted.abs().max().item())


def run(library: Library, channels: int, filters: int, images: Any, convolved: Any, groups: int = 1) -> tuple[int, ...]:
    """Holds all steps against torch, images and what they become in these orders; gives the calls of the library."""
    before = library.calls()
    x, w = drawn(2, channels, 9, 8), drawn(filters, channels // groups, 3, 3)
    leaves = [t.double().requires_grad_() for t in (x, w)]
    expected = F.conv2d(*leaves, stride=(2, 1), padding=1, groups=groups)
    grad = drawn(*expected.shape)
    expected.backward(grad.double())
    tail = ((2, 1), (1, 1), (1, 1), groups)
    out = laid_out(torch.full_like(grad, torch.nan), convolved)
    library.kernels("diopiConvolution2d", out, laid_out(x, images), w, None, *tail)
    close(out, expected.detach())
    grads = [laid_out(torch.full_like(x, torch.nan), images), torch.full_like(w, torch.nan)]
    given = (laid_out(grad, convolved), laid_out(x, images), w, None, *tail)
    library.kernels("diopiConvolution2dBackward", *grads, None, *given)
    for mine, leaf in zip(grads, leaves, strict=True):
        close(mine, leaf.grad)
    return tuple(new - old for new, old in zip(library.calls(), before, strict=True))


@pytest.mark.parametrize("channels", [8, 16, 3, 1, 11])  # the last three are padded with zeros
def test_halves_are_multiplied_by_the_library(library: Library, channels: int) -> None:
    assert run(library, channels, 16, LAST, LAST) == (1, 1, 1)


def test_the_larger_tensor_says_in_which_memory(library: Library) -> None:
    assert run(library, 3, 16, FIRST, LAST) == (1, 1, 1)
    assert run(library, 32, 8, LAST, FIRST) == (1, 1, 1)
    assert run(library, 3, 16, LAST, FIRST) == (0, 0, 0)  # this library has none
    assert run(library, 8, 16, FIRST, FIRST) == (0, 0, 0)


def test_what_the_library_would_round_twice_is_not_given_to_it(library: Library) -> None:
    assert run(library, 8, 12, LAST, LAST) == (0, 0, 0)
    assert run(library, 12, 16, LAST, LAST, groups=2) == (0, 0, 0)


@pytest.mark.parametrize("images", [FIRST, LAST])
@pytest.mark.parametrize(("channels", "size", "calls"), [(16, 3, 1), (3, 3, 1), (16, 5, 0)])
def test_a_bias_is_added_before_the_one_rounding(
    library: Library, channels: int, size: int, calls: int, images: Any
) -> None:
    before = library.calls()
    x, w = drawn(2, channels, 9, 8), drawn(16, channels, size, size)
    sums = F.conv2d(x.double(), w.double(), padding=1)
    bias = -sums[0, :, 3, 3].bfloat16()  # what is left there is small beside either
    expected = sums + bias.double().view(-1, 1, 1)
    out = laid_out(torch.full_like(expected, torch.nan, dtype=torch.bfloat16), images)
    library.kernels("diopiConvolution2d", out, laid_out(x, images), w, bias, (1, 1), (1, 1), (1, 1), 1)
    torch.testing.assert_close(out.double(), expected, rtol=2**-8, atol=1e-4)
    assert library.calls()[0] - before[0] == calls


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("images", "convolved"), [(FIRST, FIRST), (LAST, LAST), (FIRST, LAST)])
@pytest.mark.parametrize(("channels", "rest"), [(3, (0, 0)), (1, (1, 0)), (7, (2, 1))])
def test_windows_side_by_side_are_cut_into_patches(
    library: Library, channels: int, rest: tuple[int, int], images: Any, convolved: Any, dtype: torch.dtype
) -> None:
    before = library.calls()
    x, w = drawn(2, channels, 12 + rest[0], 10 + rest[1]).to(dtype), drawn(5, channels, 3, 2).to(dtype)
    leaves = [t.double().requires_grad_() for t in (x, w)]
    sums = F.conv2d(*leaves, stride=(3, 2))
    bias = -sums.detach()[0, :, 3, 3].to(dtype)  # what is left there is small beside either
    grad = drawn(*sums.shape).to(dtype)
    sums.backward(grad.double())
    tail = ((3, 2), (0, 0), (1, 1), 1)
    out = laid_out(torch.full_like(grad, torch.nan), convolved)
    library.kernels("diopiConvolution2d", out, laid_out(x, images), w, bias, *tail)
    precise = {"rtol": 2**-8 if dtype is torch.bfloat16 else 1e-5, "atol": 1e-4}
    torch.testing.assert_close(out.double(), sums.detach() + bias.double().view(-1, 1, 1), **precise)
    grads = [
        laid_out(torch.full_like(x, torch.nan), images),
        torch.full_like(w, torch.nan),
        torch.full_like(bias, torch.nan),
    ]
    given = (laid_out(grad, convolved), laid_out(x, images), w, None, *tail)
    library.kernels("diopiConvolution2dBackward", *grads, *given)
    for mine, expected in zip(grads, (*(leaf.grad for leaf in leaves), grad.double().sum((0, 2, 3))), strict=True):
        torch.testing.assert_close(mine.double(), expected, **precise)
    assert library.calls() == before


@pytest.mark.parametrize("biased", [False, True])
def test_patches_of_volumes_and_of_what_is_transposed(library: Library, biased: bool) -> None:
    x, w, b = drawn(2, 3, 4, 6, 9).float(), drawn(5, 3, 2, 3, 3).float(), drawn(5).float() if biased else None
    out = torch.full((2, 5, 2, 2, 3), torch.nan)
    steps = (2, 3, 3)
    library.kernels("diopiConvolution3d", out, x, w, b, steps, (0,) * 3, (1,) * 3, 1)
    torch.testing.assert_close(out, F.conv3d(x, w, b, steps))
    y, filters, bias = drawn(2, 5, 4, 6).float(), drawn(5, 3, 2, 3).float(), drawn(3).float() if biased else None
    found = torch.full((2, 3, 9, 18), torch.nan)  # a row is in no window
    tail = ((2, 3), (0, 0), (1, 0), 1, (1, 1))
    library.kernels("diopiConvTranspose2d", found, y, filters, bias, *tail)
    torch.testing.assert_close(found, F.conv_transpose2d(y, filters, bias, (2, 3), 0, (1, 0)))


@pytest.mark.parametrize("channels", [8, 3])
def test_a_library_may_lack_the_gradient_of_the_weight(library: Library, channels: int) -> None:
    assert run(library, channels, 40, LAST, LAST) == (1, 1, 0)


def test_the_library_is_not_asked_for_whole_numbers(library: Library) -> None:
    before = library.calls()
    x, w, out = (torch.ones(sizes, dtype=torch.int64) for sizes in ((2, 16, 9, 8), (16, 16, 3, 3), (2, 16, 7, 6)))
    with pytest.raises(Exception, match="int64"):
        library.kernels(
            "diopiConvolution2d", laid_out(out, LAST), laid_out(x, LAST), w, None, (1, 1), (0, 0), (1, 1), 1
        )
    assert library.calls() == before

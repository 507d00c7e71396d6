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


@pytest.mark.parametrize("channels", [8, 3])
def test_a_library_may_lack_the_gradient_of_the_weight(library: Library, channels: int) -> None:
    assert run(library, channels, 40, LAST, LAST) == (1, 1, 0)

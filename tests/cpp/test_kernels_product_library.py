"""Which products with a bias or with sums a launcher's library is asked for; against torch in float64."""

import ctypes
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from portable import FLAGS, Portable, build

PARTS = Path(__file__).parent / "kernels"
LIBRARY = (*FLAGS, "-I", str(PARTS), '-DDIOPI_LAUNCHER_HEADER="library_products.h"')
TOKENS, INPUTS, OUTPUTS = 13, 24, 16
CLOSE = {torch.bfloat16: {"rtol": 2**-7, "atol": 2**-6}, torch.float32: {"rtol": 1e-5, "atol": 1e-5}}


class Library:
    def __init__(self, path: Path) -> None:
        self.kernels = Portable(path)
        self._calls = ctypes.CDLL(str(path)).library_product_calls

    def calls(self) -> tuple[int, int]:
        """With a bias or without, and with sums, so far."""
        return self._calls(0), self._calls(1)


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(build(("matmul",), LIBRARY))


def drawn(*sizes: int, dtype: torch.dtype = torch.bfloat16, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(sizes))
    return torch.randn(sizes, generator=generator, dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("are_turned", [False, True])
def test_a_row_is_added_by_the_library(library: Library, dtype: torch.dtype, are_turned: bool) -> None:
    bias, a = drawn(OUTPUTS, dtype=dtype), drawn(TOKENS, INPUTS, dtype=dtype)
    b = drawn(OUTPUTS, INPUTS, dtype=dtype).t() if are_turned else drawn(INPUTS, OUTPUTS, dtype=dtype)
    out, before = torch.empty(TOKENS, OUTPUTS, dtype=dtype), library.calls()
    library.kernels("diopiAddmm", out, bias, a, b, 1.0, 1.0)
    torch.testing.assert_close(out.double(), bias.double() + a.double() @ b.double(), **CLOSE[dtype])
    assert library.calls()[0] - before[0] == (dtype == torch.bfloat16)


@pytest.mark.parametrize(("beta", "alpha", "sizes"), [(0.5, 1.0, (16,)), (1.0, 2.0, (16,)), (1.0, 1.0, (13, 16))])
def test_other_sums_round_once(library: Library, beta: float, alpha: float, sizes: tuple[int, ...]) -> None:
    added, a, b = drawn(*sizes), drawn(TOKENS, INPUTS), drawn(INPUTS, OUTPUTS)
    out = torch.empty(TOKENS, OUTPUTS, dtype=torch.bfloat16)
    library.kernels("diopiAddmm", out, added, a, b, beta, alpha)
    wide = beta * added.double() + alpha * (a.double() @ b.double())
    torch.testing.assert_close(out.double(), wide, rtol=2**-8, atol=1e-6)


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("form", ["rows", "batches", "sparse", "a bias of its own dtype"])
def test_the_gradients_of_weight_and_bias_are_one_call(library: Library, dtype: torch.dtype, form: str) -> None:
    grad, x = drawn(TOKENS, OUTPUTS, dtype=dtype), drawn(TOKENS, INPUTS, dtype=dtype, seed=1)
    if form == "batches":
        grad, x = grad[:12].view(3, 4, OUTPUTS), x[:12].view(3, 4, INPUTS)
    if form == "sparse":  # no library steps through it
        grad = drawn(TOKENS, 2 * OUTPUTS, dtype=dtype)[:, ::2]
    weight = drawn(OUTPUTS, INPUTS, dtype=dtype)
    of_bias = torch.empty(OUTPUTS, dtype=torch.float64 if form == "a bias of its own dtype" else dtype)
    of_x, of_weight, before = torch.empty_like(x), torch.empty_like(weight), library.calls()
    library.kernels("diopiLinearBackward", of_x, of_weight, of_bias, grad, x, weight)
    rows, ins = grad.double().reshape(-1, OUTPUTS), x.double().reshape(-1, INPUTS)
    torch.testing.assert_close(of_weight.double(), rows.t() @ ins, **CLOSE[dtype])
    torch.testing.assert_close(of_bias.double(), rows.sum(0), **CLOSE[dtype])
    torch.testing.assert_close(of_x.double(), grad.double() @ weight.double(), **CLOSE[dtype])
    joined = dtype == torch.bfloat16 and form in ("rows", "batches")
    assert library.calls()[1] - before[1] == joined

"""Reductions, extrema, softmax and cumulative sums against torch in float64."""

import math
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from portable import DTYPE_NOT_SUPPORTED, ERROR, FLAGS, FLOATS, INTEGERS, TEAMS, Portable, build

ALL = (*FLOATS, *INTEGERS, torch.bool)
SHAPES: tuple[tuple[tuple[int, ...], list[int]], ...] = (
    ((5, 6, 7), [0]),
    ((5, 6, 7), [1]),
    ((5, 6, 7), [-1]),
    ((5, 6, 7), [0, 2]),
    ((5, 6, 7), []),
    ((3, 1000), [1]),
    ((1000, 3), [0]),
    ((130, 40), [0]),
    ((50, 3, 400), [0, 2]),
    ((), []),
    ((4, 0), [0]),
)


@pytest.fixture(scope="module", params=[FLAGS, TEAMS], ids=["alone", "teams"])
def kernels(request: pytest.FixtureRequest) -> Portable:
    return Portable(build(("reduction", "cumsum", "extremum", "softmax"), request.param))


def numbers(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype in FLOATS:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
    return torch.randint(0, 2 if dtype == torch.bool else 5, shape, generator=generator).to(dtype)


def layouts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The same values contiguous, with the memory order reversed, and with gaps."""
    if tensor.dim() == 0:
        return [tensor]
    order = list(reversed(range(tensor.dim())))
    backwards = tensor.permute(order).contiguous().permute(order)
    gaps = torch.empty((*tensor.shape, 3), dtype=tensor.dtype)
    gaps[..., 1] = tensor
    return [tensor, backwards, gaps[..., 1]]


def reduced(x: torch.Tensor, dims: list[int], keepdim: bool) -> tuple[int, ...]:
    axes = {d % x.dim() for d in dims} if dims and x.dim() else set(range(x.dim()))
    return tuple(1 if d in axes else n for d, n in enumerate(x.shape) if keepdim or d not in axes)


@pytest.mark.parametrize("shape,dims", SHAPES)
@pytest.mark.parametrize("dtype", ALL)
def test_sum_and_mean(kernels: Portable, shape: tuple[int, ...], dims: list[int], dtype: torch.dtype) -> None:
    for x in layouts(numbers(shape, dtype)):
        axes = dims if dims and x.dim() else list(range(x.dim()))
        for keepdim in (False, True):
            exact = x.double().sum(axes, keepdim=keepdim) if x.dim() else x.double()
            out = torch.empty(reduced(x, dims, keepdim), dtype=dtype if dtype in FLOATS else torch.int64)
            kernels("diopiSum", out, x, dims)
            torch.testing.assert_close(out, exact.to(out.dtype))
            mean = torch.empty(reduced(x, dims, keepdim))
            kernels("diopiMean", mean, x, dims)
            exact = x.double().mean(axes, keepdim=keepdim) if x.dim() else x.double()
            torch.testing.assert_close(mean, exact.float(), equal_nan=True)


def test_sum_keeps_its_digits(kernels: Portable) -> None:
    x = torch.full((2_000_003,), 0.1)
    out = torch.empty(())
    kernels("diopiSum", out, x, [])
    torch.testing.assert_close(out, x.double().sum().float(), rtol=1e-7, atol=0)
    halves = torch.full((65_536,), 0.25, dtype=torch.float16)
    total = torch.empty((), dtype=torch.float16)
    kernels("diopiSum", total, halves, [])
    assert total.item() == 16384


def test_sum_casts_to_the_output_and_wraps_integers(kernels: Portable) -> None:
    out = torch.empty(())
    kernels("diopiSum", out, torch.full((9,), 1000.0, dtype=torch.float16), [])
    assert out.item() == 9000
    wrapped = torch.empty((), dtype=torch.int64)
    kernels("diopiSum", wrapped, torch.tensor([2**63 - 1, 1]), [])
    assert wrapped.item() == -(2**63)


def test_reductions_refuse_what_does_not_fit(kernels: Portable) -> None:
    x = torch.empty(3, 4)
    assert kernels.status("diopiSum", torch.empty(3), x, [2]) == ERROR
    assert "out of range" in kernels.last_error()
    assert kernels.status("diopiSum", torch.empty(4), x, [1]) == ERROR
    assert kernels.status("diopiSum", torch.empty(()), x, [0, 0]) == ERROR
    assert kernels.status("diopiMaxAll", torch.empty(()), torch.empty(0)) == ERROR
    assert kernels.status("diopiSum", torch.empty(()), torch.empty(3, dtype=torch.complex64), []) == DTYPE_NOT_SUPPORTED


@pytest.mark.parametrize("dtype", ALL)
def test_product_any_and_all(kernels: Portable, dtype: torch.dtype) -> None:
    for x in layouts(numbers((4, 3, 5), dtype)):
        for dim in (None, 0, -1):
            for name, function in (("diopiAny", torch.any), ("diopiAll", torch.all)):
                expected = function(x) if dim is None else function(x, dim)
                expected = expected.bool()
                out = torch.empty(expected.shape, dtype=torch.bool)
                kernels(name, out, x, dim)
                assert torch.equal(out, expected)
            exact = x.double().prod() if dim is None else x.double().prod(dim)
            product = torch.empty(exact.shape, dtype=dtype if dtype in FLOATS else torch.int64)
            kernels("diopiProd", product, x, dim)
            torch.testing.assert_close(product, exact.to(product.dtype))


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.5, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", FLOATS)
def test_norms(kernels: Portable, p: float, dtype: torch.dtype) -> None:
    for x in layouts(numbers((6, 7, 3), dtype)):
        for dims in ([], [1], [0, 2]):
            exact = torch.linalg.vector_norm(x.double(), p, dims or None)
            out = torch.empty(exact.shape, dtype=dtype)
            kernels("diopiNorm", out, x, p, dims)
            torch.testing.assert_close(out, exact.to(dtype))
            kernels("diopiLinalgVecNorm", out, x, p, dims, False)
            torch.testing.assert_close(out, exact.to(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("correction", [None, 0, 2.0])
def test_standard_deviation(kernels: Portable, dtype: torch.dtype, correction: float | None) -> None:
    for x in layouts(numbers((6, 50), dtype) + 1000):
        exact = torch.std(x.double(), 1, correction=1 if correction is None else correction)
        out = torch.empty(6, dtype=dtype)
        kernels("diopiStd", out, x, [1], correction)
        torch.testing.assert_close(out, exact.to(dtype))


@pytest.mark.parametrize("dtype", ALL)
def test_extrema_and_their_positions(kernels: Portable, dtype: torch.dtype) -> None:
    for x in layouts(numbers((5, 4, 6), dtype)):
        for dim in (0, 1, -1):
            for name, function in (("Max", torch.max), ("Min", torch.min)):
                exact = function(x, dim)
                values, indices = torch.empty_like(exact.values), torch.empty_like(exact.indices)
                kernels(f"diopi{name}", values, indices, x, dim)
                assert torch.equal(values, exact.values)
                assert torch.equal(x.gather(dim, indices.unsqueeze(dim)).squeeze(dim), exact.values)
            peak = torch.empty_like(x.amax(dim))
            kernels("diopiAmax", peak, x, [dim], False)
            assert torch.equal(peak, x.amax(dim))
            position = torch.empty_like(indices)
            kernels("diopiArgmax", position, x, dim, False)
            assert torch.equal(position, x.double().argmax(dim))
        for name, function in (("diopiMaxAll", torch.max), ("diopiMinAll", torch.min)):
            out = torch.empty((), dtype=dtype)
            kernels(name, out, x)
            assert torch.equal(out, function(x))
        flat = torch.empty((), dtype=torch.int64)
        kernels("diopiArgmin", flat, x, None, False)
        assert torch.equal(flat, x.double().argmin())


@pytest.mark.parametrize(
    "shape,dim", [((70_000,), 0), ((3, 20_000, 2), 1), ((40_000, 40), 0), ((50, 2, 700), None), ((2, 9000, 3), None)]
)
def test_reductions_of_few_outputs_with_many_elements(
    kernels: Portable, shape: tuple[int, ...], dim: int | None
) -> None:
    exact = torch.randint(-500, 500, shape, generator=torch.Generator().manual_seed(3)).double()
    for x in layouts(exact.float()):
        place = torch.empty(exact.argmax(dim).shape, dtype=torch.int64)
        dims = list(range(x.dim())) if dim is None else [dim]
        largest = (exact == exact.amax(dims, keepdim=True)).int()
        kernels("diopiArgmax", place, x, dim, False)
        assert torch.equal(place, largest.argmax(dim))  # the first
        out = torch.empty(place.shape)
        kernels("diopiStd", out, x, dims, None)
        torch.testing.assert_close(out, exact.std(dims).float())
        kernels("diopiSum", out, x, dims)
        assert torch.equal(out, exact.sum(dims).float())


def test_the_first_nan_of_many_elements_wins(kernels: Portable) -> None:
    x = torch.arange(90_000.0)
    x[[41_000, 73_000]] = math.nan
    value, place = torch.empty(()), torch.empty((), dtype=torch.int64)
    kernels("diopiMin", value, place, x, 0)
    assert math.isnan(value.item())
    assert place.item() == 41_000


def test_nan_wins_and_equal_elements_keep_the_first_position(kernels: Portable) -> None:
    nan = math.nan
    x = torch.tensor([[1.0, nan, 5.0, nan], [2.0, 7.0, 7.0, -1.0], [-math.inf] * 4])
    values, indices = torch.empty(3), torch.empty(3, dtype=torch.int64)
    kernels("diopiMax", values, indices, x, 1)
    torch.testing.assert_close(values, torch.tensor([nan, 7.0, -math.inf]), equal_nan=True)
    assert indices.tolist() == [1, 1, 0]
    out = torch.empty(())
    kernels("diopiMinAll", out, x)
    assert math.isnan(out.item())


@pytest.mark.parametrize("dtype", ALL)
def test_cumulative_sum(kernels: Portable, dtype: torch.dtype) -> None:
    for x in layouts(numbers((4, 6, 3), dtype)):
        for dim in (0, 1, -1):
            out = torch.empty(x.shape, dtype=dtype if dtype in FLOATS else torch.int64)
            kernels("diopiCumsum", out, x, dim)
            torch.testing.assert_close(out, x.double().cumsum(dim).to(out.dtype))
    lines = numbers((2, 2500, 2), dtype)  # long enough for chunks, and for chunks of their sums
    out = torch.empty(lines.shape, dtype=torch.float64 if dtype in FLOATS else torch.int64)
    kernels("diopiCumsum", out, lines, 1)
    torch.testing.assert_close(out, lines.double().cumsum(1).to(out.dtype))
    scalar = torch.empty(())
    kernels("diopiCumsum", scalar, torch.tensor(4.0), 0)
    assert scalar.item() == 4


FORWARD: tuple[tuple[str, Any], ...] = (("Softmax", torch.softmax), ("LogSoftmax", torch.log_softmax))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name,function", FORWARD)
def test_softmax_and_its_gradient(kernels: Portable, dtype: torch.dtype, name: str, function: Any) -> None:
    for x in layouts(numbers((5, 7, 4), dtype) * 8):
        for dim in (0, 1, -1):
            wide = x.double().detach().requires_grad_()
            exact = function(wide, dim)
            out = torch.empty(x.shape, dtype=dtype)
            kernels(f"diopi{name}", out, x, dim)
            torch.testing.assert_close(out, exact.to(dtype))
            if dtype in (torch.float16, torch.bfloat16):
                continue  # the gradient of a rounded output differs from that of the exact one
            gradient = numbers((5, 7, 4), dtype, 1)
            exact.backward(gradient.double())
            grad_input = torch.empty_like(x)
            kernels(f"diopi{name}Backward", grad_input, gradient, out, dim)
            torch.testing.assert_close(grad_input, wide.grad.to(dtype), rtol=1e-5, atol=1e-6)


def test_softmax_of_extreme_lines(kernels: Portable) -> None:
    inf = math.inf
    x = torch.tensor([[1e4, -1e4, 0.0], [-inf, 0.0, 0.0], [-inf, -inf, -inf], [3e38, 3e38, -3e38]])
    out = torch.empty_like(x)
    for name, function in FORWARD:
        kernels(f"diopi{name}", out, x, 1)
        torch.testing.assert_close(out, function(x, 1), equal_nan=True)


def test_half_softmax_into_float(kernels: Portable) -> None:
    x = numbers((3, 9), torch.float16)
    out = torch.empty(3, 9)
    kernels("diopiSoftmax", out, x, 1)
    torch.testing.assert_close(out, torch.softmax(x.float(), 1))

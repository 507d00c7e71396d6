"""Elementwise kernels and copies over dtypes, layouts and shapes, against torch on the CPU."""

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from portable import DTYPE_NOT_SUPPORTED, ERROR, FLOATS, INTEGERS, Portable, build

ALL = (*FLOATS, *INTEGERS, torch.bool)


@pytest.fixture(scope="module")
def kernels() -> Portable:
    samples = Path(__file__).parent / "kernels" / "elementwise_samples.cpp"
    return Portable(build(["copy"], others=[samples]))


def numbers(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if dtype in FLOATS:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
    return torch.randint(0 if dtype == torch.uint8 else -9, 10, shape, generator=generator).to(dtype)


def layouts(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> list[torch.Tensor]:
    """The same shape contiguous, transposed, with gaps and an offset, and expanded."""
    base = numbers(shape, dtype, seed)
    transposed = base.transpose(0, -1).contiguous().transpose(0, -1)
    gaps = numbers((*shape[:-1], shape[-1] * 2 + 1), dtype, seed)[..., 1::2]
    return [base, transposed, gaps, base[:1].expand(shape)]


@pytest.mark.parametrize("a_dtype", ALL)
@pytest.mark.parametrize("b_dtype", ALL)
def test_add_promotes_like_torch(kernels: Portable, a_dtype: torch.dtype, b_dtype: torch.dtype) -> None:
    a, b = numbers((7, 5), a_dtype), numbers((7, 5), b_dtype, 1)
    expected = torch.add(a, b)
    out = torch.empty_like(expected)
    kernels("diopiAdd", out, a, b, 1)
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 300), (300, 2, 3), (5, 256), (1, 1000), (40, 41)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int16])
def test_add_takes_any_layout(kernels: Portable, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    for a, b, like in itertools.product(layouts(shape, dtype), layouts(shape, dtype, 1), layouts(shape, dtype, 2)[:3]):
        out = torch.empty_strided(like.shape, like.stride(), dtype=dtype)
        kernels("diopiAdd", out, a, b, 2)
        torch.testing.assert_close(out, torch.add(a, b, alpha=2))


def test_add_leaves_the_gaps_of_its_output_alone(kernels: Portable) -> None:
    whole = torch.full((6, 9), 7.0)
    kernels("diopiAdd", whole[::2, 1::2], torch.ones(3, 4), torch.ones(3, 4), 1)
    expected = torch.full((6, 9), 7.0)
    expected[::2, 1::2] = 2
    assert torch.equal(whole, expected)


@pytest.mark.parametrize("b_shape", [(4,), (3, 1), (1, 4), (), (1,), (2, 1, 4)])
def test_inputs_broadcast(kernels: Portable, b_shape: tuple[int, ...]) -> None:
    a, b = numbers((2, 3, 4), torch.float32), numbers(b_shape, torch.float32, 1)
    out = torch.empty(2, 3, 4)
    kernels("diopiAdd", out, a, b, 1)
    torch.testing.assert_close(out, a + b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("shape", "b_shape"),
    [((30, 300), (300,)), ((30, 300), (30, 1)), ((5, 2500), (2500,)), ((5, 2500), (5, 1)), ((3, 40, 64), (3, 1, 64))],
)
@pytest.mark.parametrize("turned", [False, True])
def test_one_row_for_many(
    kernels: Portable, shape: tuple[int, ...], b_shape: tuple[int, ...], dtype: torch.dtype, turned: bool
) -> None:
    """Of which the last block has fewer, or which are longer than a block."""
    a, b = torch.randn(shape), torch.randn(b_shape).to(dtype)
    a = a.transpose(0, 1).contiguous().transpose(0, 1) if turned else a
    out = torch.full(shape, torch.nan)
    kernels("diopiAdd", out, a, b, 1.0)
    assert torch.equal(out, a + b.float())


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_scalars_lose_their_fraction_between_integers(kernels: Portable, dtype: torch.dtype) -> None:
    """In float32 the numbers would lose their last digit."""
    numbers = torch.tensor([2**24 + 1, -7], dtype=dtype)
    out = torch.empty_like(numbers)
    kernels("diopiAddScalar", out, numbers, -2.5, 1)
    assert out.tolist() == [2**24 - 1, -9]


def test_zero_size_and_zero_dims(kernels: Portable) -> None:
    kernels("diopiAdd", torch.empty(0, 3), torch.empty(0, 3), torch.empty(3), 1)
    out = torch.empty(())
    kernels("diopiAdd", out, torch.tensor(2.0), torch.tensor(3.0), 4)
    assert out.item() == 14


def test_in_place_strided_and_dense(kernels: Portable) -> None:
    for a in layouts((6, 50), torch.float32)[:3]:
        expected = a + 3 * torch.ones(6, 50)
        kernels("diopiAddInp", a, torch.ones(6, 50), 3)
        torch.testing.assert_close(a, expected)


def test_shape_mismatch_is_an_error_with_a_message(kernels: Portable) -> None:
    assert kernels.status("diopiAdd", torch.empty(2, 3), torch.empty(2, 4), torch.empty(3), 1) == ERROR
    assert "size 4 does not broadcast to 3" in kernels.last_error()


def test_null_tensor_is_an_error(kernels: Portable) -> None:
    assert kernels.status("diopiAdd", torch.empty(2), None, torch.empty(2), 1) == ERROR
    assert "null" in kernels.last_error()


def test_dtypes_outside_of_the_set(kernels: Portable) -> None:
    flags = torch.ones(3, dtype=torch.bool)
    assert kernels.status("diopiPowTensor", flags, flags, flags) == DTYPE_NOT_SUPPORTED
    assert kernels.status("diopiBitwiseNot", torch.empty(3), torch.empty(3)) == DTYPE_NOT_SUPPORTED
    complex_tensor = torch.empty(3, dtype=torch.complex64)
    assert kernels.status("diopiAdd", complex_tensor, complex_tensor, complex_tensor, 1) == DTYPE_NOT_SUPPORTED


def test_float_scalar_makes_integers_compute_in_float(kernels: Portable) -> None:
    a = torch.arange(5, dtype=torch.int32)
    out = torch.empty(5)
    kernels("diopiAddScalar", out, a, 2.5, 1)
    torch.testing.assert_close(out, a + 2.5)


@pytest.mark.parametrize("dtype", ALL)
def test_comparison_gives_bool(kernels: Portable, dtype: torch.dtype) -> None:
    a, b = numbers((9, 33), dtype), numbers((9, 33), dtype, 1)
    out = torch.empty(9, 33, dtype=torch.bool)
    kernels("diopiLt", out, a, b)
    assert torch.equal(out, a < b)
    into_floats = torch.empty(9, 33)
    kernels("diopiLt", into_floats, a, b)
    assert torch.equal(into_floats, (a < b).float())


@pytest.mark.parametrize("dtype", ALL)
def test_where(kernels: Portable, dtype: torch.dtype) -> None:
    condition = numbers((4, 1, 6), torch.bool)
    a, b = numbers((5, 6), dtype, 1), numbers((4, 5, 1), dtype, 2)
    out = torch.empty(4, 5, 6, dtype=dtype)
    kernels("diopiWhere", out, condition, a, b)
    assert torch.equal(out, torch.where(condition, a, b))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_remainder_and_rounded_division(kernels: Portable, dtype: torch.dtype) -> None:
    a, b = numbers((400,), dtype), numbers((400,), dtype, 1)
    b[b == 0] = 3
    out = torch.empty_like(a)
    kernels("diopiRemainderTensor", out, a, b)
    torch.testing.assert_close(out, torch.remainder(a, b))
    for code, mode in ((1, "trunc"), (2, "floor")):
        kernels("diopiDiv", out, a, b, code)
        # torch rounds a half quotient before it truncates; ours truncates the exact one
        exact = torch.div(a.double(), b.double(), rounding_mode=mode).to(dtype)
        torch.testing.assert_close(out, exact)


def test_pieces_of_usual_and_of_other_numbers(kernels: Portable) -> None:
    """Runs longer than a piece: the middle one has numbers for which the usual form of a function will not do."""
    angles = 100 * numbers((4000,), torch.float32)
    angles[1500:2000] *= 1e30
    angles[1600], angles[1601], angles[1602] = float("inf"), float("nan"), -0.0
    out = torch.empty_like(angles)
    kernels("diopiSin", out, angles)
    torch.testing.assert_close(out, torch.sin(angles.double()).float(), rtol=4e-7, atol=0, equal_nan=True)
    assert math.copysign(1, out[1602]) == -1
    alone = torch.empty_like(angles)
    for k in range(0, 4000, 100):
        kernels("diopiSin", alone[k : k + 100], angles[k : k + 100])
    assert torch.equal(out.view(torch.int32), alone.view(torch.int32))

    divisors = numbers((4000,), torch.float32, 1)
    divisors[1700], divisors[3000], divisors[3001] = 1e-30, 0.0, float("inf")
    kernels("diopiRemainderTensor", out, angles, divisors)
    with np.errstate(invalid="ignore"):
        expected = torch.from_numpy(np.remainder(angles.numpy(), divisors.numpy()))
    torch.testing.assert_close(out, expected, rtol=1e-6, atol=0, equal_nan=True)


def test_integer_division_by_zero_and_of_the_smallest_value_does_not_trap(kernels: Portable) -> None:
    a = torch.tensor([5, -(2**31), -(2**31), 7], dtype=torch.int32)
    b = torch.tensor([0, -1, 0, -1], dtype=torch.int32)
    out = torch.empty_like(a)
    kernels("diopiDiv", out, a, b, 1)
    assert out.tolist() == [0, -(2**31), 0, -7]
    kernels("diopiRemainderTensor", out, a, b)
    assert out.tolist() == [0, 0, 0, 0]


def test_integer_powers_are_exact(kernels: Portable) -> None:
    base = torch.tensor([3, -2, 7, 1, -1, -1, 5, 0, 2])
    exponent = torch.tensor([39, 3, 0, -4, -3, -2, -1, 0, 64])
    out = torch.empty_like(base)
    kernels("diopiPowTensor", out, base, exponent)
    assert out.tolist() == [3**39, -8, 1, 1, -1, 1, 0, 1, 0]


def test_maximum_propagates_nan(kernels: Portable) -> None:
    nan = float("nan")
    a, b = torch.tensor([nan, 1.0, 2.0, -0.5]), torch.tensor([0.0, nan, 3.0, -1.0])
    out = torch.empty(4)
    kernels("diopiMaximum", out, a, b)
    torch.testing.assert_close(out, torch.maximum(a, b), equal_nan=True)


def test_erfinv_in_full_precision(kernels: Portable) -> None:
    ends = torch.tensor([-1, 1, 0, 1 - 1e-15, -1 + 1e-12, 1e-300, 1.5], dtype=torch.float64)
    y = torch.cat([torch.linspace(-0.999999, 0.999999, 1001, dtype=torch.float64), ends])
    out = torch.empty_like(y)
    kernels("diopiErfinv", out, y)
    torch.testing.assert_close(out, torch.erfinv(y), rtol=1e-13, atol=0, equal_nan=True)


def test_sigmoid_does_not_overflow(kernels: Portable) -> None:
    x = torch.tensor([-1000.0, -5.0, 0.0, 5.0, 1000.0])
    out = torch.empty(5)
    kernels("diopiSigmoid", out, x)
    torch.testing.assert_close(out, torch.sigmoid(x))


def test_half_conversions_are_exact_for_every_value(kernels: Portable) -> None:
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    for dtype in (torch.float16, torch.bfloat16):
        halves = bits.view(dtype)
        floats = torch.empty(2**16)
        kernels("diopiCastDtype", floats, halves)
        torch.testing.assert_close(floats, halves.float(), rtol=0, atol=0, equal_nan=True)


def test_rounding_to_half_matches_torch(kernels: Portable) -> None:
    generator = torch.Generator().manual_seed(3)
    floats = torch.randint(-(2**31), 2**31, (200_000,), generator=generator).to(torch.int32).view(torch.float32)
    near = torch.tensor([65504.0, 65519.99, 65520.0, 6e-8, 2.9e-8, 2.98023224e-8, 6.1e-5, -0.0])
    ties = torch.arange(-4096, 4096, dtype=torch.float32) / 2 + 2048
    values = torch.cat([floats, floats.clamp(-70000, 70000), near, ties])
    for dtype in (torch.float16, torch.bfloat16):
        out = torch.empty(values.shape, dtype=dtype)
        kernels("diopiCastDtype", out, values)
        torch.testing.assert_close(out, values.to(dtype), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize("target", ALL)
def test_copy_converts(kernels: Portable, source: torch.dtype, target: torch.dtype) -> None:
    values = (
        numbers((11, 30), source).abs() if target == torch.uint8 and source != torch.bool else numbers((11, 30), source)
    )
    for layout in (values, values.t().contiguous().t(), values[:1].expand(11, 30)):
        out = torch.empty(11, 30, dtype=target)
        kernels("diopiCopyInp", layout, out)
        assert torch.equal(out, layout.to(target))


def test_copies_of_complex_and_wide_unsigned_tensors(kernels: Portable) -> None:
    for dtype in (torch.complex64, torch.complex128):
        values = torch.randn(4, 6, dtype=dtype)
        out = torch.empty(6, 4, dtype=dtype)
        kernels("diopiTranspose", out, values, 0, -1)
        assert torch.equal(out, values.t())
    large = torch.tensor([2**63 + 5, 7], dtype=torch.uint64)
    out = torch.empty(2, dtype=torch.uint64)
    kernels("diopiCopyInp", large, out)
    assert torch.equal(out, large)


def test_permute_expand_and_fill(kernels: Portable) -> None:
    x = numbers((2, 3, 5), torch.float32)
    out = torch.empty(5, 2, 3)
    kernels("diopiPermute", out, x, [2, 0, 1])
    assert torch.equal(out, x.permute(2, 0, 1))
    assert kernels.status("diopiPermute", out, x, [2, 0, 0]) == ERROR
    wide = torch.empty(4, 2, 3, 5)
    kernels("diopiExpand", wide, x)
    assert torch.equal(wide, x.expand(4, 2, 3, 5))
    for dtype in ALL:
        filled = torch.empty(6, 8, dtype=dtype)
        kernels("diopiFill", filled[:, ::3], 3)
        kernels("diopiZeroInp", filled[:, 1::3])
        kernels("diopiFill", filled[:, 2::3], 1.75)
        for start, value in ((0, 3), (1, 0), (2, 1.75)):
            assert torch.equal(filled[:, start::3], torch.full_like(filled[:, start::3], value))

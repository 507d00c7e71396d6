"""Reductions at their edges: dtypes asked for, dimensions named twice, many of them, outputs that do not fit."""

import math
from typing import Any

import pytest

SPREADS = ["var", "std", "var_mean", "std_mean"]


def outcome(torch: Any, device: str, program: str) -> Any:
    """What the program gives: tensors on the CPU, or the class of its error and the first line of the words."""
    try:
        value = eval(program, {"t": torch, "d": device})
    except Exception as error:
        return type(error), str(error).splitlines()[0]
    return torch.utils._pytree.tree_map(lambda tensor: tensor.cpu(), value)


def same(torch: Any, program: str) -> None:
    wanted, ours = (outcome(torch, device, program) for device in ("cpu", "dipu"))
    if isinstance(wanted, tuple) and isinstance(wanted[0], type):
        assert ours == wanted, program
    else:
        torch.testing.assert_close(ours, wanted, equal_nan=True)


@pytest.mark.parametrize("name", SPREADS)
@pytest.mark.parametrize("keepdim", [False, True])
def test_the_spread_of_a_number_along_its_dimension(torch: Any, name: str, keepdim: bool) -> None:
    for correction in (0, 1):
        same(torch, f"t.{name}(t.tensor(3.0, device=d), dim=0, keepdim={keepdim}, correction={correction})")
    same(torch, f"t.{name}(t.tensor(3.0, device=d), dim=1)")


@pytest.mark.parametrize("name", [*SPREADS, "nansum", "amin", "amax", "sum", "count_nonzero", "logsumexp"])
def test_a_dimension_named_twice_is_refused(torch: Any, name: str) -> None:
    for dims in ((0, 0), (0, 1, 1, 2), (0, -3)):
        with pytest.raises(RuntimeError, match="appears multiple times in the list of dims"):
            getattr(torch, name)(torch.ones(3, 3, 3, device="dipu"), dim=dims)


@pytest.mark.parametrize("name", ["var", "var_mean", "std_mean"])
def test_a_spread_without_degrees_of_freedom_is_warned_of(torch: Any, name: str) -> None:
    for device in ("cpu", "dipu"):
        with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
            getattr(torch, name)(torch.ones(3, 4, device=device), dim=-1, correction=4)


@pytest.mark.parametrize("given", ["int32", "int8", "bool", "float32"])
@pytest.mark.parametrize("wanted", ["int16", "int32", "int64", "float32", "float64", "bool"])
def test_products_have_the_dtype_that_is_asked_for(torch: Any, given: str, wanted: str) -> None:
    x = f"t.tensor([[1, 2], [3, 1]], dtype=t.{given}, device=d)"
    same(torch, f"{x}.prod(dtype=t.{wanted})")
    same(torch, f"{x}.prod(0, dtype=t.{wanted})")
    if wanted != "bool":  # which the CPU has no scan of
        same(torch, f"{x}.cumprod(0, dtype=t.{wanted})")


def test_outputs_of_products_have_the_dtype_that_is_asked_for(torch: Any) -> None:
    for name in ("cumprod", "cumsum", "prod"):
        for dtype, out in (("int16", "int32"), ("float64", "float32"), ("float32", "float32")):
            same(torch, f"t.{name}(t.ones(3, device=d), 0, dtype=t.{dtype}, out=t.ones((), dtype=t.{out}, device=d))")
        same(torch, f"t.{name}(t.full((3,), 2, device=d), 0, out=t.empty((), dtype=t.int32, device=d))")
        same(torch, f"t.{name}(t.full((3,), 2, device=d), 0, out=t.empty((), dtype=t.float32, device=d))")


def test_outputs_of_mode(torch: Any) -> None:
    out = "t.mode(t.ones(4, device=d), out=(t.ones((), dtype=t.{}, device=d), t.ones((), dtype=t.{}, device=d)))"
    for values, indices in (("float32", "int64"), ("float64", "int64"), ("float32", "int32"), ("int8", "int64")):
        same(torch, out.format(values, indices))
    x, values, indices = torch.ones(2), torch.ones((), device="dipu"), torch.ones((), dtype=torch.int64)
    with pytest.raises(RuntimeError, match="expected device cpu but got dipu:0 for values"):
        torch.mode(x, out=(values, indices))
    with pytest.raises(RuntimeError, match="expected device dipu:0 but got cpu for indices"):
        torch.mode(x.to("dipu"), out=(values, indices))


@pytest.mark.parametrize("name", ["amin", "amax", "nansum", "var"])
def test_an_output_on_another_device_is_refused(torch: Any, name: str) -> None:
    x = torch.randn(4, 3)
    for source, out in ((x, torch.ones(3, device="dipu")), (x.to("dipu"), torch.ones(3))):
        with pytest.raises(RuntimeError, match="device"):
            getattr(torch, name)(source, 0, out=out)


def test_an_empty_dimension_has_no_element_of_any_rank(torch: Any) -> None:
    same(torch, "t.kthvalue(t.ones(2, 0, 4, device=d), 1, dim=1)")
    same(torch, "t.kthvalue(t.ones(2, 0, 4, device=d), 1, dim=2)")
    same(torch, "t.kthvalue(t.ones(2, 3, device=d), 4, dim=1)")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_histograms_of_the_greatest_numbers(torch: Any, dtype: str) -> None:
    info = torch.finfo(getattr(torch, dtype))
    for value in (info.min, info.max, 0.0, 2.5):
        counts = torch.histc(torch.full((3,), value, dtype=getattr(torch, dtype), device="dipu"), bins=4)
        assert counts.cpu().tolist() == [0, 0, 3, 0]


def test_bincount_says_what_it_takes(torch: Any) -> None:
    for x in ("t.tensor([1, -1], device=d)", "t.ones(2, 2, dtype=t.int64, device=d)"):
        same(torch, f"t.bincount({x})")
    for shape in ((2, 2), (1,), (3,), ()):
        same(torch, f"t.bincount(t.tensor([1, 0], device=d), t.ones({shape}, device=d))")
    with pytest.raises(NotImplementedError, match=r"bincount.*not implemented for 'Float'"):
        torch.bincount(torch.ones(3, device="dipu"))


def test_tensors_of_more_dimensions_than_the_kernels_take(torch: Any) -> None:
    shape = (2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 3)
    x = torch.arange(float(math.prod(shape))).reshape(shape)
    ours = x.to("dipu")
    torch.testing.assert_close((ours + ours.transpose(0, -1).transpose(0, -1)).cpu(), x + x)
    torch.testing.assert_close(ours.transpose(0, 4).contiguous().cpu(), x.transpose(0, 4).contiguous())
    torch.testing.assert_close(ours.sum((0, 2, 4)).cpu(), x.sum((0, 2, 4)))
    torch.testing.assert_close(ours.flip(0).cpu(), x.flip(0))
    assert torch.rand([1] * 65, device="dipu").shape == (1,) * 65
    for name in ("sum", "mean", "amin", "amax", "nansum", "std", "var", "logsumexp", "prod", "all", "any", "argmax"):
        with pytest.raises(RuntimeError, match="only tensors with up to 64 dims are supported"):
            getattr(torch, name)(torch.ones([1] * 65, device="dipu"), dim=0)

"""Dtypes that meet in one operator: the result has torch's dtype and value, and what torch refuses is refused."""

from typing import Any

import pytest

HALVES = ["float16", "bfloat16"]


def same(torch: Any, program: Any) -> None:
    """The program does on the device what it does on the CPU, a refusal included."""
    try:
        wanted = program("cpu")
    except Exception as error:
        with pytest.raises(type(error)):
            program("dipu")
        return
    found = program("dipu")
    assert found.dtype == wanted.dtype
    torch.testing.assert_close(found.cpu(), wanted)


@pytest.mark.parametrize("number", [2, 2.5, True])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "float32"])
def test_a_number_modulo_a_tensor(torch: Any, dtype: str, number: float) -> None:
    same(torch, lambda d: number % torch.tensor([1, 2, 3], device=d).to(getattr(torch, dtype)))


@pytest.mark.parametrize("name", ["atan2", "xlogy", "hypot", "fmod", "logaddexp", "special.xlog1py"])
@pytest.mark.parametrize("half", HALVES)
def test_bools_and_integers_with_halves(torch: Any, name: str, half: str) -> None:
    operator = torch.special.xlog1py if name == "special.xlog1py" else getattr(torch, name)
    numbers = torch.tensor([1, 2, 3])
    for other in (torch.bool, torch.uint8, torch.int64):
        same(torch, lambda d, o=other: operator(numbers.to(o).to(d), numbers.to(getattr(torch, half)).to(d)))
        same(torch, lambda d, o=other: operator(numbers.to(getattr(torch, half)).to(d), numbers.to(o).to(d)))


@pytest.mark.parametrize("half", HALVES)
def test_a_half_is_widened_before_its_logarithm(torch: Any, half: str) -> None:
    x, y = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 3.0]).to(getattr(torch, half))
    same(torch, lambda d: torch.xlogy(x.to(d), y.to(d)))
    same(torch, lambda d: x.clone().to(d).xlogy_(y.to(d)))


def test_a_difference_of_bools_is_refused(torch: Any) -> None:
    for dtype in (torch.bool, torch.int64, torch.float32):
        for other in (True, torch.tensor(True), torch.tensor([True, False])):
            same(torch, lambda d, t=dtype, o=other: torch.sub(torch.ones(2, dtype=t, device=d), placed(torch, o, d)))
            same(torch, lambda d, t=dtype, o=other: torch.rsub(torch.ones(2, dtype=t, device=d), placed(torch, o, d)))
            same(torch, lambda d, t=dtype, o=other: torch.ones(2, dtype=t, device=d).sub_(placed(torch, o, d)))
    same(torch, lambda d: torch.rsub(torch.ones(2, device=d), torch.arange(2, device=d), alpha=2))


def placed(torch: Any, value: Any, device: str) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) and value.dim() else value


def test_outputs_of_another_dtype_are_refused(torch: Any) -> None:
    whole, single = torch.tensor([1, 2, 3]), torch.tensor([1.0, 2.0, 3.0])
    same(torch, lambda d: torch.heaviside(whole.to(d), whole.to(d), out=torch.zeros(3, device=d)))
    same(torch, lambda d: torch.amin(single.to(d), 0, out=torch.zeros((), dtype=torch.float64, device=d)))
    same(torch, lambda d: torch.amin(torch.ones(0, 3, device=d), ()))


@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_gradient_of_a_loss_s_gradient(torch: Any, name: str, reduction: str) -> None:
    def program(d: str) -> Any:
        x = torch.tensor([0.5, -1.0, 3.0], device=d, requires_grad=True)
        y = torch.tensor([0.0, 0.25, 0.5], device=d, requires_grad=True)
        weight = torch.tensor(2.0, device=d, requires_grad=True)
        loss = getattr(torch.nn.functional, name)(x, y, reduction=reduction).sum() * weight
        (first,) = torch.autograd.grad(loss, x, create_graph=True)
        second = torch.autograd.grad(first.square().sum(), (x, y, weight))
        return torch.cat([t.detach().reshape(-1) for t in (first, *second)])

    same(torch, program)

"""Numbers in graphs: complex ones, and those that a dtype cannot hold."""

from collections.abc import Callable
from typing import Any

import pytest

COMPLEX: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "product": lambda t: lambda z: z * 1j,
    "sum": lambda t: lambda z: z + 2j,
    "quotient": lambda t: lambda z: z / 1j,
    "difference from it": lambda t: lambda z: 2j - z,
    "exponential": lambda t: lambda z: t.exp(1j * z.real),
    "power": lambda t: lambda z: z**2j,
    "filled": lambda t: lambda z: t.full_like(z, 2j) + z,
    "chosen": lambda t: lambda z: t.where(z.real > 0, z, 1j),
    "masked": lambda t: lambda z: z.masked_fill(z.real > 0, 1j),
    "factor of a product": lambda t: lambda z: t.addcmul(z, z, z, value=2j),
    "factor of a sum": lambda t: lambda z: t.add(z, z, alpha=1j),
    "compared": lambda t: lambda z: z == 1j,
    "a tensor of it": lambda t: lambda z: z * t.tensor(1j),
}
BEYOND: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "full_like": lambda t: lambda x: t.full_like(x, 300),
    "full": lambda t: lambda x: t.full((2,), 300, dtype=x.dtype, device=x.device) + x,
    "new_full": lambda t: lambda x: x.new_full((2,), 300),
    "masked_fill": lambda t: lambda x: x.masked_fill(x > 7, 300),
    "where": lambda t: lambda x: t.where(x > 7, x, 300),
    "where, first": lambda t: lambda x: t.where(x > 7, 300, x),
    "pad": lambda t: lambda x: t.nn.functional.pad(x, (1, 1), value=300),
    "maximum": lambda t: lambda x: t.maximum(x, t.full_like(x, 300)),
    "below": lambda t: lambda x: t.full_like(x, -300),
    "halves": lambda t: lambda x: t.full_like(x, 1e5, dtype=t.float16),
    "filled halves": lambda t: lambda x: x.half().masked_fill(x > 7, 1e5),
}


@pytest.mark.parametrize("exponent", [0.5, -0.5, 1.5, 2])
def test_a_root_of_minus_infinity_is_no_number(torch: Any, compiled: Any, exponent: float) -> None:
    x = torch.tensor([-float("inf"), -0.0, 4.0, float("inf")])
    found = compiled(lambda x: (x * 1) ** exponent)(x.to("dipu"))
    torch.testing.assert_close(found.cpu(), x**exponent, equal_nan=True)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers(torch: Any, compiled: Any, name: str, dynamic: bool) -> None:
    z = torch.randn(5, dtype=torch.complex64)
    found = compiled(COMPLEX[name](torch), dynamic=dynamic)(z.to("dipu"))
    torch.testing.assert_close(found.cpu(), COMPLEX[name](torch)(z))


def test_gradients_of_complex_numbers(torch: Any, compiled: Any) -> None:
    z = torch.randn(5, dtype=torch.complex64)
    gradients = []
    for device in ("cpu", "dipu"):
        x = z.to(device).detach().requires_grad_()
        run = (lambda z: (z * 1j + z / 2j).abs()) if device == "cpu" else compiled(lambda z: (z * 1j + z / 2j).abs())
        run(x).sum().backward()
        gradients.append(x.grad.cpu())
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("name", BEYOND)
def test_a_number_beyond_the_dtype_is_refused_in_the_words_of_eager_mode(torch: Any, compiled: Any, name: str) -> None:
    function = BEYOND[name](torch)
    x = torch.tensor([5, 200], dtype=torch.uint8, device="dipu")
    with pytest.raises(RuntimeError, match="without overflow") as eager:
        function(x)
    with pytest.raises(RuntimeError) as found:
        compiled(function)(x)
    assert str(found.value).splitlines()[0] == str(eager.value).splitlines()[0]


@pytest.mark.parametrize("number", [300, -1, 2.5, 1e10])
def test_arithmetic_with_such_numbers_is_as_in_eager_mode(torch: Any, compiled: Any, number: Any) -> None:
    x = torch.tensor([5, 200], dtype=torch.uint8)
    for function in (lambda x: x + number, lambda x: x * number, lambda x: x == number, lambda x: x < number):
        torch.compiler.reset()
        assert torch.equal(compiled(function)(x.to("dipu")).cpu(), function(x))


@pytest.mark.parametrize("operator", ["sub", "add", "mul", "div", "pow"])
def test_a_fallback_beside_a_number_of_the_host_gives_a_tensor_of_the_device(torch: Any, operator: str) -> None:
    z, number = torch.randn(3, dtype=torch.complex64), torch.tensor(2j, dtype=torch.complex128)
    found = getattr(torch, operator)(number, z.to("dipu"))
    assert found.device.type == "dipu"
    torch.testing.assert_close(found.cpu(), getattr(torch, operator)(number, z))

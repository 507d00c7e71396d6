"""What the vendor's library refuses while a program runs goes where eager mode goes, with the same report."""

from collections.abc import Callable
from typing import Any

import pytest

# Of nine dimensions, which the library takes of no function but elementwise ones.
FUNCTIONS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "cumsum": lambda t: lambda x: x.cumsum(8),
    "sum": lambda t: lambda x: x.sum((0, 2, 4, 6)),
    "sort": lambda t: lambda x: x.sort(8)[0],
    "positions of a sort": lambda t: lambda x: x.sort(8)[1] + 1,
    "gather": lambda t: lambda x: x.gather(8, t.ones_like(x, dtype=t.int64)),
    "flip": lambda t: lambda x: x.flip(0),
    "softmax": lambda t: lambda x: x.softmax(8),
    "log_softmax": lambda t: lambda x: x.log_softmax(8),
    "amax": lambda t: lambda x: x.amax((0, 2)),
    "roll": lambda t: lambda x: x.roll(1, 2),
    "norm": lambda t: lambda x: t.linalg.vector_norm(x, dim=(0, 2)),
    "between products": lambda t: lambda x: ((x * 2).cumsum(8) * 3).flip(0) + x,
}
ELEMENTWISE = ("aten::add", "aten::mul", "aten::fill_")


def _fallbacks(torch: Any, run: Callable[[], Any]) -> tuple[Any, dict[str, str]]:
    """What a call gives, and the operators that fell back meanwhile, with their causes."""
    torch.dipu.fallback.reset()
    found = run()
    return found, {row.operator: row.cause for row in torch.dipu.fallback.report()}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_refused_call_falls_back_as_in_eager_mode(torch: Any, compiled: Any, name: str) -> None:
    function = FUNCTIONS[name](torch)
    x = torch.randn(2, 1, 2, 1, 2, 1, 2, 1, 2)
    on_device = x.to("dipu")
    eager, causes = _fallbacks(torch, lambda: function(on_device))
    run = compiled(function)
    run(on_device)
    found, same = _fallbacks(torch, lambda: run(on_device))
    torch.testing.assert_close(found.cpu(), function(x))
    torch.testing.assert_close(found, eager)
    # Elementwise operators are loops of the program, which no library refuses.
    assert same and same.items() <= causes.items()
    assert {operator for operator in causes if operator.partition(".")[0] not in ELEMENTWISE} == same.keys()


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "positions of a sort"])
def test_gradients_fall_back(torch: Any, compiled: Any, name: str) -> None:
    gradients = []
    for device in ("cpu", "dipu"):
        function = FUNCTIONS[name](torch)
        x = torch.linspace(-1, 2, 32).reshape(2, 1, 2, 1, 2, 1, 2, 1, 2).to(device).requires_grad_()
        run = function if device == "cpu" else compiled(lambda x, f=function: f(x).square())
        for _ in range(2):
            x.grad = None
            (run(x).square() if device == "cpu" else run(x)).sum().backward()
        gradients.append(x.grad.cpu())
    torch.testing.assert_close(*gradients)


def test_a_forbidden_fallback_is_an_error(torch: Any, compiled: Any) -> None:
    run, x = compiled(lambda x: x.cumsum(8)), torch.ones((1,) * 9).to("dipu")
    with torch.dipu.fallback.strict(), pytest.raises(NotImplementedError, match="aten::cumsum would fall"):
        run(x)


@pytest.mark.parametrize("half", ["weight", "running_mean", "running_var"])
def test_statistics_of_another_dtype_are_refused_as_in_eager_mode(torch: Any, compiled: Any, half: str) -> None:
    given = {name: torch.ones(5) for name in ("running_mean", "running_var", "weight", "bias")}
    given[half] = given[half].half()
    given = {name: tensor.to("dipu") for name, tensor in given.items()}

    def normalized(x: Any) -> Any:
        return torch.nn.functional.batch_norm(x, **given, training=True)

    texts = []
    for function in (normalized, compiled(normalized)):
        with pytest.raises(RuntimeError) as raised:
            function(torch.ones(3, 5, device="dipu"))
        texts.append(str(raised.value))
    assert texts[0] == texts[1]

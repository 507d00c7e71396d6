"""Steps of optimizers: one loop for each parameter, the same numbers as in float64, and nothing compiled again."""

from collections.abc import Callable
from typing import Any

import pytest

from dicp.program import Kernel

Make = Callable[[Any, Any], Any]

OPTIMIZERS: dict[str, Make] = {
    "SGD": lambda torch, p: torch.optim.SGD(p, lr=0.1, foreach=False),
    "SGD with momentum": lambda torch, p: torch.optim.SGD(
        p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-2, foreach=False
    ),
    "SGD by lists": lambda torch, p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-2, foreach=True),
    "AdamW": lambda torch, p: torch.optim.AdamW(p, lr=0.1, foreach=False),
    "AdamW by lists": lambda torch, p: torch.optim.AdamW(p, lr=0.1, foreach=True),
    "AdamW with amsgrad": lambda torch, p: torch.optim.AdamW(p, lr=0.1, amsgrad=True, foreach=True),
    "Adam with a decay": lambda torch, p: torch.optim.Adam(p, lr=0.1, weight_decay=1e-2, foreach=True),
    "RMSprop": lambda torch, p: torch.optim.RMSprop(p, lr=0.01, foreach=True),
    "Adagrad": lambda torch, p: torch.optim.Adagrad(p, lr=0.1, foreach=True),
}


def parameters(torch: Any, device: str, dtype: Any) -> list[Any]:
    torch.manual_seed(0)
    return [torch.randn(size).to(device, dtype).requires_grad_() for size in ((16, 8), (16,), (4, 16), (4,))]


def trained(torch: Any, make: Make, device: str, dtype: Any, compiler: Any = None) -> list[Any]:
    """The parameters after four steps down a fixed slope."""
    moved = parameters(torch, device, dtype)
    optimizer = make(torch, moved)
    step = torch.compile(optimizer.step, backend=compiler) if compiler is not None else optimizer.step
    for count in range(4):
        torch.manual_seed(count)
        for parameter in moved:
            parameter.grad = torch.randn(parameter.shape).to(device, dtype) + 0.1 * parameter.detach()
        step()
    return [parameter.detach().cpu() for parameter in moved]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_is_one_loop_for_each_parameter(torch: Any, compiler: Any, reports: Any, name: str) -> None:
    found = trained(torch, OPTIMIZERS[name], "dipu", torch.float32, compiler)
    exact = trained(torch, OPTIMIZERS[name], "cpu", torch.float64)
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=2e-5, atol=2e-5)
    # The first step of some makes their state.
    assert len(reports()) <= 2, [report.text() for report in reports()]
    last = reports()[-1]
    loops = [one for one in last.program.instructions if isinstance(one, Kernel) and one.sizes]
    assert len(loops) == len(found), last.text()
    # The count of steps lies on the host, and is counted there, or is a loop over nothing.
    assert set(last.islands) <= {"aten::add", "aten::copy_"}, last.text()


def test_a_fused_step_stays_the_function_of_the_vendor(torch: Any, compiler: Any) -> None:
    make: Make = lambda torch, p: torch.optim.AdamW(p, lr=0.1, fused=True)  # noqa: E731
    torch.dipu.fallback.reset()
    found = trained(torch, make, "dipu", torch.float32, compiler)
    assert torch.dipu.fallback.report() == []
    for one, other in zip(found, trained(torch, make, "cpu", torch.float64), strict=True):
        torch.testing.assert_close(one.double(), other, rtol=2e-5, atol=2e-5)


LISTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "numbers": lambda torch, x, y: torch._foreach_add(torch._foreach_mul(x, 2.0), 1),
    "a number each": lambda torch, x, y: torch._foreach_mul(x, [0.5, 3.0]),
    "lists": lambda torch, x, y: torch._foreach_sub(x, y, alpha=0.5),
    "products": lambda torch, x, y: torch._foreach_addcmul(x, x, y, 0.5),
    "quotients": lambda torch, x, y: torch._foreach_addcdiv(x, x, torch._foreach_exp(y), [0.5, 2.0]),
    "between": lambda torch, x, y: torch._foreach_lerp(x, y, 0.25),
    "limits": lambda torch, x, y: torch._foreach_maximum(torch._foreach_minimum(x, 0.5), y),
    "powers": lambda torch, x, y: torch._foreach_pow(torch._foreach_abs(x), 2),
    "norms": lambda torch, x, y: torch._foreach_norm(x, 2),
}


@pytest.mark.parametrize("name", LISTS)
def test_operators_on_lists_are_loops(torch: Any, compiled: Any, reports: Any, name: str) -> None:
    torch.manual_seed(0)
    x, y = ([torch.randn(size) for size in ((4, 8), (5,))] for _ in range(2))
    found = compiled(lambda x, y: LISTS[name](torch, x, y))(*([t.to("dipu") for t in each] for each in (x, y)))
    exact = LISTS[name](torch, [t.double() for t in x], [t.double() for t in y])
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.cpu().double(), other, rtol=1e-5, atol=1e-5)
    (report,) = reports()
    assert len(report.program.instructions) == 2 and not report.islands, report.text()

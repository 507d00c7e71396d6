"""Calls of the vendor's functions: what they are asked for, and of which dtypes."""

from collections.abc import Callable
from typing import Any


def test_a_gradient_that_nobody_reads_is_not_asked_for(torch: Any, compiled: Callable[..., Any], reports: Any) -> None:
    layer = torch.nn.Linear(16, 8, bias=False).to("dipu")
    x = torch.randn(4, 16).to("dipu").requires_grad_()
    compiled(lambda x: layer(x).square())(x).sum().backward()
    backward = next(report for report in reports() if report.phase == "backward")
    (call,) = (i for i in backward.program.instructions if getattr(i, "symbol", "") == "diopiLinearBackward")
    assert [argument.kind for argument in call.arguments[:3]] == ["tensor", "tensor", "null"]
    y = x.detach().cpu().double().requires_grad_()
    torch.nn.functional.linear(y, layer.weight.detach().cpu().double()).square().sum().backward()
    torch.testing.assert_close(x.grad.cpu().double(), y.grad, rtol=1e-5, atol=1e-5)


def test_statistics_of_halves_are_wider(torch: Any, compiled: Callable[..., Any], reports: Any) -> None:
    layer = torch.nn.LayerNorm(32).to(torch.bfloat16).to("dipu")
    x = torch.randn(8, 32).to(torch.bfloat16).to("dipu").requires_grad_()
    compiled(layer)(x).float().square().sum().backward()
    assert [report.islands for report in reports()] == [(), ()]
    y = x.detach().cpu().double().requires_grad_()
    torch.nn.functional.layer_norm(y, (32,)).square().sum().backward()
    torch.testing.assert_close(x.grad.cpu().double(), y.grad, rtol=5e-2, atol=5e-2)

"""Dropout, safe softmax and RMS norm are operators of programs, not islands, and give what eager mode gives."""

from collections.abc import Callable
from typing import Any

import pytest


def both(torch: Any, compiler: Any, function: Callable[..., Any], *given: Any) -> list[list[Any]]:
    """Result and gradients of eager mode and of a compiled function, from the same seed."""
    found = []
    for run in (function, torch.compile(function, backend=compiler, fullgraph=True, dynamic=False)):
        inputs = [x.detach().to("dipu").requires_grad_() for x in given]
        torch.manual_seed(7)
        result = run(*inputs)
        result.square().sum().backward()
        found.append([tensor.detach().cpu() for tensor in (result, *(x.grad for x in inputs))])
    return found


FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "dropout": (lambda F, x, w: F.dropout(x * w, 0.3) * 2, "diopiDropout: native_dropout"),
    "dropout_of_nothing": (lambda F, x, w: F.dropout(x * w, 0.3, training=False) * 2, ""),
    "rms_norm": (lambda F, x, w: F.rms_norm(x.sin(), (32,), w), "diopiRMSNormBackward: _fused_rms_norm_backward"),
    "rms_norm_without_weight": (lambda F, x, w: F.rms_norm(x * w, (32,), None, 1e-3), "diopiRMSNorm: _fused_rms_norm"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_islands(torch: Any, compiler: Any, reports: Any, name: str) -> None:
    function, call = FUNCTIONS[name]
    x, w = (torch.randn(size, generator=torch.Generator().manual_seed(1)) for size in ((16, 32), (32,)))
    eager, compiled = both(torch, compiler, lambda x, w: function(torch.nn.functional, x, w), x, w)
    for mine, other in zip(compiled, eager, strict=True):
        torch.testing.assert_close(mine, other)
    assert not any(report.islands for report in reports())
    assert call in "\n".join(report.text() for report in reports())


def test_rows_without_a_finite_element_give_zeros(torch: Any, compiler: Any, reports: Any) -> None:
    x = torch.randn(6, 9)
    x[2] = -torch.inf
    run = torch.compile(lambda x: torch.ops.aten._safe_softmax(x * 1.0, -1), backend=compiler, fullgraph=True)
    expected = torch.ops.aten._safe_softmax(x.double(), -1)
    torch.testing.assert_close(run(x.to("dipu")).cpu().double(), expected, rtol=1e-5, atol=1e-6)
    assert expected[2].tolist() == [0.0] * 9
    assert not any(report.islands for report in reports())

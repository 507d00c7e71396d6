"""What a graph computes twice is computed once, and what only looks the same is left alone."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.processes import run_python


def traced(torch: Any, function: Callable[..., Any], *inputs: Any, mode: str = "fake") -> Any:
    """The function as a graph of AOTAutograd's kind."""
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(function, tracing_mode=mode)(*inputs)


def test_the_same_operator_of_the_same_values_is_one(torch: Any) -> None:
    from dicp.cse import eliminate_common_subexpressions

    def function(x: Any, y: Any) -> Any:
        first = torch.cat([x.exp(), y], 0) + torch.cat([x.exp(), y], 0)
        values, _ = x.sort(0)
        again, _ = x.sort(0)
        return (first * 2).sum(), values + again

    x, y = torch.randn(3, 4), torch.randn(2, 4)
    module = traced(torch, function, x, y)
    graph = eliminate_common_subexpressions(module.graph)
    graph.lint()
    left = [str(node.target) for node in graph.nodes if node.op == "call_function"]
    assert [left.count(f"aten.{name}.default") for name in ("exp", "cat", "sort")] == [1, 1, 1]
    for found, expected in zip(torch.fx.GraphModule(module, graph)(x, y), function(x, y), strict=True):
        torch.testing.assert_close(found, expected)


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "random": lambda torch, x: (x.bernoulli() + x.bernoulli()) * 2,
    "numbers of other types": lambda torch, x: (torch.full((3,), 1) * 2, torch.full((3,), True) * 2),
    "zeros of either sign": lambda torch, x: (x * 0.0 + 1, x * -0.0 + 1),
    "dtypes": lambda torch, x: (x.to(torch.float64) + 1, x.to(torch.float16) + 1),
    "before and after a write": lambda torch, x: (x.exp() * 2, x.add_(1).sum(), x.exp() * 3),
    "results that a caller may write": lambda torch, x: (x.exp(), x.exp()),
    "a view of a result": lambda torch, x: (x.exp(), x.exp().view(-1)),
    "memory that nobody has written": lambda torch, x: torch.empty(3).copy_(x[:3]) + torch.empty(3).copy_(x[1:4]),
    "sizes that data decide": lambda torch, x: x.nonzero().sum() + x.nonzero().prod(),
}


@pytest.mark.parametrize("name", CASES)
def test_what_only_looks_the_same_stays_two(torch: Any, name: str) -> None:
    from dicp.cse import eliminate_common_subexpressions

    mode = "symbolic" if name == "sizes that data decide" else "fake"
    graph = traced(torch, lambda x: CASES[name](torch, x), torch.rand(5), mode=mode).graph
    assert len(eliminate_common_subexpressions(graph).nodes) == len(graph.nodes)


def test_nothing_of_inductor_is_loaded_to_compile(libraries: Any) -> None:
    """Its lowerings take half a second to import."""
    program = """
import sys
import torch
x = torch.randn(5, device="dipu", requires_grad=True)
torch.compile(lambda x: (x.exp() + x.exp()).sum(), backend="diopi")(x).backward()
assert torch.allclose(x.grad.cpu(), 2 * x.detach().cpu().exp())
print([name for name in ("torch._inductor.lowering", "torch._inductor.pattern_matcher") if name in sys.modules])
"""
    done = run_python("-c", program, TORCH_DEVICE_BACKEND_AUTOLOAD="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"

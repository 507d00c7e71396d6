"""What is joined into one loop, and that joined loops compute what the operators compute one by one."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Function = Callable[[Any, Any], Any]


def rms_norm(torch: Any) -> Function:
    return lambda x, y: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * y


def softmax(torch: Any) -> Function:
    def run(x: Any, y: Any) -> Any:
        shifted = (x - x.amax(-1, keepdim=True)).exp()
        return shifted / shifted.sum(-1, keepdim=True) * y

    return run


def rotary(torch: Any) -> Function:
    def run(x: Any, y: Any) -> Any:
        (a, b), (c, d) = x.chunk(2, -1), y.chunk(2, -1)
        return torch.cat((a * c - b * d, a * d + b * c), -1)

    return run


JOINED: dict[str, tuple[Callable[[Any], Function], int]] = {
    "chain": (lambda t: lambda x, y: t.relu(x * y + 2).sigmoid() - x, 1),
    "two results": (lambda t: lambda x, y: (x + y, (x + y).exp()), 1),
    "broadcast": (lambda t: lambda x, y: (x + y[0]) * y[:, :1], 1),
    "views": (lambda t: lambda x, y: (x.view(-1).view(32, 16) * y.view(32, 16)).view(16, 32)[None] + y, 1),
    "dtypes": (lambda t: lambda x, y: (x.to(t.bfloat16) * y.to(t.bfloat16)).float() + x, 1),
    "comparison": (lambda t: lambda x, y: t.where(x > y, x, y.neg()) + (x != y), 1),
    "rms norm": (rms_norm, 1),
    "softmax": (softmax, 1),
    "rotary": (rotary, 1),
    "stack": (lambda t: lambda x, y: t.stack((x * 2, y, x), 1) + 1, 2),
    "parts of two shapes": (
        lambda t: lambda x, y: t.cat((x.view(4, 4, 32) * y[:4, None], y[0] + x.view(4, 4, 32)), 2),
        1,
    ),
    "the number of a row": (lambda t: lambda x, y: (x * y).sum(-1) + t.arange(16, device=x.device), 2),
    "read across": (lambda t: lambda x, y: ((x.view(-1) + 1).view(16, 32).t() * y.t()).contiguous().sum(-1), 1),
    "repeated": (lambda t: lambda x, y: (x[0] * 2 + 1) + y, 1),
    "repeated and returned": (lambda t: lambda x, y: ((row := x[0] * 2 + 1), row + y), 2),
    "repeated twice": (lambda t: lambda x, y: ((row := x[0] * 2 + 1) + y, row.unsqueeze(1) * y.t()), 3),
    "padding": (lambda t: lambda x, y: t.nn.functional.pad(x * y, (1, 2, 3, 0), value=7.0), 2),
}


@pytest.mark.parametrize("name", JOINED)
def test_elementwise_chains_are_few_launches(
    torch: Any, compiled: Any, reports: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DICP_PATTERNS", "0")
    make, launches = JOINED[name]
    x, y = torch.randn(16, 32), torch.randn(16, 32)
    expected = make(torch)(x, y)
    found = compiled(make(torch))(x.to("dipu"), y.to("dipu"))
    for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, expected)), strict=True):
        tolerance = 1e-2 if name == "dtypes" else 1e-6
        torch.testing.assert_close(one.cpu(), other, rtol=tolerance, atol=tolerance)
    (report,) = reports()
    assert len(report.program.instructions) <= launches, report.text()


SLICED: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "halves": (lambda t, x: t.nn.functional.silu(x[..., :16]) * x[..., 16:], 1),
    "from the end": (lambda t, x: t.cat((x[:, -8:].cos(), x[:, :10].exp(), x[:, 10:-8].sin()), 1), 3),
    "a gap": (lambda t, x: t.cat((x[:, :10].exp(), x[:, 11:].cos()), 1), 5),
    "twice": (lambda t, x: t.cat((x[:, :20].exp(), x[:, 10:].cos()), 1), 5),
    "rows": (lambda t, x: x[:8] * x[8:].exp(), 1),
}


@pytest.mark.parametrize("name", SLICED)
def test_gradients_of_slices_are_one_concatenation(torch: Any, compiled: Any, reports: Any, name: str) -> None:
    function, launches = SLICED[name]
    x = torch.randn(16, 32)
    one, other = x.to("dipu").requires_grad_(), x.double().requires_grad_()
    compiled(lambda x: function(torch, x))(one).square().sum().backward()
    function(torch, other).square().sum().backward()
    torch.testing.assert_close(one.grad.cpu().double(), other.grad, rtol=1e-5, atol=1e-4)
    assert len(reports()[1].program.instructions) == launches, reports()[1].text()


def test_equal_loops_are_one_kernel(torch: Any, compiled: Any, reports: Any) -> None:
    def layers(x: Any, w: Any) -> Any:
        for _ in range(4):
            x = (x @ w).tanh() * 0.5
        return x + 1

    x, w = torch.randn(16, 16), torch.randn(16, 16)
    torch.testing.assert_close(compiled(layers)(x.to("dipu"), w.to("dipu")).cpu(), layers(x, w))
    (report,) = reports()
    assert report.emitted.source.count("struct Kernel") == 2
    assert report.emitted.source.count("launch_runs(") == 4


def test_a_rounding_that_was_asked_for_stays(torch: Any, compiled: Any) -> None:
    x = torch.linspace(0, 1, 1000)
    found = compiled(lambda x: x.to(torch.bfloat16).float() - x)(x.to("dipu"))
    assert torch.equal(found.cpu(), x.to(torch.bfloat16).float() - x)


def test_what_is_computed_twice_is_computed_once(torch: Any, compiled: Any, reports: Any) -> None:
    x = torch.randn(8, 8)
    found = compiled(lambda x: (x @ x).exp() + (x @ x).sin())(x.to("dipu"))
    torch.testing.assert_close(found.cpu(), (x @ x).exp() + (x @ x).sin(), rtol=1e-5, atol=1e-5)
    (report,) = reports()
    assert len(report.program.instructions) == 2, report.text()


def test_random_operators_are_never_one(torch: Any, compiled: Any) -> None:
    found = compiled(lambda x: torch.rand_like(x) - torch.rand_like(x))(torch.ones(64, device="dipu"))
    assert found.abs().max() > 0


def test_a_write_into_an_argument_is_seen_by_later_reads_only(torch: Any, compiled: Any) -> None:
    def run(x: Any) -> Any:
        before = x * 2
        x.add_(1)
        return before, x * 3

    one, other = torch.arange(6.0), torch.arange(6.0).to("dipu")
    expected, found = run(one), compiled(run)(other)
    assert all(torch.equal(a.cpu(), b) for a, b in zip((*found, other), (*expected, one), strict=True))


UNARY = ("relu", "sigmoid", "exp", "neg", "square", "tanh")
BINARY = ("add", "mul", "sub", "maximum", "minimum")


@st.composite
def expressions(draw: Any) -> list[tuple[Any, ...]]:
    """Steps over earlier values: elementwise, views and reductions of rows that are broadcast again."""
    steps: list[tuple[Any, ...]] = []
    for at in range(2, draw(st.integers(3, 9))):
        earlier = st.integers(0, at - 1)
        kind = draw(st.sampled_from(("unary", "binary", "rows", "turned", "half")))
        match kind:
            case "unary":
                steps.append((kind, draw(st.sampled_from(UNARY)), draw(earlier)))
            case "binary":
                steps.append((kind, draw(st.sampled_from(BINARY)), draw(earlier), draw(earlier)))
            case "rows":
                steps.append((kind, draw(st.sampled_from(("sum", "mean", "amax"))), draw(earlier)))
            case _:
                steps.append((kind, draw(earlier)))
    return steps


def computed(torch: Any, steps: list[tuple[Any, ...]], x: Any, y: Any) -> Any:
    values = [x, y]
    for step in steps:
        match step:
            case ("unary", name, at):
                values.append(getattr(torch, name)(values[at].clamp(-3, 3)))
            case ("binary", name, at, other):
                values.append(getattr(torch, name)(values[at], values[other]))
            case ("rows", name, at):
                values.append((values[at] - getattr(values[at], name)(-1, keepdim=True)) / values[at].shape[-1])
            case ("turned", at):
                values.append(values[at].t().contiguous().view(values[at].shape))
            case ("half", at):
                half = values[at].shape[-1] // 2
                values.append(torch.cat((values[at][:, half:], values[at][:, :half]), -1))
    return values[-1], values[-2]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=expressions(), rows=st.sampled_from((1, 3, 16)), columns=st.sampled_from((2, 8, 130)))
def test_any_expression_gives_what_float64_gives(
    torch: Any, compiled: Any, steps: list[tuple[Any, ...]], rows: int, columns: int
) -> None:
    torch.compiler.reset()
    x, y = torch.randn(rows, columns), torch.randn(rows, columns)
    found = compiled(lambda x, y: computed(torch, steps, x, y))(x.to("dipu"), y.to("dipu"))
    exact = computed(torch, steps, x.double(), y.double())
    for one, other in zip(found, exact, strict=True):
        scale = max(1.0, float(other.abs().max()))
        assert float((one.cpu().double() - other).abs().max()) <= 1e-5 * scale, steps

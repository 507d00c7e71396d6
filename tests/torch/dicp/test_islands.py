"""What the program leaves to the framework: operators without a binding, host tensors, sizes that data decide."""

from collections.abc import Callable
from typing import Any

import pytest

FUNCTIONS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "no binding": lambda t: lambda x: x[t.tensor([2, 0], device=x.device)] * 2,
    "padding that cuts off": lambda t: lambda x: t.nn.functional.pad(x, (-1, 2)) * 2,
    "padding and joining": lambda t: lambda x: t.stack((t.nn.functional.pad(x, (1, 2), value=3), x.new_ones(4, 9)), -1),
    "several results": lambda t: lambda x: t.std_mean(x * 2, 1),
    "a list of results": lambda t: lambda x: [part + 1 for part in t.split_copy(x, 3)],
    "a tensor of the host": lambda t: lambda x: x * t.tensor(3.0) + 1,
    "moves to the host": lambda t: lambda x: (x * 2).cpu() + 1,
    "moves from the host": lambda t: lambda x: t.ones(4, 6).to(x.device) + x,
    "another width": lambda t: lambda x: x.view(t.int32) + 1,
    "elements that share memory": lambda t: lambda x: t.select_scatter(x[0].expand(4, 6), x[1], 0, 2),
    "a whole storage is copied": lambda t: lambda x: t.ops.aten.copy.default((x * 2)[1:3], x[:2]) + 1,
    "complex numbers": lambda t: lambda x: t.view_as_real(t.complex(x, x + 1) * 2),
    "a returned argument": lambda t: lambda x: (x, x[1:], x + 1),
    "one result twice": lambda t: lambda x: (lambda y: (y, y, y.t()))(x * 2),
    "no element": lambda t: lambda x: (x[:0] * 2).sum(0) + x[:, :0].sum(),
    "no dimension": lambda t: lambda x: x[0, 0].exp().softmax(0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_islands_give_what_eager_mode_gives(torch: Any, compiled: Any, name: str, dynamic: bool) -> None:
    x = torch.arange(24.0).reshape(4, 6) - 5
    expected, found = FUNCTIONS[name](torch)(x), compiled(FUNCTIONS[name](torch), dynamic=dynamic)(x.to("dipu"))
    flat = [list(r) if isinstance(r, tuple | list) else [r] for r in (found, expected)]
    if name == "a tensor of the host" or name.startswith("moves"):
        assert flat[0][0].device.type == ("cpu" if name == "moves to the host" else "dipu")
    for one, other in zip(*flat, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        torch.testing.assert_close(one.cpu(), other, rtol=1e-6, atol=1e-6)


def test_a_graph_with_sizes_that_data_decide_runs_node_by_node(torch: Any, compiled: Any, reports: Any) -> None:
    x = torch.tensor([1.0, -2.0, 3.0, -4.0])
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        run = compiled(lambda x: (x * 2)[(x * 2) > 0] + 1)
        with pytest.warns(UserWarning, match="^inference: the graph runs node by node: "):
            assert torch.equal(run(x.to("dipu")).cpu(), torch.tensor([3.0, 7.0]))
        assert torch.equal(run(-x.to("dipu")).cpu(), torch.tensor([5.0, 9.0]))
    assert reports()[0].text().startswith("inference: the graph runs node by node: ")


def test_random_numbers_are_those_of_eager_mode(torch: Any, compiled: Any) -> None:
    def run(x: Any) -> Any:
        return torch.nn.functional.dropout(x, 0.5) * 2 + torch.rand_like(x)

    x, drawn = torch.ones(64, device="dipu"), []
    for call in (run, compiled(run)):
        torch.manual_seed(3)
        drawn.append([call(x).cpu(), call(x).cpu()])
    assert torch.equal(drawn[0][0], drawn[1][0]) and torch.equal(drawn[0][1], drawn[1][1])
    assert not torch.equal(*drawn[1])


def test_strict_names_the_operators_that_have_no_binding(
    torch: Any, compiled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DICP_STRICT", "1")
    with pytest.raises(Exception, match="DICP_STRICT is set, and these operators have no binding: aten::index "):
        compiled(lambda x: x[x.argmax(0), x.argmax(0)] + 1)(torch.eye(3, device="dipu"))


def test_programs_run_on_the_device_of_their_tensors(torch: Any, compiled: Any) -> None:
    if torch.dipu.device_count() < 2:
        pytest.skip("there is one device")
    x = torch.arange(6.0)
    run = compiled(lambda x, y: ((x * 2).exp() + y.to(x.device), y - 1))
    for own, other in (("dipu:1", "dipu:0"), ("dipu:0", "dipu:1")):
        first, second = run(x.to(own), x.to(other))
        assert (str(first.device), str(second.device)) == (own, other)
        torch.testing.assert_close((first.cpu(), second.cpu()), ((x * 2).exp() + x, x - 1))


def test_what_an_operator_keeps_for_its_gradient_has_the_sizes_that_were_foreseen(torch: Any, compiled: Any) -> None:
    x = torch.randn(5, 6)
    there = x.to("dipu").requires_grad_()
    compiled(lambda x: torch.nn.functional.logsigmoid(x).square())(there).sum().backward()
    exact = x.double().requires_grad_()
    torch.nn.functional.logsigmoid(exact).square().sum().backward()
    torch.testing.assert_close(there.grad.cpu().double(), exact.grad, rtol=1e-5, atol=1e-6)

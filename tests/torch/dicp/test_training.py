"""Training steps of compiled functions: the first goes through AOTAutograd's wrappers, later ones may go past them.

Both must do what eager mode does, and refuse what AOTAutograd refuses.
"""

import gc
from collections.abc import Callable
from typing import Any

import pytest

Function = Callable[..., Any]


def past_the_wrappers(output: Any) -> bool:
    """Whether the tensor comes from a function of C++."""
    return type(output.grad_fn).__name__ == "CppFunction"


@pytest.fixture
def trained(torch: Any, compiled: Any) -> Callable[..., tuple[Function, bool]]:
    """A compiled function after its first step, and whether its next goes past the wrappers."""

    def make(function: Function, *inputs: Any, **options: Any) -> tuple[Function, bool]:
        run = compiled(function, **options)
        for _ in range(2):
            outputs = run(*(x.detach().clone().requires_grad_(x.requires_grad) for x in inputs))
            outputs = [o for o in (outputs if isinstance(outputs, tuple) else (outputs,)) if o.requires_grad]
            sum(output.sum() for output in outputs).backward()
        return run, past_the_wrappers(outputs[0])

    return make


def several(torch: Any) -> Function:
    """Outputs that are differentiable, one that is an index, one that needs no gradient."""
    return lambda x, y: (x.exp() @ y, x.argmax(-1), (y * 2).detach(), (x * y).sum())


def views(torch: Any) -> Function:
    return lambda x, y: (x.view(-1), (x + y).t())


def written(torch: Any) -> Function:
    def run(x: Any, y: Any) -> Any:
        y.mul_(2)
        return (x * y).tanh()

    return run


FUNCTIONS: dict[str, tuple[Callable[[Any], Function], bool, bool]] = {
    "several outputs": (several, True, True),  # the second argument wants a gradient; it goes past the wrappers
    "no gradient of one": (several, False, True),
    "views of arguments": (views, True, False),
    "an argument that is written": (written, False, True),
}


def steps(torch: Any, run: Function, x: Any, y: Any) -> list[Any]:
    """What an input and the gradients are after a step that uses the first output only, turned."""
    first, *_ = found = run(x, y)
    outputs = found if isinstance(found, tuple) else (found,)
    first = outputs[0]
    (first.t() if first.dim() == 2 else first).square().sum().backward()
    return [*outputs, x.grad, y, y.grad]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_steps_are_those_of_eager_mode(torch: Any, trained: Any, name: str) -> None:
    make, both, past = FUNCTIONS[name]
    x, y = torch.randn(6, 6), torch.randn(6, 6)
    there = [x.to("dipu").requires_grad_(), y.to("dipu").requires_grad_(both)]
    run, found_past = trained(make(torch), *there)
    assert found_past == past
    expected = steps(torch, make(torch), x.requires_grad_(), y.requires_grad_(both))
    for one, other in zip(steps(torch, run, *there), expected, strict=True):
        assert (one is None) == (other is None)
        if other is not None:
            assert one.requires_grad == other.requires_grad
            torch.testing.assert_close(one.detach().cpu(), other.detach(), rtol=1e-5, atol=1e-5)


def leaf(torch: Any) -> Any:
    return torch.rand(5, 5, device="dipu").requires_grad_()


def test_a_write_to_what_was_saved_is_an_error(torch: Any, compiled: Any, trained: Any) -> None:
    for run in (compiled(lambda x: x.exp()), trained(lambda x: x.exp(), leaf(torch))[0]):
        output = run(leaf(torch))
        with torch.no_grad():
            output.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            output.sum().backward()


def test_a_write_to_an_argument_that_was_saved_is_an_error(torch: Any, compiled: Any, trained: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        return (x * y).view(-1)

    for run in (compiled(function), trained(function, leaf(torch), leaf(torch))[0]):
        y = torch.rand(5, 5, device="dipu")
        output = run(leaf(torch), y)
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            output.sum().backward()


def test_a_write_by_the_graph_is_seen_by_autograd(torch: Any, trained: Any) -> None:
    run, past = trained(written(torch), leaf(torch), torch.rand(5, 5, device="dipu"))
    y = torch.rand(5, 5, device="dipu")
    other = leaf(torch)
    saved = (other * y).sum()
    run(leaf(torch), y)
    assert past
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.backward()


def test_a_graph_runs_backward_once_unless_it_is_kept(torch: Any, trained: Any) -> None:
    run, past = trained(lambda x: x.exp().sum(), leaf(torch))
    x = leaf(torch)
    output = run(x)
    assert past
    (first,) = torch.autograd.grad(output, x, retain_graph=True)
    (second,) = torch.autograd.grad(output, x)
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(output, x)


def test_a_gradient_has_no_gradient(torch: Any, trained: Any) -> None:
    run, past = trained(lambda x: x.exp().sum(), leaf(torch))
    x = leaf(torch)
    (gradient,) = torch.autograd.grad(run(x), x, create_graph=True)
    assert past and gradient.requires_grad
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        gradient.sum().backward()


def test_hooks_see_gradients_and_saved_tensors(torch: Any, trained: Any) -> None:
    run, past = trained(lambda x: x.exp().sum(), leaf(torch))
    x = leaf(torch)
    seen: list[Any] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.cpu(), lambda t: t.to("dipu")):
        output = run(x)
    x.register_hook(lambda gradient: seen.append(gradient.clone()))
    output.backward()
    assert past
    torch.testing.assert_close(x.grad.cpu(), x.detach().cpu().exp())
    torch.testing.assert_close(seen[0], x.grad)


def test_what_is_not_differentiated_goes_with_its_output(torch: Any, trained: Any) -> None:
    run, past = trained(lambda x: x.exp(), leaf(torch))
    x = leaf(torch)
    output = run(x)
    gc.collect()
    gc.disable()
    try:
        del output
        before = torch.dipu.memory_allocated()
        for _ in range(3):
            run(x)
        assert past and torch.dipu.memory_allocated() == before
    finally:
        gc.enable()


def test_symbols_go_through_the_wrappers(torch: Any, trained: Any) -> None:
    run, past = trained(lambda x: x.exp().sum(), leaf(torch), dynamic=True)
    x = torch.rand(7, 3, device="dipu").requires_grad_()
    run(x).backward()
    assert not past
    torch.testing.assert_close(x.grad, x.detach().exp())


def test_deterministic_algorithms_are_asked_for_both_ways(torch: Any, trained: Any) -> None:
    run, past = trained(lambda x: x.exp().sum(), leaf(torch))
    output = run(leaf(torch))
    assert past
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match="use_deterministic_algorithms"):
            output.backward()
    finally:
        torch.use_deterministic_algorithms(False)


def test_autocast_outside_does_not_change_what_was_traced(torch: Any, trained: Any) -> None:
    def function(x: Any, y: Any) -> Any:
        return (x @ y).exp().sum()

    run, past = trained(function, leaf(torch), leaf(torch))
    x, y = leaf(torch), leaf(torch)
    output = run(x, y)
    with torch.autocast("dipu", torch.bfloat16):
        output.backward()
    assert past
    product = (x @ y).exp().detach()
    torch.testing.assert_close(x.grad, product @ y.detach().t())

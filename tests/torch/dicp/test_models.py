"""Models that train when compiled as they do in eager mode, in one graph each way, with sizes fixed or symbols."""

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest

from demo.models import TASKS, loss_of

NAMES = [task.name for task in TASKS]


def gradients(torch: Any, module: Any, run: Callable[..., Any], inputs: Any, target: Any) -> list[Any]:
    module.zero_grad()
    loss = run(inputs, target)
    loss.backward()
    tensors = [loss.detach(), *(parameter.grad for parameter in module.parameters()), *module.buffers()]
    return [tensor.cpu().clone() for tensor in tensors]


def pair(torch: Any, name: str) -> tuple[Any, Any, Any, Any]:
    """A model, a copy of it, and a batch."""
    task = TASKS[NAMES.index(name)]
    torch.manual_seed(20)
    eager = task.model().to("dipu")
    inputs, target = (tensor.to("dipu") for tensor in task.batch())
    return eager, copy.deepcopy(eager), inputs, target


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_eager_mode(torch: Any, compiled: Any, reports: Any, name: str) -> None:
    eager, module, inputs, target = pair(torch, name)
    run = compiled(lambda x, y: loss_of(module(x), y))
    for _ in range(2):
        expected = gradients(torch, eager, lambda x, y: loss_of(eager(x), y), inputs, target)
        found = gradients(torch, module, run, inputs, target)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert [report.phase for report in reports()] == ["forward", "backward"]
    assert all(report.program is not None for report in reports())


SIZED = [
    name if name == "MLP" else pytest.param(name, marks=pytest.mark.deep("matrix", "the same of an MLP"))
    for name in NAMES
]


@pytest.mark.parametrize("name", SIZED)
def test_twenty_sizes_need_two_recompilations_at_most(torch: Any, compiled: Any, name: str) -> None:
    eager, module, inputs, target = pair(torch, name)
    run = compiled(lambda x, y: loss_of(module(x), y), dynamic=True)
    sizes = random.Random(1)
    for step in range(20):
        count = sizes.randint(1, 8) if step else 4
        x, y = (tensor[:1].repeat(count, *[1] * (tensor.dim() - 1)) for tensor in (inputs, target))
        if name == "LLaMA":
            length = sizes.randint(2, x.shape[1])
            x, y = x[:, :length].contiguous(), y[:, :length].contiguous()
        expected = gradients(torch, eager, lambda x, y: loss_of(eager(x), y), x, y)
        torch.testing.assert_close(gradients(torch, module, run, x, y), expected, rtol=1e-5, atol=1e-6)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 3


def test_inference_writes_the_same_numbers_without_a_graph_for_gradients(
    torch: Any, compiled: Any, reports: Any
) -> None:
    eager, module, inputs, _ = pair(torch, "ResNet")
    with torch.no_grad():
        found, expected = compiled(module.eval())(inputs), eager.eval()(inputs)
    torch.testing.assert_close(found.cpu(), expected.cpu(), rtol=1e-5, atol=1e-6)
    assert [report.phase for report in reports()] == ["inference"]


def test_autocast_computes_in_the_halves_that_eager_mode_computes_in(torch: Any, compiled: Any) -> None:
    eager, module, inputs, target = pair(torch, "LLaMA")

    def run(model: Any) -> Callable[..., Any]:
        def loss(x: Any, y: Any) -> Any:
            with torch.autocast("dipu", dtype=torch.bfloat16):
                return loss_of(model(x), y)

        return loss

    expected = gradients(torch, eager, run(eager), inputs, target)
    found = gradients(torch, module, compiled(run(module)), inputs, target)
    for one, other in zip(found, expected, strict=True):
        assert float((one - other).abs().max()) <= 0.03 * float(other.abs().max())


def test_a_compiled_optimizer_steps_as_the_eager_one(torch: Any, compiled: Any) -> None:
    eager, module, inputs, target = pair(torch, "MLP")
    weights = []
    for model, wrap in ((eager, lambda step: step), (module, lambda step: compiled(step, fullgraph=False))):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        step = wrap(optimizer.step)
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model(inputs), target).backward()
            step()
        weights.append([parameter.detach().cpu() for parameter in model.parameters()])
    torch.testing.assert_close(*weights, rtol=1e-3, atol=1e-5)

"""Operators that the schemas shape, and those written by hand: values, shapes, dtypes and gradients as on the CPU.

Each text is evaluated twice, with `t` that makes the same tensor on the CPU and on the device. Operators that torch
shapes itself (structured groups) are in test_wrappers.py.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

F = "torch.nn.functional"
SAMPLES = [
    # loss, statistics, channels
    f"{F}.binary_cross_entropy(t(3, 4).sigmoid(), t(3, 4).sigmoid(), reduction='none')",
    f"{F}.binary_cross_entropy(t(3, 4).sigmoid(), t(3, 4).sigmoid(), t(4).sigmoid())",
    f"{F}.binary_cross_entropy_with_logits(t(3, 4), t(3, 4).sigmoid(), pos_weight=t(4).abs())",
    f"{F}.cross_entropy(t(6, 5), t(6, low=0, high=5), reduction='none')",
    f"{F}.nll_loss(t(2, 5, 3, 3), t(2, 3, 3, low=0, high=5))",
    "torch.native_layer_norm(t(2, 3, 4), [3, 4], t(3, 4), t(3, 4), 1e-5)",
    "torch.native_batch_norm(t(2, 3, 4), t(3), t(3), None, None, True, 0.1, 1e-5)",
    f"{F}.batch_norm(t(2, 3, 4, 5), t(3), t(3).abs(), training=False)",
    # windows
    f"{F}.conv2d(t(2, 3, 8, 9), t(4, 3, 3, 2), t(4), stride=(2, 1), padding=1, dilation=(1, 2))",
    f"{F}.conv2d(t(2, 4, 8, 8), t(4, 1, 3, 3), groups=4)",
    f"{F}.conv1d(t(2, 3, 9), t(4, 3, 3), stride=2)",
    f"{F}.conv3d(t(1, 2, 4, 4, 4), t(3, 2, 2, 2, 2))",
    f"{F}.conv_transpose2d(t(1, 3, 4, 4), t(3, 2, 3, 3), stride=2)",
    f"{F}.max_pool2d(t(2, 3, 7, 9), 3, stride=2, padding=1, ceil_mode=True)",
    f"{F}.max_pool2d(t(3, 7, 9), 2, return_indices=True)",
    f"{F}.avg_pool2d(t(2, 3, 7, 9), 3, stride=2, ceil_mode=True, count_include_pad=False)",
    f"{F}.adaptive_avg_pool2d(t(2, 3, 7, 9), (3, 4))",
    # indexing
    f"{F}.embedding(t(2, 3, low=0, high=7), t(7, 4))",
    "torch.index_select(t(4, 5), -1, t(3, low=0, high=5))",
    "torch.index_select(t(), 0, t(1, low=0, high=1))",
    "t(4, 5)[t(3, low=0, high=4)]",
    "t(4, 5, 6)[:, t(2, 1, low=0, high=5), t(3, low=0, high=6)]",
    "t(4, 5)[t(4, 5) > 0]",
    "t(4, 5)[t(4) > 0]",
    "torch.nonzero(t(4, 5) > 0)",
    "torch.nonzero(t(0, 5))",
    "torch.masked_select(t(4, 5), t(5) > 0)",
    "t(4, 5).index_put((t(3, low=0, high=4).unique(),), t())",
    "t(4, 5).index_put((t(3, low=0, high=4), t(3, low=0, high=5)), t(3), accumulate=True)",
    "t(4, 5).masked_fill(t(5) > 0, 2.5)",
    "t(4, 5).masked_fill(t(4, 1) > 0, t())",
    # reductions without a meta class
    "t(3, 4).max()",
    "t(3, 4, 5).std((0, -1), keepdim=True)",
    "t(3, 4, 5).std()",
    "t(3, 4, low=0, high=5).prod()",
    "torch.equal(t(3, 4), t(3, 4))",
    # rearrangement
    "torch.stack([t(2, 3), t(2, 3)], -1)",
    "torch.cat([t(2, 3), t(0), t(4, 3)])",
    "torch.flip(t(2, 3), [0, -1])",
    "torch.roll(t(2, 3), (1, -1), (0, 1))",
    "t(2, 3).repeat(2, 1, 3)",
    "torch.where(t(3, 1) > 0, t(4), 1)",
    "torch.where(t(3) > 0, torch.tensor(1.5), t(3, low=0, high=5))",
    # numbers in, tensor out
    "torch.arange(2, 11, 3, device=t().device)",
    "torch.arange(1.0, -1.0, -0.3, device=t().device)",
    "torch.linspace(-2, 3, 7, device=t().device)",
    # types
    "t(3, 4, low=1, high=9) // t(4, low=1, high=4)",
    "t(3, 4) // 0.7",
    "torch.floor_divide(-7, t(4, low=1, high=4))",
    "2 - t(3, low=0, high=9)",
    "torch.logical_and(torch.tensor(True), t(3) > 0)",
    "torch.remainder(7, t(3, low=1, high=5))",
    "torch.logical_or(t(3, low=0, high=2), t(2, 3))",
]


def maker(torch: Any, device: str) -> Callable[..., Any]:
    """Makes tensors of the given shape, the same for every device: normal floats, or integers of a range."""
    generator = torch.Generator().manual_seed(7)

    def make(*shape: int, low: int | None = None, high: int = 0) -> Any:
        if low is None:
            return torch.randn(shape, generator=generator).to(device)
        return torch.randint(low, high, shape, generator=generator).to(device)

    return make


def tensors(torch: Any, value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from tensors(torch, item)
    else:
        yield value if isinstance(value, torch.Tensor) else torch.tensor(value)


@pytest.mark.parametrize("text", SAMPLES)
def test_agrees_with_the_cpu(torch: Any, text: str) -> None:
    expected, got = (eval(text, {"torch": torch, "t": maker(torch, device)}) for device in ("cpu", "dipu"))
    for want, have in zip(tensors(torch, expected), tensors(torch, got), strict=True):
        torch.testing.assert_close(have.cpu(), want, rtol=1e-4, atol=1e-5)


GRADIENTS = [
    f"{F}.conv2d(x(2, 3, 6, 7), x(4, 3, 3, 2), x(4), stride=(2, 1), padding=1)",
    f"{F}.conv2d(x(2, 3, 6, 7), x(4, 3, 3, 2))",
    f"{F}.batch_norm(x(2, 3, 4, 5), None, None, x(3), x(3), training=True)",
    f"{F}.batch_norm(x(2, 3, 4), None, None, None, x(3), training=True)",
    f"{F}.layer_norm(x(2, 3, 4), (4,), x(4), x(4))",
    f"{F}.layer_norm(x(2, 3, 4), (3, 4))",
    f"{F}.max_pool2d(x(2, 3, 6, 7), 3, stride=2, padding=1)",
    f"{F}.adaptive_avg_pool2d(x(2, 3, 6, 7), 2)",
    f"{F}.embedding(torch.tensor([[1, 2], [2, 0]]).to(device), x(5, 4))",
    f"{F}.gelu(x(3, 4), approximate='tanh')",
    f"{F}.cross_entropy(x(6, 5), torch.arange(6).remainder(5).to(device))",
    "x(3, 4).softmax(-1) * x(4).sigmoid()",
    "x(3, 4)[1]",
    "x(6, 4)[1:5:2]",
    "x(3, 4).index_select(1, torch.tensor([0, 2, 2]).to(device))",
    "x(3, 4).gather(1, torch.tensor([[0, 2], [1, 1], [3, 0]]).to(device))",
    "x(9).unfold(0, 3, 2)",
]


@pytest.mark.parametrize("text", GRADIENTS)
def test_gradients_agree_with_the_cpu(torch: Any, text: str) -> None:
    found = []
    for device in ("cpu", "dipu"):
        leaves: list[Any] = []
        make = maker(torch, device)

        def leaf(*shape: int, make: Any = make, leaves: list[Any] = leaves) -> Any:
            leaves.append(make(*shape).requires_grad_())
            return leaves[-1]

        result = eval(text, {"torch": torch, "x": leaf, "device": device})
        (result * maker(torch, device)(*result.shape)).sum().backward()
        found.append([result.detach().cpu(), *(one.grad.cpu() for one in leaves)])
    for want, have in zip(*found, strict=True):
        torch.testing.assert_close(have, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
@pytest.mark.parametrize("maximize", [False, True])
def test_fused_optimizers(torch: Any, name: str, maximize: bool) -> None:
    kinds = {"SGD": {"momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1}, "AdamW": {"weight_decay": 0.1}}
    results = []
    for device in ("cpu", "dipu"):
        make = maker(torch, device)
        parameters = [make(3, 4).requires_grad_(), make(5).requires_grad_()]
        optimizer = getattr(torch.optim, name)(parameters, lr=0.1, fused=True, maximize=maximize, **kinds[name])
        for _ in range(3):
            for parameter in parameters:
                parameter.grad = make(*parameter.shape)
            optimizer.step()
        results.append([p.detach().cpu() for p in parameters])
    for want, have in zip(*results, strict=True):
        torch.testing.assert_close(have, want, rtol=1e-5, atol=1e-6)


def test_a_step_is_skipped_after_an_overflow(torch: Any) -> None:
    parameter = torch.ones(3, device="dipu", requires_grad=True)
    optimizer = torch.optim.SGD([parameter], lr=1.0, fused=True)
    scaler = torch.amp.GradScaler("dipu", init_scale=4.0)
    for gradient, expected in ((float("inf"), 1.0), (1.0, 0.0)):
        parameter.grad = torch.full((3,), gradient, device="dipu") * scaler.scale(torch.ones((), device="dipu"))
        scaler.step(optimizer)
        scaler.update()
        assert parameter.detach().cpu().tolist() == [expected] * 3


def test_out_tensors_of_plain_operators(torch: Any) -> None:
    x = torch.tensor([0.0, 2.0, 3.0], device="dipu")
    positions = torch.empty(0, dtype=torch.int64, device="dipu")
    assert torch.nonzero(x, out=positions) is positions and positions.cpu().tolist() == [[1], [2]]
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        torch.index_select(x, 0, torch.tensor([1], device="dipu"), out=positions)


def test_what_the_contract_lacks_falls_back(torch: Any) -> None:
    from torch.dipu import fallback

    fallback.reset()
    x = torch.ones(1, 1, 3, 3, 3, device="dipu")
    torch.nn.functional.conv3d(x, x)
    causes = {entry.cause for entry in fallback.report() if entry.operator == "aten::convolution_overrideable"}
    assert causes == {"a complex scalar, or a list of another length"}

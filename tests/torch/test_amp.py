"""Mixed precision: the dtype that each operator takes under autocast, how models train, the scaling of losses."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

LISTS = (
    *("torch_fp16", "torch_fp32", "torch_need_autocast_promote", "torch_expect_builtin_promote"),
    *("methods_expect_builtin_promote", "nn_fp16", "nn_fp32", "linalg_fp16", "methods_fp16", "methods_fp32"),
)
# einsum's entry has operands that its equation does not fit; the others are functions of another vendor's library.
NOT_RUN = ("einsum", "cudnn_convolution", "cudnn_convolution_transpose")


@pytest.fixture(params=["float16", "bfloat16"])
def half(request: pytest.FixtureRequest, torch: Any) -> Any:
    return getattr(torch, request.param)


def module_of(torch: Any, name: str) -> Any:
    """Where the functions of a list are; None for methods."""
    if name.startswith("methods"):
        return None
    return {"nn": torch._C._nn, "li": torch._C._linalg}.get(name[:2], torch)


def in_dtype(torch: Any, value: Any, half: Any) -> Any:
    """The lists have float16 where they mean the lower precision."""
    if isinstance(value, torch.Tensor):
        return value.to(half) if value.dtype is torch.float16 else value
    return type(value)(in_dtype(torch, item, half) for item in value) if isinstance(value, tuple | list) else value


def entries(torch: Any, name: str) -> Iterator[tuple[str, Any, Any, dict[str, Any]]]:
    """Operator, arguments, the dtype of the result where it is not the policy's, keyword arguments."""
    from torch.testing._internal.autocast_test_lists import AutocastTestLists

    torch.manual_seed(0)
    for op, args, *extra in getattr(AutocastTestLists("dipu"), name):
        if op not in NOT_RUN:
            out_type = next((item for item in extra if isinstance(item, torch.dtype)), None)
            yield op, args, out_type, next((item for item in extra if isinstance(item, dict)), {})


@pytest.mark.parametrize("name", LISTS)
def test_operators_follow_their_policy(torch: Any, half: Any, name: str) -> None:
    from torch.testing._internal.autocast_test_lists import TestAutocast

    lower = name.endswith("fp16")
    wrong, run = [], 0
    for op, args, out_type, kwargs in entries(torch, name):
        policy = half if lower else torch.float32
        arguments = in_dtype(torch, args, half)
        run += 1
        try:
            TestAutocast()._run_autocast_outofplace(
                op, arguments, policy, "dipu", out_type, module_of(torch, name), kwargs, amp_dtype=half
            )
        except AssertionError as error:
            wrong.append(f"{op}: {error}")
    assert wrong == [] and run >= 1


def test_einsum_and_attention_run_in_lower_precision(torch: Any, half: Any) -> None:
    a, b = torch.randn(2, 3, 4, device="dipu"), torch.randn(2, 5, 4, device="dipu")
    with torch.autocast("dipu", dtype=half):
        assert torch.einsum("bik,bjk->bij", a, b).dtype == half
        assert torch.nn.functional.scaled_dot_product_attention(a, b, b).dtype == half


class ConvNet:
    """A module with batch norm, made where torch is imported."""

    def __new__(cls, torch: Any) -> Any:
        nn = torch.nn
        features = (nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3))
        return nn.Sequential(*features, nn.GroupNorm(2, 8), nn.GELU(), nn.Flatten(), nn.Linear(128, 5))


MODELS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "mlp": lambda t: (
        t.nn.Sequential(t.nn.Linear(8, 16), t.nn.LayerNorm(16), t.nn.GELU(), t.nn.Linear(16, 5)),
        t.randn(16, 8),
    ),
    "conv net": lambda t: (ConvNet(t), t.randn(4, 3, 12, 12)),
    "transformer": lambda t: (
        t.nn.Sequential(
            t.nn.Embedding(20, 16),
            t.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True),
            t.nn.Flatten(),
            t.nn.Linear(112, 5),
        ),
        t.randint(0, 20, (4, 7)),
    ),
}


def losses(torch: Any, module: Any, x: Any, device: str, half: Any) -> list[float]:
    """Ten steps, in lower precision with a scaled loss if `half` is given."""
    module = copy.deepcopy(module).to(device)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler(device, init_scale=256.0, growth_interval=3, enabled=half is not None)
    target, found = (torch.arange(x.shape[0]) % 5).to(device), []
    for _ in range(10):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=half or torch.bfloat16, enabled=half is not None):
            out = module(x.to(device))
            loss = torch.nn.functional.cross_entropy(out, target)
        assert out.dtype == (half or torch.float32) and loss.dtype == torch.float32
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        found.append(loss.item())
    assert half is None or scaler.get_scale() == 256.0 * 2**3  # it grew at each third step
    return found


@pytest.mark.parametrize("name", MODELS)
def test_models_train_as_in_full_precision(torch: Any, half: Any, name: str) -> None:
    torch.manual_seed(0)
    module, x = MODELS[name](torch)
    torch.dipu.fallback.reset()
    found = losses(torch, module, x, "dipu", half)
    assert torch.dipu.fallback.report() == []
    expected = losses(torch, module, x, "cpu", None)
    assert found == pytest.approx(expected, rel=0.02 if half is torch.float16 else 0.08)
    assert found[-1] < 0.8 * found[0]


def test_batch_norm_keeps_statistics_and_gradients_in_full_precision(torch: Any, half: Any) -> None:
    torch.manual_seed(0)
    x = (torch.randn(16, 4, 10, 10) * 2 + 30).to(half)
    grad = torch.rand(16, 4, 10, 10).add_(1).mul_(100).to(half)
    results = []
    for device in ("dipu", "cpu"):
        norm = torch.nn.BatchNorm2d(4).to(device)
        y = norm(x.to(device))
        y.backward(grad.to(device))
        assert y.dtype == half and norm.weight.grad.dtype == torch.float32
        # The sums of the gradient are beyond what float16 can hold.
        results.append([t.cpu() for t in (norm.running_mean, norm.running_var, norm.weight.grad, norm.bias.grad)])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3 * expected.abs().max().item())


def test_gradients_that_overflow_are_skipped(torch: Any) -> None:
    parameter = torch.nn.Parameter(torch.ones(3, device="dipu"))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    scaler = torch.amp.GradScaler("dipu", init_scale=4.0)
    scaler.scale((parameter * torch.tensor([1.0, float("inf"), 1.0], device="dipu")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert parameter.tolist() == [1, 1, 1] and scaler.get_scale() == 2.0
    optimizer.zero_grad()
    scaler.scale((parameter * 0.5).sum()).backward()
    scaler.unscale_(optimizer)
    assert parameter.grad.tolist() == [0.5, 0.5, 0.5]
    torch.nn.utils.clip_grad_norm_([parameter], 0.1)
    scaler.step(optimizer)
    scaler.update()
    assert parameter.tolist() == pytest.approx([1 - 0.1 / 3**0.5] * 3, rel=1e-4) and scaler.get_scale() == 2.0
    assert torch.equal(torch.tensor(scaler.state_dict()["scale"]), torch.tensor(2.0))


def test_functions_with_a_dtype_of_their_own(torch: Any, half: Any) -> None:
    class Cast(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="dipu", cast_inputs=torch.float32)
        def forward(ctx: Any, x: Any) -> Any:
            assert x.dtype == torch.float32 and not torch.is_autocast_enabled("dipu")
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        @torch.amp.custom_bwd(device_type="dipu")
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            assert not torch.is_autocast_enabled("dipu")
            return (grad @ x.t() + x.t() @ grad).to(half)

    class Inherit(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="dipu")
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        @torch.amp.custom_bwd(device_type="dipu")
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            assert torch.is_autocast_enabled("dipu") and torch.get_autocast_dtype("dipu") == half
            return grad @ x.t() + x.t() @ grad

    x = torch.rand(4, 4, device="dipu", requires_grad=True)
    with torch.autocast("dipu", dtype=half):
        full, lower = Cast.apply(x.to(half)), Inherit.apply(x)
    assert full.dtype == torch.float32 and lower.dtype == half
    (full.sum() + lower.float().sum()).backward()
    assert x.grad.dtype == torch.float32


def test_nested_and_disabled(torch: Any, half: Any) -> None:
    x = torch.ones(2, 2, device="dipu")
    with torch.autocast("dipu", dtype=half):
        with torch.autocast("dipu", enabled=False):
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == half
    assert (x @ x).dtype == torch.float32 and not torch.is_autocast_enabled("dipu")
    assert torch.amp.is_autocast_available("dipu")
    with pytest.warns(UserWarning, match="target dtype is not supported"), torch.autocast("dipu", dtype=torch.float64):
        assert (x @ x).dtype == torch.float32


def test_binary_cross_entropy_is_refused(torch: Any, half: Any) -> None:
    probability = torch.rand(4, device="dipu")
    loss = torch.nn.functional.binary_cross_entropy(probability, torch.ones_like(probability))
    assert loss.dtype == torch.float32
    with torch.autocast("dipu", dtype=half), pytest.raises(RuntimeError, match="are unsafe under autocast"):
        torch.nn.functional.binary_cross_entropy(probability, torch.ones_like(probability))


def casts_of(node: Any) -> set[Any]:
    """The casts of leaves in the graph behind a node."""
    found = set()
    for following, _ in node.next_functions:
        if following is not None:
            leaf = any("AccumulateGrad" in other.name() for other, _ in following.next_functions if other is not None)
            found |= {following} if leaf and "ToCopy" in following.name() else casts_of(following)
    return found


def test_casts_of_weights_are_kept(torch: Any, half: Any) -> None:
    weight = torch.nn.Parameter(torch.ones(2, 2, device="dipu"))
    with torch.autocast("dipu", dtype=half):
        y = torch.nn.functional.linear(torch.ones(1, 2, device="dipu"), weight)
        z = torch.nn.functional.linear(y, weight)
    assert len(casts_of(y.grad_fn) | casts_of(z.grad_fn)) == 1  # both uses share it
    (y.sum() + z.sum()).backward()
    assert weight.grad.dtype == torch.float32 and weight.grad.tolist() == [[5, 5], [5, 5]]

"""The written references of norms against PyTorch's own: the steps over several devices come to one batch norm."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from diopi_conformance.references import norms

WHOLE = 8, 5, 3, 4  # a batch that two devices share
EPS, MOMENTUM = 1e-3, 0.2


class Given(dict[str, Any]):
    """The arguments of one call; what is left out is absent."""

    forward: dict[str, Any] | None = None

    def __missing__(self, name: str) -> None:
        return None


def numbers(*sizes: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(sizes, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def shares() -> list[torch.Tensor]:
    """What each device sees: five samples, and three."""
    return list(numbers(*WHOLE).split([5, 3]))


def statistics(shares: list[torch.Tensor], **running: torch.Tensor) -> dict[str, torch.Tensor]:
    """What all devices know of the whole batch after they have talked."""
    found = [norms.batch_norm_stats(Given(input=share, eps=EPS)) for share in shares]
    counts = torch.tensor([share.numel() / share.shape[1] for share in shares], dtype=torch.float64)
    gathered = {f"{name}_all": torch.stack([f[name] for f in found]) for name in ("mean", "invstd")}
    return norms.batch_norm_gather(Given(**gathered, **running, counts=counts, eps=EPS, momentum=MOMENTUM))


def test_devices_normalize_as_one_would(shares: list[torch.Tensor]) -> None:
    weight, bias = numbers(5, seed=1), numbers(5, seed=2)
    running = {"running_mean": numbers(5, seed=3), "running_var": numbers(5, seed=4).square()}
    expected_running = {name: value.clone() for name, value in running.items()}
    expected = F.batch_norm(torch.cat(shares), *expected_running.values(), weight, bias, True, MOMENTUM, EPS)
    shared = statistics(shares, **running)
    outs = [
        norms.batch_norm_elemt(
            Given(input=share, weight=weight, bias=bias, mean=shared["mean"], invstd=shared["invstd"])
        )["out"]
        for share in shares
    ]
    torch.testing.assert_close(torch.cat(outs), expected)
    for name, value in expected_running.items():
        torch.testing.assert_close(shared[name], value)


@pytest.mark.parametrize("weighted", [True, False])
def test_devices_give_the_gradients_that_one_would(shares: list[torch.Tensor], weighted: bool) -> None:
    leaf = torch.cat(shares).requires_grad_(True)
    weight = numbers(5, seed=1).requires_grad_(True) if weighted else None
    bias = numbers(5, seed=2).requires_grad_(True) if weighted else None
    grad = numbers(*WHOLE, seed=5)
    F.batch_norm(leaf, None, None, weight, bias, True, MOMENTUM, EPS).backward(grad)
    known = {name: value for name, value in statistics(shares).items() if name in ("mean", "invstd")}
    known |= {} if weight is None else {"weight": weight.detach()}
    wanted = {"input_g": True, "weight_g": weighted, "bias_g": weighted}
    pairs = list(zip(shares, grad.split([5, 3]), strict=True))
    sums = [norms.batch_norm_backward_reduce(Given(grad_out=g, input=x, **known, **wanted)) for x, g in pairs]
    totals = {name: sums[0][name] + sums[1][name] for name in ("sum_dy", "sum_dy_xmu")}
    count = torch.tensor([x.numel() // x.shape[1] for x in shares], dtype=torch.int32)
    found = [
        norms.batch_norm_backward_elemt(Given(grad_out=g, input=x, **known, **totals, count=count))["grad_input"]
        for x, g in pairs
    ]
    torch.testing.assert_close(torch.cat(found), leaf.grad)
    if weight is not None and bias is not None:
        torch.testing.assert_close(sums[0]["grad_weight"] + sums[1]["grad_weight"], weight.grad)
        torch.testing.assert_close(sums[0]["grad_bias"] + sums[1]["grad_bias"], bias.grad)


def test_gradients_that_nobody_wants_are_absent(shares: list[torch.Tensor]) -> None:
    found = norms.batch_norm_backward_reduce(
        Given(grad_out=shares[0], input=shares[0], mean=numbers(5), invstd=numbers(5), input_g=False)
    )
    assert list(found.values()) == [None] * 4


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_groups_are_normalized_as_torch_does(groups: int) -> None:
    source, weight, bias = numbers(3, 6, 4, 5), numbers(6, seed=1), numbers(6, seed=2)
    found = norms.group_norm(Given(input=source, weight=weight, bias=bias, num_groups=groups, eps=EPS))
    expected = torch.native_group_norm(source, weight, bias, 3, 6, 20, groups, EPS)
    for name, value in zip(("out", "save_mean", "save_invstd"), expected, strict=True):
        torch.testing.assert_close(found[name], value)


@pytest.mark.parametrize("axis", [2, -2])
def test_instances_are_normalized_as_torch_does(axis: int) -> None:
    source, scale, bias = numbers(3, 4, 5, 6), numbers(4, seed=1), numbers(4, seed=2)
    found = norms.instance_norm(Given(input=source, scale=scale, bias=bias, axis=axis, eps=EPS))["output"]
    torch.testing.assert_close(found, F.instance_norm(source, None, None, scale, bias, True, 0.1, EPS))


@pytest.mark.parametrize("axis", [1, 3])
def test_the_axis_of_instances_is_the_first_dimension_that_is_normalized(axis: int) -> None:
    source = numbers(3, 4, 5, 6)
    found = norms.instance_norm(Given(input=source, axis=axis, eps=EPS))["output"]
    torch.testing.assert_close(found, F.layer_norm(source, source.shape[axis:], eps=EPS))


@pytest.mark.parametrize(("first", "weighted"), [(1, True), (-1, True), (2, False)])
def test_the_gradient_by_given_statistics_is_that_of_a_layer_norm(first: int, weighted: bool) -> None:
    leaf = numbers(4, 5, 6).requires_grad_(True)
    inner = leaf.shape[first:]
    weight = numbers(*inner, seed=1).requires_grad_(True) if weighted else None
    bias = numbers(*inner, seed=2).requires_grad_(True) if weighted else None
    grad = numbers(4, 5, 6, seed=3)
    expected = F.layer_norm(leaf, inner, weight, bias, EPS)
    expected.backward(grad)
    given = {"input": leaf.detach(), "begin_norm_axis": first, "eps": EPS}
    given |= {} if weight is None or bias is None else {"weight": weight.detach(), "bias": bias.detach()}
    forward = norms.layer_norm_gb(Given(given))
    torch.testing.assert_close(forward["out"], expected.detach())
    saved = {"running_mean": forward["running_mean"], "running_std": forward["running_var"]}
    backward = norms.layer_norm_gb_backward(Given(given, grad_output=grad) | saved)
    torch.testing.assert_close(backward["grad_input"], leaf.grad)
    for name, parameter in (("grad_weight", weight), ("grad_bias", bias)):
        if parameter is None:
            assert backward[name] is None
        else:
            torch.testing.assert_close(backward[name], parameter.grad)


@pytest.mark.parametrize("weighted", [True, False])
def test_the_gradient_of_groups_is_pytorchs_where_the_statistics_are_the_inputs(weighted: bool) -> None:
    source, grad = numbers(3, 6, 4, 5), numbers(3, 6, 4, 5, seed=1)
    weight = numbers(6, seed=2) if weighted else None
    leaves = [t.clone().requires_grad_() for t in (source, *([weight, numbers(6, seed=3)] if weighted else []))]
    F.group_norm(leaves[0], 3, *leaves[1:], eps=EPS).backward(grad)
    given = Given(input=source, weight=weight, bias=None, num_groups=3, eps=EPS)
    forward = norms.group_norm(given)
    call = Given(given, grad_output=grad, mean=forward["save_mean"], rstd=forward["save_invstd"])
    call.forward = {"bias": numbers(6) if weighted else None}
    found = norms.group_norm_backward(call)
    assert weighted or found["grad_weight"] is found["grad_bias"] is None
    for name, leaf in zip(("grad_input", "grad_weight", "grad_bias"), leaves, strict=False):
        torch.testing.assert_close(found[name], leaf.grad, rtol=1e-12, atol=1e-12)


def test_the_gradient_of_groups_is_by_the_statistics_that_are_given() -> None:
    """Those of half are rounded, and what cancels in a sum shows it."""
    source, grad = numbers(2, 4, 9), numbers(2, 4, 9, seed=1)
    mean, rstd = numbers(2, 2, seed=2), numbers(2, 2, seed=3).abs()
    found = norms.group_norm_backward(Given(input=source, grad_output=grad, num_groups=2, mean=mean, rstd=rstd))
    wanted = (grad * source.sub(mean.repeat_interleave(2, 1)[..., None]) * rstd.repeat_interleave(2, 1)[..., None]).sum(
        (0, 2)
    )
    weighted = norms.group_norm_backward(
        Given(input=source, grad_output=grad, num_groups=2, mean=mean, rstd=rstd, weight=numbers(4).abs())
    )
    assert found["grad_weight"] is None
    torch.testing.assert_close(weighted["grad_weight"], wanted, rtol=1e-12, atol=1e-12)

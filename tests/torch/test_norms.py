"""Norms of each float dtype, with parameters of it or of float32: results and gradients against the CPU in float64."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2}

Norm = Callable[..., Any]


def layer_norm(torch: Any, x: Any, weight: Any, bias: Any) -> Any:
    return torch.nn.functional.layer_norm(x, weight.shape, weight, bias)


def group_norm(torch: Any, x: Any, weight: Any, bias: Any) -> Any:
    return torch.nn.functional.group_norm(x, 2, weight, bias)


def batch_norm(torch: Any, x: Any, weight: Any, bias: Any) -> Any:
    return torch.nn.functional.batch_norm(x, None, None, weight, bias, training=True)


def rms_norm(torch: Any, x: Any, weight: Any, bias: Any) -> Any:
    return torch.nn.functional.rms_norm(x, weight.shape, weight) + bias


# Each with the shape of its input; parameters have the size of the last dimension, or of the channels.
NORMS: dict[str, tuple[Norm, tuple[int, ...], str]] = {
    "layer norm": (layer_norm, (6, 8), "native_layer_norm"),
    "group norm": (group_norm, (6, 8, 3), "native_group_norm"),
    "batch norm": (batch_norm, (6, 8, 3), "native_batch_norm"),
    "rms norm": (rms_norm, (6, 8), "_fused_rms_norm"),
}


def drawn(torch: Any, shape: Sequence[int], dtype: str, parameters: str) -> list[Any]:
    """An input far from zero, where rounded means show, a weight, a bias and the gradient of the result."""
    generator = torch.Generator().manual_seed(7)
    one, other = getattr(torch, dtype), getattr(torch, parameters)
    x = (torch.randn(shape, generator=generator, dtype=torch.float64) + 3).to(one)
    weight, bias = (torch.rand(8, generator=generator, dtype=torch.float64).to(other) for _ in range(2))
    return [x, weight, bias, torch.randn(shape, generator=generator, dtype=torch.float64).to(one)]


def trained(torch: Any, norm: Norm, given: Sequence[Any]) -> list[Any]:
    leaves = [each.detach().requires_grad_() for each in given[:3]]
    out = norm(torch, *leaves)
    return [out, *torch.autograd.grad(out, leaves, given[3])]


def check(torch: Any, found: Sequence[Any], norm: Norm, given: Sequence[Any], dtype: str) -> None:
    for ours, right in zip(found, trained(torch, norm, [each.double() for each in given]), strict=True):
        scale = max(1.0, right.detach().abs().max().item())
        torch.testing.assert_close(ours.cpu().double(), right, rtol=0, atol=TOLERANCE[dtype] * scale)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", NORMS)
def test_one_dtype(torch: Any, name: str, dtype: str) -> None:
    norm, shape, _ = NORMS[name]
    given = drawn(torch, shape, dtype, dtype)
    torch.dipu.fallback.reset()
    found = trained(torch, norm, [each.to("dipu") for each in given])
    assert torch.dipu.fallback.report() == []
    assert {each.dtype for each in found} == {getattr(torch, dtype)}
    check(torch, found, norm, given, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", [name for name in NORMS if name != "rms norm"])
def test_parameters_of_float32(torch: Any, name: str, dtype: str) -> None:
    """What torch's kernels on the CPU take beside halves."""
    norm, shape, _ = NORMS[name]
    given = drawn(torch, shape, dtype, "float32")
    found = trained(torch, norm, [each.to("dipu") for each in given])
    assert [each.dtype for each in found] == [getattr(torch, dtype)] * 2 + [torch.float32] * 2
    check(torch, found, norm, given, dtype)


@pytest.mark.parametrize("forced", ["forward", "backward"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", NORMS)
def test_one_way_forced_to_the_cpu(torch: Any, name: str, dtype: str, forced: str) -> None:
    """Statistics are float32 on the device, and of the parameters' dtype on the CPU."""
    norm, shape, operator = NORMS[name]
    given = drawn(torch, shape, dtype, dtype)
    torch.dipu.fallback.set(f"{operator}_backward" if forced == "backward" else operator)
    torch.dipu.fallback.reset()
    try:
        found = trained(torch, norm, [each.to("dipu") for each in given])
        counts = [row.count for row in torch.dipu.fallback.report()]
    finally:
        torch.dipu.fallback.set()
    assert counts == [1]
    check(torch, found, norm, given, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", NORMS)
def test_compared_with_the_cpu(torch: Any, name: str, dtype: str) -> None:
    norm, shape, operator = NORMS[name]
    given = [each.to("dipu") for each in drawn(torch, shape, dtype, dtype)]
    torch.dipu.debug.reset_comparisons()
    torch.dipu.autocompare(ops=f"{operator}.*", on_mismatch="raise")
    try:
        trained(torch, norm, given)
        rows = [(row.runs, row.differences, row.skipped) for row in torch.dipu.debug.comparisons()]
    finally:
        torch.dipu.autocompare(ops="")
    assert rows == [(1, 0, 0), (1, 0, 0)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_statistics_over_devices_are_not_rounded(torch: Any, dtype: str) -> None:
    """Those of synchronized batch norms are float32 beside halves, and counts may be beyond a half."""
    generator, kind = torch.Generator().manual_seed(9), getattr(torch, dtype)
    x = torch.randn((4, 3, 5), generator=generator).to(kind).to("dipu")
    mean, invstd = torch.tensor([1.001, -2.003, 0.3007]), torch.tensor([3.0003, 1.0007, 0.5001])
    shown = [each[None, :, None].double() for each in (mean, invstd)]
    placed = [each.to("dipu") for each in (mean, invstd)]
    normalized = torch.batch_norm_elemt(x, None, None, *placed, 1e-5)
    right = ((x.cpu().double() - shown[0]) * shown[1]).to(kind)
    torch.testing.assert_close(normalized.cpu(), right, rtol=0, atol=0)
    pairs = [torch.stack([each, each]) for each in placed]
    counts = torch.tensor([70001.0, 70001.0], device="dipu")
    joined = torch.batch_norm_gather_stats_with_counts(x, *pairs, None, None, 0.1, 0.0, counts)
    for found, given in zip(joined, (mean, invstd), strict=True):
        torch.testing.assert_close(found.cpu(), given, rtol=1e-6, atol=0)

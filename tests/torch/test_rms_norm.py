"""rms_norm as one call of the contract's function, forward and backward, against the CPU in float64."""

from typing import Any

import pytest

TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2}
SHAPES = [((4, 16), 1), ((3, 5, 8), 2), ((7,), 1), ((2, 3, 4, 6), 1), ((0, 8), 1)]


def normalized(torch: Any, x: Any, weight: Any, dims: int, eps: float | None, grad: Any) -> list[Any]:
    """The result and the gradients."""
    leaves = [each.detach().requires_grad_() for each in (x, weight) if each is not None]
    given = leaves[1] if weight is not None else None
    out = torch.nn.functional.rms_norm(leaves[0], x.shape[x.dim() - dims :], given, eps)
    return [out, *torch.autograd.grad(out, leaves, grad)]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("shape", "dims"), SHAPES)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("eps", [None, 1e-3])
def test_result_and_gradients(
    torch: Any, shape: tuple[int, ...], dims: int, dtype: str, weighted: bool, eps: float | None
) -> None:
    generator, kind = torch.Generator().manual_seed(len(shape)), getattr(torch, dtype)
    x, grad = (torch.randn(shape, generator=generator, dtype=torch.float64).to(kind) for _ in range(2))
    weight = torch.rand(shape[len(shape) - dims :], generator=generator).to(kind) if weighted else None
    torch.dipu.fallback.reset()
    placed = [each if each is None else each.to("dipu") for each in (x, weight)]
    found = normalized(torch, *placed, dims, eps, grad.to("dipu"))
    assert torch.dipu.fallback.report() == []
    wide = [each if each is None else each.double() for each in (x, weight)]
    least = torch.finfo(torch.float64 if dtype == "float64" else torch.float32).eps
    wanted = normalized(torch, *wide, dims, least if eps is None else eps, grad.double())
    for ours, right in zip(found, wanted, strict=True):
        assert ours.dtype == kind
        torch.testing.assert_close(ours.cpu().double(), right, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_the_default_eps_is_the_dtypes_own(torch: Any) -> None:
    for dtype in (torch.float64, torch.float32, torch.float16):
        x = torch.full((2, 4), 1e-5, dtype=dtype)
        ours = torch.nn.functional.rms_norm(x.to("dipu"), (4,)).cpu()
        torch.testing.assert_close(ours, torch.nn.functional.rms_norm(x, (4,)))


def test_one_operator_computes_it(torch: Any) -> None:
    x = torch.randn(4, 8, device="dipu", requires_grad=True)
    weight = torch.ones(8, device="dipu", requires_grad=True)
    assert "FusedRmsNorm" in torch.nn.functional.rms_norm(x, (8,), weight).grad_fn.name()
    saved = torch.ops.aten._fused_rms_norm(x.half().detach(), [8], weight.half().detach(), None)[1]
    assert (saved.dtype, tuple(saved.shape)) == (torch.float32, (4, 1))


def test_strides_and_second_derivative(torch: Any) -> None:
    generator = torch.Generator().manual_seed(1)
    x, grad = (torch.randn((5, 6), generator=generator, dtype=torch.float64) for _ in range(2))

    def twice(x: Any, grad: Any) -> Any:
        leaf = x.detach().t().requires_grad_()
        first = torch.autograd.grad(torch.nn.functional.rms_norm(leaf, (5,)), leaf, grad.t(), create_graph=True)[0]
        return torch.autograd.grad(first.square().sum(), leaf)[0]

    torch.testing.assert_close(twice(x.to("dipu"), grad.to("dipu")).cpu(), twice(x, grad))


@pytest.mark.parametrize("weighted", [True, False])
def test_forced_to_the_cpu_and_compared(torch: Any, weighted: bool) -> None:
    x, grad = torch.randn(3, 4, 8).to("dipu"), torch.randn(3, 4, 8).to("dipu")
    weight = torch.rand(8).to("dipu") if weighted else None
    torch.dipu.debug.reset_comparisons()
    torch.dipu.autocompare(ops="_fused_rms_norm.*", on_mismatch="raise")
    try:
        ours = normalized(torch, x, weight, 1, None, grad)
        rows = [(row.runs, row.differences, row.skipped) for row in torch.dipu.debug.comparisons()]
    finally:
        torch.dipu.autocompare(ops="")
    assert rows == [(1, 0, 0), (1, 0, 0)]
    torch.dipu.fallback.set("_fused_rms_norm.*")
    torch.dipu.fallback.reset()
    try:
        forced = normalized(torch, x, weight, 1, None, grad)
        counts = [row.count for row in torch.dipu.fallback.report()]
    finally:
        torch.dipu.fallback.set()
    assert counts == [1, 1]
    for one, other in zip(ours, forced, strict=True):
        torch.testing.assert_close(one.cpu(), other.cpu(), rtol=1e-5, atol=1e-5)

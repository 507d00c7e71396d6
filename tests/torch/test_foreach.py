"""Operators on lists of tensors, and the optimizers that use them: mixed lists and errors as on the CPU."""

from collections.abc import Callable
from typing import Any

import pytest

LISTS = ["_foreach_add", "_foreach_mul", "_foreach_div"]


def mixed(torch: Any, seed: int) -> list[Any]:
    """Tensors that a function takes as they are, and those that only torch's rules serve."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.rand(size, generator=generator) + 0.5 for size in ((3, 4), (5,), (0,), (), (4, 3))]
    return [*drawn[:4], drawn[4].t(), (drawn[0] * 8).to(torch.int64) + 1, drawn[0].double(), drawn[1].half()]


def on_device(value: Any) -> Any:
    """Lists of tensors on the device, in new memory."""
    return (
        [each.clone().to("dipu") for each in value] if isinstance(value, list) and hasattr(value[0], "dim") else value
    )


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    """What it returned or wrote into its first list; or the error."""
    try:
        found = call(*arguments)
    except (RuntimeError, TypeError) as error:
        return type(error), str(error)
    return [each.cpu() for each in (arguments[0] if found is None else found)]


def check(torch: Any, name: str, overload: str, *arguments: Any) -> None:
    for form in (name, f"{name}_"):
        operator = getattr(getattr(torch.ops.aten, form), overload, None)
        if operator is None:
            continue
        wanted = outcome(
            operator,
            *([e.clone() for e in a] if isinstance(a, list) and hasattr(a[0], "dim") else a for a in arguments),
        )
        torch.dipu.fallback.reset()
        found = outcome(operator, *map(on_device, arguments))
        assert torch.dipu.fallback.report() == [], form
        if isinstance(wanted, tuple):
            assert found == wanted, form
            continue
        for ours, right in zip(found, wanted, strict=True):
            assert ours.dtype == right.dtype, form
            torch.testing.assert_close(ours, right, rtol=2e-3 if right.dtype == torch.half else 1e-6, atol=1e-7)


@pytest.mark.parametrize("name", LISTS)
def test_lists_with_lists(torch: Any, name: str) -> None:
    floating = [each for each in mixed(torch, 1) if each.is_floating_point()]
    check(torch, name, "List", floating, [each + 1 for each in floating])
    check(torch, name, "List", floating, [each.double() for each in floating])
    check(torch, name, "List", [floating[0]], [floating[0][:1]])  # broadcasts


@pytest.mark.parametrize("name", LISTS)
def test_in_new_dtypes(torch: Any, name: str) -> None:
    tensors, operator = mixed(torch, 2), getattr(torch, name)
    others = [each + 1 for each in tensors]
    for ours, right in zip(operator(*map(on_device, (tensors, others))), operator(tensors, others), strict=True):
        assert ours.dtype == right.dtype
        torch.testing.assert_close(ours.cpu(), right, rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("name", ["_foreach_mul", "_foreach_div"])
def test_lists_with_numbers(torch: Any, name: str) -> None:
    floating = [each for each in mixed(torch, 3) if each.is_floating_point()]
    check(torch, name, "ScalarList", floating, [1.5 + i for i in range(len(floating))])
    check(torch, name, "ScalarList", floating, [1.5])  # an error
    check(torch, name, "Scalar", floating, 3)


def test_scaled_sums(torch: Any) -> None:
    floating = [each for each in mixed(torch, 4) if each.is_floating_point()]
    halved = [each * 0.5 for each in floating]
    ours, wanted = on_device(floating), [each.clone() for each in floating]
    for tensors, others in ((ours, on_device(halved)), (wanted, halved)):
        torch._foreach_add_(tensors, others, alpha=-2)
    for one, other in zip(ours, wanted, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["_foreach_addcmul", "_foreach_addcdiv"])
def test_products_and_quotients(torch: Any, name: str) -> None:
    floating = [each for each in mixed(torch, 5) if each.is_floating_point()]
    others = [each + 1 for each in floating]
    check(torch, name, "Scalar", floating, others, [each + 2 for each in floating], 0.3)
    check(
        torch,
        name,
        "ScalarList",
        floating,
        others,
        [each + 2 for each in floating],
        [0.1 * i for i in range(len(floating))],
    )


def test_unary_and_lerp(torch: Any) -> None:
    floating = [each for each in mixed(torch, 6) if each.is_floating_point()]
    check(torch, "_foreach_sqrt", "default", floating)
    check(torch, "_foreach_neg", "default", floating)
    check(torch, "_foreach_lerp", "Scalar", floating, [each + 1 for each in floating], 0.25)


def test_lists_that_do_not_fit(torch: Any) -> None:
    x = [torch.ones(2), torch.ones(3)]
    check(torch, "_foreach_add", "List", x, [torch.ones(2)])
    check(torch, "_foreach_mul", "List", x, [torch.ones(2), torch.ones(4)])


def test_overlapping_entries(torch: Any) -> None:
    def shifted(device: str) -> Any:
        memory = torch.arange(6.0, device=device)
        torch._foreach_mul_([memory[:4]], [memory[:4]])
        return memory.cpu()

    torch.testing.assert_close(shifted("dipu"), shifted("cpu"))


@pytest.mark.parametrize("options", [{"foreach": True}, {"fused": True}])
@pytest.mark.parametrize(
    ("optimizer", "settings"),
    [
        ("SGD", {"momentum": 0.9, "weight_decay": 0.1}),
        ("SGD", {"momentum": 0.9, "nesterov": True}),
        ("SGD", {"maximize": True}),
        ("AdamW", {"weight_decay": 0.1}),
        ("AdamW", {"amsgrad": True, "maximize": True}),
    ],
)
def test_steps(torch: Any, optimizer: str, settings: dict[str, Any], options: dict[str, bool]) -> None:
    def trained(device: str, dtype: Any, **more: Any) -> list[Any]:
        generator = torch.Generator().manual_seed(7)
        drawn = [torch.randn(size, generator=generator) for size in ((64, 33), (5000,), (7,), (6, 8))]
        parameters = [each.to(device, dtype) for each in drawn]
        parameters[3] = parameters[3].t()
        parameters = [each.requires_grad_() for each in parameters]
        steps = getattr(torch.optim, optimizer)(parameters, lr=0.01, **settings, **more)
        for step in range(3):
            for parameter in parameters:
                parameter.grad = (parameter.detach() * (step + 1)).cos()
            steps.step()
        return [each.detach().cpu() for each in parameters]

    torch.dipu.fallback.reset()
    found = trained("dipu", torch.float32, **options)
    assert [row.operator for row in torch.dipu.fallback.report()] == []
    for ours, right in zip(found, trained("cpu", torch.float64, foreach=False), strict=True):
        torch.testing.assert_close(ours.double(), right, rtol=1e-5, atol=1e-6)

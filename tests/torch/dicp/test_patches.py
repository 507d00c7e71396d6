"""Convolutions of halves over patches that lie side by side, as products."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.torch.dicp.programs import calls_of


def step(run: Any, model: Any, x: Any) -> dict[str, Any]:
    """The result, and the gradients of all that has one."""
    result = run(x)
    (result * result).sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return {"result": result.detach(), "x": x.grad, **gradients}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("kind", "window", "sizes", "bias", "of_x"),
    [
        ("Conv2d", (4, 2), (3, 12, 8), True, False),
        ("Conv2d", 4, (1, 8, 8), False, True),
        ("Conv3d", 2, (3, 4, 6, 2), True, True),
    ],
)
def test_patches_are_products(
    torch: Any,
    compiled: Callable[..., Any],
    reports: Callable[[], list[Any]],
    kind: str,
    window: Any,
    sizes: tuple[int, ...],
    bias: bool,
    of_x: bool,
    dtype: str,
) -> None:
    torch.manual_seed(0)
    here = getattr(torch, dtype)
    model = getattr(torch.nn, kind)(sizes[0], 8, window, window, bias=bias).to(here)
    x = torch.randn(2, *sizes).to(here)
    exact = copy.deepcopy(model).double()
    wanted = step(exact, exact, x.double().requires_grad_(of_x))
    model = model.to("dipu")
    found = step(compiled(model), model, x.to("dipu").requires_grad_(of_x))
    for name, value in wanted.items():
        if value is None:
            assert found[name] is None
            continue
        limit = torch.finfo(here).eps * value.abs().max()
        torch.testing.assert_close(found[name].cpu().double(), value, rtol=0, atol=2 * limit.item(), msg=name)
    assert found["result"].stride() == model(x.to("dipu")).stride()
    calls = [call for report in reports() for call in calls_of(report)]
    assert calls and not [call for call in calls if "Conv" in call]


@pytest.mark.parametrize(
    "options",
    [
        {"stride": 2},  # windows overlap
        {"padding": 2},
        {"kernel_size": 3, "stride": 3},  # do not cover the images
        {"in_channels": 8},  # fill the vendor's steps
        {"dtype": "float32"},  # has digits of its own for convolutions
    ],
    ids=str,
)
def test_other_convolutions_stay(torch: Any, compiled: Any, reports: Any, options: dict[str, Any]) -> None:
    chosen = {"in_channels": 3, "out_channels": 8, "kernel_size": 4, "stride": 4, "dtype": "float16", **options}
    model = torch.nn.Conv2d(**{**chosen, "dtype": getattr(torch, chosen["dtype"])}).to("dipu")
    compiled(model)(torch.randn(2, chosen["in_channels"], 16, 16, dtype=model.weight.dtype).to("dipu"))
    assert [call for report in reports() for call in calls_of(report) if "Conv" in call]

"""Modules whose parameters get their shapes with the first input, moved before that."""

from typing import Any

import pytest


@pytest.mark.parametrize("name", ["LazyLinear", "LazyConv2d", "LazyBatchNorm2d"])
def test_a_lazy_module_moves_before_its_first_input(torch: Any, name: str) -> None:
    for device in ("cpu", "dipu"):
        module = torch.nn.Sequential(getattr(torch.nn, name)(*{"LazyLinear": (3,), "LazyConv2d": (3, 2)}.get(name, ())))
        parameters = list(module.parameters())
        module.to(device, torch.float64)
        assert all(mine is before for mine, before in zip(module.parameters(), parameters, strict=True))
        result = module(torch.ones(2, 4, 5, 6, device=device, dtype=torch.float64))
        assert result.device.type == device and result.dtype == torch.float64
        result.sum().backward()
        assert {p.device.type for p in parameters} == {device}
        assert all(p.grad is not None and type(p) is torch.nn.Parameter for p in parameters)


def test_an_optimizer_keeps_the_parameters_of_a_lazy_module(torch: Any) -> None:
    module = torch.nn.LazyLinear(2, bias=False)
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    module.to("dipu")
    source = torch.ones(1, 3, device="dipu")
    module(source)
    before = module.weight.detach().clone()
    module(source).sum().backward()
    optimizer.step()
    torch.testing.assert_close(module.weight.detach(), before - 1)


def test_other_parameters_of_a_lazy_module_move_with_it(torch: Any) -> None:
    module = torch.nn.LazyLinear(2)
    module.scale = torch.nn.Parameter(torch.full((2,), 3.0))
    module.register_buffer("offset", torch.ones(2))
    module.to("dipu")
    assert torch.nn.parameter.is_lazy(module.weight) and module.weight.data.device.type == "dipu"
    assert module.scale.device.type == module.offset.device.type == "dipu"
    assert [name for name, _ in module.named_parameters()] == ["weight", "bias", "scale"]

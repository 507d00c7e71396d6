"""Lists of tensors: optimizers' steps and operators of lists are one launch, with the numbers of float64 on the CPU."""

from typing import Any

import pytest

SIZES: list[tuple[int, ...]] = [(64, 33), (7,), (5, 6, 7), (1000,), (), (0, 3)]

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "Adam": {},
    "AdamW": {"weight_decay": 0.1},
    "Adam amsgrad": {"amsgrad": True, "maximize": True, "weight_decay": 0.1},
    "SGD": {"weight_decay": 0.1},
    "SGD momentum": {"momentum": 0.9, "nesterov": True},
    "SGD dampening": {"momentum": 0.9, "dampening": 0.2, "maximize": True},
}


def trained(torch: Any, name: str, device: str, dtype: Any, lr: Any = 0.01, **options: Any) -> list[Any]:
    """Parameters after three steps; the second one's gradients lie in another order."""
    draw = torch.Generator().manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(size, generator=draw).to(device, dtype)) for size in SIZES]
    optimizer = getattr(torch.optim, name.split()[0])(parameters, lr=lr, **OPTIMIZERS[name], **options)
    for step in range(3):
        for parameter in parameters:
            grad = torch.randn(parameter.shape, generator=draw).to(device, dtype)
            parameter.grad = grad.mT.contiguous().mT if step == 1 and grad.dim() == 3 else grad
        optimizer.step()
    return [parameter.detach().cpu().double() for parameter in parameters]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("way", ["fused", "foreach"])
def test_steps(torch: Any, name: str, way: str) -> None:
    exact = trained(torch, name, "cpu", torch.float64, foreach=False)
    torch.dipu.fallback.reset()
    for mine, other in zip(trained(torch, name, "dipu", torch.float32, **{way: True}), exact, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=2e-6)
    assert not torch.dipu.fallback.report()


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD momentum"])
def test_a_rate_on_the_device_is_read_there(torch: Any, name: str) -> None:
    exact = trained(torch, name, "cpu", torch.float64, foreach=False)
    rate = torch.tensor(0.01, device="dipu")
    for mine, other in zip(trained(torch, name, "dipu", torch.float32, rate, fused=True), exact, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=2e-6)


def test_halves_round_once(torch: Any) -> None:
    exact = trained(torch, "SGD", "cpu", torch.float64, foreach=False)
    for mine, other in zip(trained(torch, "SGD", "dipu", torch.bfloat16, fused=True), exact, strict=True):
        torch.testing.assert_close(mine, other, rtol=2e-2, atol=2e-2)


def calls(torch: Any, run: Any) -> dict[str, int]:
    """The contract's functions that a call reaches, each counted once for host and device."""
    with torch.profiler.profile() as profile:
        run()
    names = [event.name for event in profile.events() if event.name.startswith("diopi")]
    return {name: names.count(name) // 2 for name in dict.fromkeys(names)}


def test_the_number_of_calls_does_not_grow_with_the_list(torch: Any) -> None:
    counts = []
    for length in (3, 30):
        parameters = [torch.nn.Parameter(torch.ones(5, device="dipu")) for _ in range(length)]
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        found = {}
        for way in ("fused", "foreach"):
            optimizer = torch.optim.Adam(parameters, **{way: True})
            optimizer.step()
            found[way] = calls(torch, optimizer.step)
        optimizer = torch.optim.Adam(parameters)  # chooses foreach by itself, as on CUDA
        optimizer.step()
        found["default"] = calls(torch, optimizer.step)
        counts.append(found)
    assert counts[0] == counts[1]
    assert counts[0]["default"] == counts[0]["foreach"]
    assert counts[0]["fused"]["diopiFusedAdam"] == 1 and set(counts[0]["foreach"].values()) == {1}


def test_a_gradient_scaler_skips_and_unscales_without_waiting(torch: Any) -> None:
    parameter = torch.nn.Parameter(torch.ones(4, device="dipu"))
    optimizer = torch.optim.SGD([parameter], lr=0.5, fused=True)
    scaler = torch.amp.GradScaler("dipu", init_scale=4.0)
    for factor, expected in ((1.0, 0.5), (float("inf"), 0.5), (1.0, 0.0)):
        optimizer.zero_grad()
        scaler.scale((parameter * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert parameter.tolist() == [expected] * 4


OPERATORS: dict[str, Any] = {
    "add": lambda f, x, y, z: f._foreach_add(x, y, alpha=-2),
    "mul": lambda f, x, y, z: f._foreach_mul(x, y),
    "mul by numbers": lambda f, x, y, z: f._foreach_mul(x, [0.5] * len(x)),
    "mul by several numbers": lambda f, x, y, z: f._foreach_mul(x, [0.5 + i for i in range(len(x))]),
    "div": lambda f, x, y, z: f._foreach_div(x, z),
    "div by a number": lambda f, x, y, z: f._foreach_div(x, 3.0),
    "sqrt": lambda f, x, y, z: f._foreach_sqrt(z),
    "lerp_": lambda f, x, y, z: f._foreach_lerp_(x, y, 0.7) or x,
    "addcmul_": lambda f, x, y, z: f._foreach_addcmul_(x, y, z, value=0.3) or x,
    "addcdiv_": lambda f, x, y, z: f._foreach_addcdiv_(x, y, z, value=0.3) or x,
    "add_ a number": lambda f, x, y, z: f._foreach_add_(x, 1.5) or x,
    "mul_ a tensor": lambda f, x, y, z: f._foreach_mul_(x, z[0].reshape(-1)[0]) or x,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_lists(torch: Any, name: str) -> None:
    draw = torch.Generator().manual_seed(3)
    given = [[torch.rand(size, generator=draw) + 0.5 for size in [*SIZES[:5], (9, 4)]] for _ in range(3)]
    exact = OPERATORS[name](torch, *([x.double() for x in each] for each in given))
    found = OPERATORS[name](torch, *([x.to("dipu") for x in each] for each in given))
    for mine, other in zip(found, exact, strict=True):
        torch.testing.assert_close(mine.cpu().double(), other, rtol=1e-6, atol=1e-6)


def test_more_tensors_than_one_launch_takes(torch: Any) -> None:
    xs = [torch.full((i % 5,), float(i), device="dipu") for i in range(1000)]
    torch._foreach_add_(xs, 1)
    assert [x.tolist() for x in xs] == [[i + 1.0] * (i % 5) for i in range(1000)]

"""Random operators by their distributions, and optimizer steps against torch's own."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from portable import DEEP_TEAMS, ERROR, FLAGS, FLOATS, INTEGERS, Portable, build

COUNT = 40_000


@pytest.fixture(scope="module", params=[FLAGS, DEEP_TEAMS], ids=["alone", "teams"])
def kernels(request: pytest.FixtureRequest) -> Portable:
    return Portable(build(("random", "sampling", "optimizer", "copy"), request.param))


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform(kernels: Portable, dtype: torch.dtype) -> None:
    x = torch.empty(COUNT, dtype=dtype)
    kernels("diopiUniformInp", x, -1.0, 3.0, kernels.generator(1))
    assert x.min() >= -1 and x.max() < 3
    assert abs(x.double().mean() - 1) < 0.03 and abs(x.double().var() - 16 / 12) < 0.03


def test_seed_gives_the_numbers_and_each_call_gives_others(kernels: Portable) -> None:
    first, again, second = torch.empty(50), torch.empty(25, 4)[:, ::2], torch.empty(50)
    generator = kernels.generator(7)
    kernels("diopiUniformInp", first, 0.0, 1.0, generator)
    kernels("diopiUniformInp", second, 0.0, 1.0, generator)
    kernels("diopiUniformInp", again, 0.0, 1.0, kernels.generator(7))
    assert torch.equal(first.view(25, 2), again)
    assert not torch.equal(first, second)


def test_bits_are_those_of_the_published_generator(kernels: Portable) -> None:
    x = torch.empty(1, dtype=torch.int64)
    kernels("diopiRandomInp", x, -(2**63), None, kernels.generator(0))
    # Philox 4x32-10 of an all-zero key and counter begins with 6627e8d5 e169c58d
    assert (x.item() + 2**63) % 2**64 == 0xE169C58D6627E8D5


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal(kernels: Portable, dtype: torch.dtype) -> None:
    x = torch.empty(COUNT, dtype=dtype)
    kernels("diopiNormal", x, 2.0, 0.5, kernels.generator(1))
    z = (x.double() - 2) / 0.5
    assert abs(z.mean()) < 0.03 and abs(z.var() - 1) < 0.03
    assert abs((z**3).mean()) < 0.1 and abs((z**4).mean() - 3) < 0.2
    ordered = z.sort().values
    exact = 0.5 * (1 + torch.erf(ordered / 2**0.5))
    steps = torch.arange(1, COUNT + 1, dtype=torch.float64) / COUNT
    assert (exact - steps).abs().max() < 0.012  # Kolmogorov and Smirnov, with the halves' rounding


def test_normal_with_tensors(kernels: Portable) -> None:
    mean, std = torch.tensor([0.0, 100.0]), torch.tensor([1.0, 0.0])
    out = torch.empty(1000, 2)
    kernels("diopiNormalTensor", out, mean, std, kernels.generator(1))
    assert abs(out[:, 0].mean()) < 0.15 and torch.equal(out[:, 1], torch.full((1000,), 100.0))
    kernels("diopiNormalTensorScalar", out, mean, 0.0, kernels.generator(1))
    assert torch.equal(out, mean.expand(1000, 2))
    kernels("diopiNormalScalarTensor", out, 5.0, std, kernels.generator(1))
    assert torch.equal(out[:, 1], torch.full((1000,), 5.0))
    assert kernels.status("diopiNormal", out, 0.0, -1.0, kernels.generator(1)) == ERROR


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool])
def test_bernoulli(kernels: Portable, dtype: torch.dtype) -> None:
    out = torch.empty(COUNT, dtype=dtype)
    kernels("diopiBernoulliScalar", out, 0.3, kernels.generator(1))
    assert set(out.double().unique().tolist()) == {0, 1} and abs(out.double().mean() - 0.3) < 0.01
    if dtype in FLOATS:
        chances = torch.tensor([0.0, 0.25, 1.0], dtype=dtype).repeat(1000)
        kernels("diopiBernoulli", out[:3000], chances, kernels.generator(2))
        means = out[:3000].view(1000, 3).double().mean(0)
        assert means[0] == 0 and abs(means[1] - 0.25) < 0.05 and means[2] == 1
        kernels("diopiBernoulliInp", chances, kernels.generator(2))
        assert torch.equal(chances, out[:3000])


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_whole_numbers(kernels: Portable, dtype: torch.dtype) -> None:
    x = torch.empty(COUNT, dtype=dtype)
    start = 0 if dtype == torch.uint8 else -3
    kernels("diopiRandomInp", x, start, 5, kernels.generator(1))
    assert x.double().unique().tolist() == list(range(start, 5))
    kernels("diopiRandomInp", x, 0, None, kernels.generator(1))
    assert x.min() >= 0 and torch.equal(x.double(), x.double().round())
    assert x.double().unique().numel() > 100
    assert kernels.status("diopiRandomInp", x, 5, 5, kernels.generator(1)) == ERROR


def test_dropout(kernels: Portable) -> None:
    x = torch.arange(1, COUNT + 1, dtype=torch.float32).view(200, -1).t()
    out, mask = torch.empty_like(x), torch.empty(x.shape, dtype=torch.bool)
    kernels("diopiDropout", out, mask, x, 0.25, True, kernels.generator(1))
    assert abs(mask.double().mean() - 0.75) < 0.01
    torch.testing.assert_close(out, torch.where(mask, x / 0.75, 0))
    kernels("diopiDropout", out, mask, x, 0.25, False, kernels.generator(1))
    assert torch.equal(out, x) and mask.all()
    kernels("diopiDropoutInp", out, mask, 1.0, True, kernels.generator(1))
    assert not out.any() and not mask.any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_dropout_drops_the_same_wherever_elements_lie(kernels: Portable, dtype: torch.dtype) -> None:
    masks = []
    for sizes, turned in (((64, 40), False), ((40, 64), True)):  # in packs, and one by one
        x, mask = torch.full(sizes, 3, dtype=dtype), torch.empty(sizes, dtype=torch.bool)
        x, mask = (x.t(), mask.t()) if turned else (x, mask)
        out = torch.empty_like(x)
        kernels("diopiDropout", out, mask, x, 0.1, True, kernels.generator(7))
        assert torch.equal(out, torch.where(mask, torch.full((), 3 * (1 / (1 - 0.1)), dtype=dtype), 0))
        masks.append(mask.contiguous())
    assert torch.equal(*masks)


@pytest.mark.parametrize("p", [0.0, 1e-3, 0.1, 0.5, 0.999, 1.0])
def test_dropout_drops_as_often_as_told(kernels: Portable, p: float) -> None:
    x, mask = torch.ones(1 << 18), torch.empty(1 << 18, dtype=torch.bool)
    kernels("diopiDropout", torch.empty_like(x), mask, x, p, True, kernels.generator(3))
    spread = 5 * (p * (1 - p) / x.numel()) ** 0.5
    assert abs(mask.double().mean() - (1 - p)) <= spread
    neighbours = [(~mask[k::4] & ~mask[(k + 1) % 4 :: 4]).double().mean() for k in range(4)]  # of one draw
    assert all(abs(share - p * p) <= 5 * p * ((1 - p * p) / (x.numel() / 4)) ** 0.5 for share in neighbours)


def test_permutations(kernels: Portable) -> None:
    seen = torch.zeros(4, 4)
    for seed in range(600):
        out = torch.empty(4, dtype=torch.int64)
        kernels("diopiRandperm", out, 4, kernels.generator(seed))
        assert out.sort().values.tolist() == [0, 1, 2, 3]
        seen[torch.arange(4), out] += 1
    assert (seen - 150).abs().max() < 50
    kernels("diopiRandperm", torch.empty(0, dtype=torch.int64), 0, kernels.generator(1))


def test_multinomial(kernels: Portable) -> None:
    weights = torch.tensor([[1.0, 0.0, 3.0], [2.0, 2.0, 4.0]])
    out = torch.empty(2, 4000, dtype=torch.int64)
    kernels("diopiMultinomial", out, weights, 4000, True, kernels.generator(1))
    shares = torch.stack([torch.bincount(row, minlength=3) / 4000 for row in out])
    torch.testing.assert_close(shares, weights / weights.sum(1, keepdim=True), rtol=0, atol=0.03)
    rising, many = torch.arange(3000.0), torch.empty(20_000, dtype=torch.int64)
    kernels("diopiMultinomial", many, rising, 20_000, True, kernels.generator(1))
    assert abs(many.double().mean() - 2000) < 25 and many.min() > 0 and many.max() < 3000
    firsts = torch.empty(4000, 2, dtype=torch.int64)
    kernels("diopiMultinomial", firsts, weights[0].expand(4000, 3), 2, False, kernels.generator(1))
    assert abs((firsts[:, 0] == 2).double().mean() - 0.75) < 0.03 and set(firsts.sum(1).tolist()) == {2}
    few = torch.empty(3, dtype=torch.int64)
    kernels("diopiMultinomial", few, torch.tensor([0.1, 5.0, 1.0]), 3, False, kernels.generator(1))
    assert few.sort().values.tolist() == [0, 1, 2]
    assert kernels.status("diopiMultinomial", few, torch.ones(2), 3, False, kernels.generator(1)) == ERROR


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected.to(found.dtype), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("nesterov,momentum,decay", [(False, 0.0, 0.0), (False, 0.9, 0.1), (True, 0.9, 0.01)])
def test_sgd(kernels: Portable, nesterov: bool, momentum: float, decay: float) -> None:
    reference = torch.nn.Parameter(torch.randn(5, 7, dtype=torch.float64))
    optimizer = torch.optim.SGD([reference], 0.1, momentum, weight_decay=decay, nesterov=nesterov)
    param = reference.detach().float().t().contiguous().t()
    buf = torch.zeros(5, 7) if momentum else None
    for _ in range(4):
        gradient = torch.randn(5, 7)
        kept = gradient.clone()
        reference.grad = gradient.double().clone()
        optimizer.step()
        kernels("diopiSgd", param, gradient, buf, 0.1, momentum, 0.0, decay, nesterov)
        assert torch.equal(gradient, kept)
    close(param, reference.detach())


@pytest.mark.parametrize("buf", [None, torch.empty(0)], ids=["null", "empty"])
@pytest.mark.parametrize("nesterov", [False, True])
def test_each_step_of_sgd_without_a_buffer_is_a_first_one(
    kernels: Portable, buf: torch.Tensor | None, nesterov: bool
) -> None:
    reference, gradient = torch.nn.Parameter(torch.randn(5, 7, dtype=torch.float64)), torch.randn(5, 7)
    param = reference.detach().float()
    for _ in range(2):
        reference.grad = gradient.double()
        torch.optim.SGD([reference], 0.1, 0.9, weight_decay=0.01, nesterov=nesterov).step()
        kernels("diopiSgd", param, gradient, buf, 0.1, 0.9, 0.0, 0.01, nesterov)
    close(param, reference.detach())


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("name", ["Adam", "AdamW"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_adam(kernels: Portable, amsgrad: bool, name: str, dtype: torch.dtype) -> None:
    reference = torch.nn.Parameter(torch.randn(90, 70, dtype=torch.float64))
    optimizer = getattr(torch.optim, name)([reference], 1e-2, weight_decay=0.1, amsgrad=amsgrad)
    param = reference.detach().to(dtype).clone()
    average, squares, peak = (torch.zeros(90, 70, dtype=dtype) for _ in range(3))
    for step in range(1, 5):
        gradient = torch.randn(90, 70, dtype=dtype)
        reference.grad = gradient.double().clone()
        optimizer.step()
        settings = (1e-2, 0.9, 0.999, 1e-8, 0.1, step, amsgrad)
        kernels(f"diopi{name}", param, gradient, average, squares, peak if amsgrad else None, *settings)
    close(param, reference.detach())
    close(squares, optimizer.state[reference]["exp_avg_sq"])


@pytest.mark.parametrize("peaks", [None, [None, None], [torch.empty(0), None]], ids=["null", "nulls", "empty"])
@pytest.mark.parametrize("maximize", [False, True])
def test_fused_adam_w(kernels: Portable, maximize: bool, peaks: list[torch.Tensor | None] | None) -> None:
    references = [torch.nn.Parameter(torch.randn(n, dtype=torch.float64)) for n in (3, 500)]
    optimizer = torch.optim.AdamW(references, 1e-2, maximize=maximize)
    params = [r.detach().float() for r in references]
    averages, squares = ([torch.zeros_like(p) for p in params] for _ in range(2))
    steps = [torch.zeros(()) for _ in params]
    for _ in range(3):
        gradients = [torch.randn_like(p) for p in params]
        for reference, gradient, step in zip(references, gradients, steps, strict=True):
            reference.grad = gradient.double().clone()
            step += 1
        optimizer.step()
        kernels(
            "diopiFusedAdamW",
            *(params, gradients, averages, squares, peaks, steps, 2),
            *(1e-2, 0.9, 0.999, 1e-8, 1e-2, False, maximize),
        )
    for param, reference in zip(params, references, strict=True):
        close(param, reference.detach())


def test_gradient_scaler(kernels: Portable) -> None:
    gradients = [torch.tensor([2.0, 4.0]), torch.tensor([8.0], dtype=torch.float16)]
    found, inverse = torch.zeros(1), torch.tensor([0.5])
    kernels("diopiAmpForeachNonFiniteCheckAndUnscaleInp", gradients, 2, found, inverse)
    assert gradients[0].tolist() == [1, 2] and gradients[1].item() == 4 and found.item() == 0
    gradients[0][1] = float("inf")
    kernels("diopiAmpForeachNonFiniteCheckAndUnscaleInp", gradients, 2, found, inverse)
    assert found.item() == 1
    scale, tracker = torch.tensor([1024.0]), torch.tensor([1], dtype=torch.int32)
    kernels("diopiAmpUpdateScaleInp", scale, tracker, found, 2.0, 0.5, 3)
    assert (scale.item(), tracker.item()) == (512, 0)
    for expected in ((512, 1), (512, 2), (1024, 0)):
        kernels("diopiAmpUpdateScaleInp", scale, tracker, torch.zeros(1), 2.0, 0.5, 3)
        assert (scale.item(), tracker.item()) == expected

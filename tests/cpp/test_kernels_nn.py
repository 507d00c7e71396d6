"""Normalizations and losses with their gradients, against torch's autograd in float64."""

import itertools
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from portable import DEEP_TEAMS, ERROR, FLAGS, FLOATS, Portable, build

REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


@pytest.fixture(scope="module", params=[FLAGS, DEEP_TEAMS], ids=["alone", "teams"])
def kernels(request: pytest.FixtureRequest) -> Portable:
    names = ("batch_norm", "synchronized_norm", "layer_norm", "loss", "nll_loss", "cross_entropy")
    return Portable(build(names, request.param))


def randn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def backwards(tensor: torch.Tensor) -> torch.Tensor:
    """The same values with the order of the dimensions in memory reversed."""
    order = list(reversed(range(tensor.dim())))
    return tensor.permute(order).contiguous().permute(order)


def leaf(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return None if tensor is None else tensor.double().detach().requires_grad_()


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    return {
        torch.float64: {"rtol": 1e-9, "atol": 1e-9},
        torch.float32: {"rtol": 2e-5, "atol": 2e-5},
        torch.float16: {"rtol": 4e-3, "atol": 4e-3},
        torch.bfloat16: {"rtol": 4e-2, "atol": 4e-2},
    }[dtype]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(6, 5), (4, 3, 7), (2, 4, 5, 6), (30, 2, 40, 25)])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(
    kernels: Portable, dtype: torch.dtype, shape: tuple[int, ...], affine: bool, training: bool
) -> None:
    channels = shape[1]
    weight = randn(channels, dtype=dtype, seed=1) if affine else None
    bias = randn(channels, dtype=dtype, seed=2) if affine else None
    for x in (randn(*shape, dtype=dtype), backwards(randn(*shape, dtype=dtype))):
        precise = torch.float64 if dtype == torch.float64 else torch.float32
        mean, var = randn(channels, dtype=precise, seed=3), randn(channels, dtype=precise, seed=4).abs() + 0.5
        exact_mean, exact_var = mean.double().clone(), var.double().clone()
        wide, wide_weight, wide_bias = leaf(x), leaf(weight), leaf(bias)
        exact = F.batch_norm(wide, exact_mean, exact_var, wide_weight, wide_bias, training, 0.3, 1e-5)
        out, save_mean, save_invstd = torch.empty_like(x), torch.empty_like(mean), torch.empty_like(mean)
        kernels("diopiBatchNorm", out, save_mean, save_invstd, x, weight, bias, mean, var, training, 0.3, 1e-5)
        torch.testing.assert_close(out, exact.to(dtype), **tolerance(dtype))
        torch.testing.assert_close(mean, exact_mean.to(precise))
        torch.testing.assert_close(var, exact_var.to(precise))
        gradient = randn(*shape, dtype=dtype, seed=5)
        exact.backward(gradient.double())
        grad_input = torch.empty_like(x)
        grad_weight, grad_bias = torch.empty(channels, dtype=dtype), torch.empty(channels, dtype=dtype)
        kernels(
            "diopiBatchNormBackward",
            *(
                grad_input,
                grad_weight if affine else None,
                grad_bias if affine else None,
                gradient,
                x,
                weight,
            ),
            *(mean, var, save_mean, save_invstd, training, 1e-5),
        )
        torch.testing.assert_close(grad_input, wide.grad.to(dtype), **tolerance(dtype))
        if affine:
            torch.testing.assert_close(grad_weight, wide_weight.grad.to(dtype), **tolerance(dtype))
            torch.testing.assert_close(grad_bias, wide_bias.grad.to(dtype), **tolerance(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("shape", [(4, 16, 9, 7), (300, 8), (2, 24, 1, 5), (3, 12, 5, 6)])
@pytest.mark.parametrize("shift", [0, 1])  # a tensor that begins between two packs
def test_batch_norm_with_channels_innermost(
    kernels: Portable, dtype: torch.dtype, shape: tuple[int, ...], shift: int
) -> None:
    channels = shape[1]

    def laid_out(tensor: torch.Tensor) -> torch.Tensor:
        last = tensor.movedim(1, -1)
        room = torch.empty(tensor.numel() + shift, dtype=dtype)[shift:].view(last.shape)
        return room.copy_(last).movedim(-1, 1)

    scales = torch.arange(1, channels + 1).view(channels, *(1 for _ in shape[2:]))
    x, gradient = laid_out(randn(*shape) * 0.1 * scales + 3 * scales), laid_out(randn(*shape, seed=5) + 1)
    wide = leaf(x)
    exact = F.batch_norm(wide, None, None, None, None, True, 0.3, 1e-5)
    exact.backward(gradient.double())
    dims = [d for d in range(len(shape)) if d != 1]
    variance, average = torch.var_mean(x.double(), dims, correction=0)
    mean, invstd = torch.empty(channels), torch.empty(channels)
    kernels("diopiBatchNormStats", mean, invstd, x, 1e-5)
    torch.testing.assert_close(mean.double(), average, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(invstd.double(), (variance + 1e-5).rsqrt(), rtol=2e-5, atol=0)
    sums, products = torch.empty(channels), torch.empty(channels)
    kernels(
        "diopiBatchNormBackwardReduce", sums, products, None, None, gradient, x, mean, invstd, None, True, False, False
    )
    centered = x.double() - average.view(scales.shape)
    torch.testing.assert_close(sums.double(), gradient.double().sum(dims), rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(products.double(), (gradient.double() * centered).sum(dims), rtol=1e-4, atol=2e-3)
    out, grad_input = torch.empty_like(x), torch.empty_like(x)
    kernels("diopiBatchNorm", out, mean, invstd, x, None, None, None, None, True, 0.3, 1e-5)
    torch.testing.assert_close(out, exact.to(dtype), **tolerance(dtype))
    given = (gradient, x, None, None, None, mean, invstd, True, 1e-5)
    kernels("diopiBatchNormBackward", grad_input, None, None, *given)
    torch.testing.assert_close(grad_input, wide.grad.to(dtype), **tolerance(dtype))


def test_batch_norm_without_running_statistics(kernels: Portable) -> None:
    x = randn(4, 3, 5) + 1e4
    out, save_mean, save_invstd = torch.empty_like(x), torch.empty(3), torch.empty(3)
    kernels("diopiBatchNorm", out, save_mean, save_invstd, x, None, None, None, None, True, 0.1, 1e-5)
    exact = F.batch_norm(x.double(), None, None, None, None, True, 0.1, 1e-5)
    torch.testing.assert_close(out, exact.float(), rtol=1e-3, atol=1e-3)
    assert kernels.status("diopiBatchNorm", out, save_mean, save_invstd, x, *[None] * 4, False, 0.1, 1e-5) == ERROR


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape,lead", [((4, 10), 1), ((2, 3, 4, 5), 2), ((7,), 0), ((3, 40), 1), ((35, 9), 1), ((0, 6), 1)]
)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("centered", [True, False])
def test_layer_and_rms_norm(
    kernels: Portable, dtype: torch.dtype, shape: tuple[int, ...], lead: int, affine: bool, centered: bool
) -> None:
    normalized = list(shape[lead:])
    weight = randn(*normalized, dtype=dtype, seed=1) if affine else None
    bias = randn(*normalized, dtype=dtype, seed=2) if affine and centered else None
    for x in (randn(*shape, dtype=dtype), backwards(randn(*shape, dtype=dtype))):
        wide, wide_weight, wide_bias = leaf(x), leaf(weight), leaf(bias)
        if centered:
            exact = F.layer_norm(wide, normalized, wide_weight, wide_bias, 1e-5)
        else:
            exact = F.rms_norm(wide, normalized, wide_weight, 1e-5)
        out = torch.empty_like(x)
        rows = [*shape[:lead], *[1] * len(normalized)]
        mean, scale = (
            torch.empty(rows, dtype=torch.float64 if dtype == torch.float64 else torch.float32) for _ in "ms"
        )
        if centered:
            kernels("diopiLayerNorm", out, mean, scale, x, weight, bias, normalized, 1e-5)
        else:
            kernels("diopiRMSNorm", out, scale, x, normalized, weight, bias, 1e-5)
        torch.testing.assert_close(out, exact.to(dtype), **tolerance(dtype))
        gradient = randn(*shape, dtype=dtype, seed=3)
        exact.backward(gradient.double())
        grads = [torch.empty_like(x), *(None if t is None else torch.empty_like(t) for t in (weight, bias))]
        if centered:
            kernels("diopiLayerNormBackward", *grads, gradient, x, weight, bias, mean, scale, normalized)
        else:
            kernels("diopiRMSNormBackward", *grads, gradient, x, weight, bias, scale, normalized, 1e-5)
        for found, source in zip(grads, (wide, wide_weight, wide_bias), strict=True):
            if found is not None:
                torch.testing.assert_close(found, source.grad.to(dtype), **(tolerance(dtype)))


def test_layer_norm_gives_only_the_gradients_that_are_asked_for(kernels: Portable) -> None:
    x, weight = randn(3, 4), randn(4, seed=1)
    mean, scale = x.mean(1), 1 / (x.var(1, correction=0) + 1e-5).sqrt()
    bias_grad = torch.empty(4)
    kernels("diopiLayerNormBackward", None, None, bias_grad, torch.ones(3, 4), x, weight, None, mean, scale, [4])
    assert torch.equal(bias_grad, torch.full((4,), 3.0))
    assert kernels.status("diopiLayerNorm", x, mean, scale, x, weight, None, [3], 1e-5) == ERROR


LOSSES: dict[str, tuple[Any, list[Any]]] = {
    "MSELoss": (F.mse_loss, []),
    "SmoothL1Loss": (F.smooth_l1_loss, [0.7]),
    "BCELoss": (F.binary_cross_entropy, []),
    "BCEWithLogits": (F.binary_cross_entropy_with_logits, []),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("weighted", [True, False])
def test_elementwise_losses(kernels: Portable, name: str, reduction: str, dtype: torch.dtype, weighted: bool) -> None:
    function, extra = LOSSES[name]
    takes_weight = name.startswith("BCE")
    shape = (60, 70) if dtype != torch.float16 else (6, 7)
    x, target = randn(*shape, dtype=dtype), randn(*shape, dtype=dtype, seed=1)
    if takes_weight:
        target = target.sigmoid()
        x = x.sigmoid() if name == "BCELoss" else x * 4
    weight = randn(shape[1], dtype=dtype, seed=2).abs() if takes_weight and weighted else None
    pos_weight = randn(shape[1], dtype=dtype, seed=3).abs() if weight is not None and name == "BCEWithLogits" else None
    x, target = backwards(x), target
    wide = leaf(x)
    keywords = {"beta": extra[0]} if extra else {}
    if weight is not None:
        keywords["weight"] = weight.double().expand(shape)
    if pos_weight is not None:
        keywords["pos_weight"] = pos_weight.double()
    exact = function(wide, target.double(), reduction=reduction, **keywords)
    weights = ([weight] if takes_weight else []) + ([pos_weight] if name == "BCEWithLogits" else [])
    out = torch.empty(exact.shape, dtype=dtype)
    kernels(f"diopi{name}", out, x, target, *weights, REDUCTIONS[reduction], *extra)
    torch.testing.assert_close(out, exact.to(dtype), **tolerance(dtype))
    gradient = randn(*exact.shape, dtype=dtype, seed=4)
    exact.backward(gradient.double())
    grad_input = torch.empty_like(x)
    kernels(f"diopi{name}Backward", grad_input, gradient, x, target, *weights, REDUCTIONS[reduction], *extra)
    torch.testing.assert_close(grad_input, wide.grad.to(dtype), **tolerance(dtype))


def test_binary_cross_entropy_of_certain_inputs_is_finite(kernels: Portable) -> None:
    x, target = torch.tensor([0.0, 1.0, 0.0, 1.0]), torch.tensor([0.0, 0.0, 1.0, 1.0])
    out = torch.empty(4)
    kernels("diopiBCELoss", out, x, target, None, 0)
    assert out.tolist() == [0, 100, 100, 0]


NLL_SHAPES = [((5, 4), (5,)), ((3, 4, 6), (3, 6)), ((2, 4, 3, 5), (2, 3, 5)), ((4,), ())]


@pytest.mark.parametrize("shape,target_shape", NLL_SHAPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [True, False])
def test_nll_loss(
    kernels: Portable, shape: tuple[int, ...], target_shape: tuple[int, ...], reduction: str, weighted: bool
) -> None:
    x = backwards(randn(*shape))
    target = torch.randint(0, 4, target_shape, generator=torch.Generator().manual_seed(1))
    ignored = int(target.flatten()[0]) if target.dim() else -100
    weight = randn(4, seed=2).abs() if weighted else None
    wide = leaf(x.contiguous())  # torch's own gradient takes no other layout
    wide_weight = None if weight is None else weight.double()
    exact = F.nll_loss(wide, target, wide_weight, reduction=reduction, ignore_index=ignored)
    out, total = torch.empty(exact.shape), torch.empty(())
    kernels("diopiNLLLossV2", out, total, x, target, weight, REDUCTIONS[reduction], ignored)
    torch.testing.assert_close(out, exact.float())
    plain = torch.empty(exact.shape)
    kernels("diopiNLLLoss", plain, x, target, weight, REDUCTIONS[reduction], ignored)
    assert torch.equal(plain, out)
    gradient = randn(*exact.shape, seed=3)
    exact.backward(gradient.double())
    for name, extra in (("diopiNLLLossV2Backward", [total]), ("diopiNLLLossBackward", [])):
        grad_input = torch.empty_like(x)
        kernels(name, grad_input, gradient, x, target, weight, *extra, REDUCTIONS[reduction], ignored)
        torch.testing.assert_close(grad_input, wide.grad.float())


def test_nll_loss_says_which_target_is_out_of_bounds(kernels: Portable) -> None:
    x, target = randn(3, 4), torch.tensor([0, 7, 1])
    assert kernels.status("diopiNLLLoss", torch.empty(()), x, target, None, 1, -100) == ERROR
    assert "Target 7 is out of bounds" in kernels.last_error()
    out = torch.empty(())
    kernels("diopiNLLLoss", out, x, torch.full((3,), -100), None, 1, -100)
    assert math.isnan(out.item())


@pytest.mark.parametrize("shape,target_shape", NLL_SHAPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2, -1.3])
@pytest.mark.parametrize("labels", [True, False])
def test_cross_entropy(
    kernels: Portable,
    shape: tuple[int, ...],
    target_shape: tuple[int, ...],
    reduction: str,
    smoothing: float,
    labels: bool,
) -> None:
    for weighted, layout in itertools.product((True, False), (torch.clone, backwards)):
        x = layout(randn(*shape) * 5)
        target = torch.randint(0, 4, target_shape, generator=torch.Generator().manual_seed(1))
        if not labels:
            target = randn(*shape, seed=1).softmax(0 if len(shape) == 1 else 1)
        ignored = int(target.flatten()[0]) if target.dim() and labels else -100
        weight = randn(4, seed=2).abs() if weighted else None
        wide = leaf(x)
        exact = F.cross_entropy(
            wide,
            target if labels else target.double(),
            None if weight is None else weight.double(),
            reduction=reduction,
            ignore_index=ignored,
            label_smoothing=smoothing,
        )
        arguments = (x, target, weight, REDUCTIONS[reduction], ignored, smoothing)
        out = torch.empty(exact.shape)
        kernels("diopiCrossEntropyLoss", out, *arguments)
        torch.testing.assert_close(out, exact.float())
        gradient = randn(*exact.shape, seed=3)
        exact.backward(gradient.double())
        grad_input = torch.empty_like(x)
        kernels("diopiCrossEntropyLossBackward", grad_input, gradient, *arguments)
        torch.testing.assert_close(grad_input, wide.grad.float(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(12, 0), (9, 0, 8)])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cross_entropy_of_no_classes(kernels: Portable, shape: tuple[int, ...], reduction: str) -> None:
    x, weight = torch.empty(shape), torch.empty(0)
    exact = F.cross_entropy(x.double(), x.double(), weight.double(), reduction=reduction)
    out = torch.full(exact.shape, 7.0)
    kernels("diopiCrossEntropyLoss", out, x, x, weight, REDUCTIONS[reduction], -100, 0.0)
    torch.testing.assert_close(out, exact.float(), equal_nan=True)
    arguments = (x, weight, REDUCTIONS[reduction], -100, 1.0)
    kernels("diopiCrossEntropyLossBackward", torch.empty(shape), torch.ones(exact.shape), x, *arguments)

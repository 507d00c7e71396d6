"""Convolutions and batch norms as calls of the library, by what the schemas say of the operators that graphs have."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.torch.dicp.programs import calls_of

PLANES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 3, 9, 8), (4, 3, 3, 3), {}),
    "padded": ((2, 16, 8, 8), (24, 16, 3, 3), {"padding": 1}),
    "strided": ((2, 4, 9, 7), (6, 4, 3, 2), {"stride": (2, 3), "padding": (1, 0)}),
    "dilated groups": ((3, 6, 9, 9), (4, 3, 3, 3), {"dilation": 2, "groups": 2}),
    "pointwise": ((2, 5, 4, 4), (3, 5, 1, 1), {}),
}


def symbols(report: Any) -> list[str]:
    from dicp.program import Island

    assert report.program is not None
    assert not [i.reason for i in report.program.instructions if isinstance(i, Island)]
    return calls_of(report)


@pytest.mark.parametrize("name", PLANES)
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("last", [True, False], ids=["channels last", "contiguous"])
def test_convolutions_are_calls(
    torch: Any, compiled: Any, reports: Any, name: str, with_bias: bool, last: bool
) -> None:
    size, weight_size, options = PLANES[name]
    generator = torch.Generator().manual_seed(1)
    tensors = [torch.randn(s, generator=generator) for s in (size, weight_size, weight_size[:1])]
    exact = [t.double().requires_grad_() for t in tensors]
    expected = torch.nn.functional.conv2d(*exact[: 2 + with_bias], **options)
    expected.sin().sum().backward()
    order = torch.channels_last if last else torch.contiguous_format
    own = [t.to("dipu").contiguous(memory_format=order) if t.dim() == 4 else t.to("dipu") for t in tensors]
    for tensor in own:
        tensor.requires_grad_()
    run = compiled(lambda *given: torch.nn.functional.conv2d(*given, **options).sin())
    run(*own[: 2 + with_bias]).sum().backward()
    assert [symbols(report) for report in reports()] == [["diopiConvolution2d"], ["diopiConvolution2dBackward"]]
    for one, other in zip(own[: 2 + with_bias], exact, strict=False):
        torch.testing.assert_close(one.grad.cpu().double(), other.grad, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        found = run(*own[: 2 + with_bias])
    torch.testing.assert_close(found.cpu().double(), expected.sin().detach(), rtol=1e-4, atol=1e-4)


def test_a_gradient_that_nobody_asks_for_is_not_computed(torch: Any, compiled: Any, reports: Any) -> None:
    x, weight = torch.randn(2, 3, 8, 8, device="dipu"), torch.randn(4, 3, 3, 3, device="dipu", requires_grad=True)
    compiled(torch.nn.functional.conv2d)(x, weight).sum().backward()
    call = next(
        i for i in reports()[1].program.instructions if getattr(i, "symbol", "") == "diopiConvolution2dBackward"
    )
    assert [argument.kind for argument in call.arguments[:3]] == ["null", "tensor", "null"]
    expected = torch.nn.grad.conv2d_weight(x.cpu().double(), weight.shape, torch.ones(2, 4, 6, 6).double())
    torch.testing.assert_close(weight.grad.cpu().double(), expected, rtol=1e-5, atol=1e-5)


CONVOLUTIONS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], str]] = {
    "volumes": ("conv3d", (1, 2, 4, 4, 4), (3, 2, 2, 2, 2), "diopiConvolution3d"),
    "transposed": ("conv_transpose2d", (2, 3, 4, 4), (3, 4, 2, 2), "diopiConvTranspose2d"),
    "transposed volumes": ("conv_transpose3d", (1, 2, 3, 4, 3), (2, 3, 2, 2, 2), "diopiConvTranspose3d"),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_each_convolution_calls_its_function(torch: Any, compiled: Any, reports: Any, name: str) -> None:
    function, size, weight_size, symbol = CONVOLUTIONS[name]
    convolve = getattr(torch.nn.functional, function)
    x, weight = torch.randn(size), torch.randn(weight_size)
    inputs = [tensor.to("dipu").requires_grad_() for tensor in (x, weight)]
    found = compiled(convolve)(*inputs)
    found.sin().sum().backward()
    wide = [tensor.double().requires_grad_() for tensor in (x, weight)]
    expected = convolve(*wide)
    expected.sin().sum().backward()
    torch.testing.assert_close(found.cpu().double(), expected, rtol=1e-5, atol=1e-5)
    for own, other in zip(inputs, wide, strict=True):
        torch.testing.assert_close(own.grad.cpu().double(), other.grad, rtol=1e-5, atol=1e-5)
    called = [getattr(i, "symbol", "") for report in reports() for i in report.program.instructions]
    assert {symbol, f"{symbol}Backward"} <= set(called)


def test_a_convolution_of_lines_is_left_to_the_eager_operator(torch: Any, compiled: Any, reports: Any) -> None:
    x, weight = torch.randn(2, 3, 9), torch.randn(4, 3, 2)
    found = compiled(torch.nn.functional.conv1d)(x.to("dipu"), weight.to("dipu"))
    torch.testing.assert_close(found.cpu(), torch.nn.functional.conv1d(x, weight), rtol=1e-5, atol=1e-5)
    reason = "input is not 4-dimensional; input is not 5-dimensional; transposed is not True"
    assert [i.reason for i in reports()[0].program.instructions] == [reason]


def trained(torch: Any, module: Any, run: Callable[..., Any], batches: list[Any]) -> list[Any]:
    """The gradients and the statistics after two forward passes, which the gradients of both follow."""
    module.zero_grad()
    losses = [run(batch).sin().sum() for batch in batches]
    for loss in losses:
        loss.backward()
    return [tensor.detach().cpu().clone() for tensor in (*(p.grad for p in module.parameters()), *module.buffers())]


@pytest.mark.parametrize("options", [{}, {"affine": False}, {"momentum": 0.5}], ids=str)
def test_batch_norms_update_their_statistics(torch: Any, compiled: Any, reports: Any, options: dict[str, Any]) -> None:
    generator = torch.Generator().manual_seed(2)
    batches = [(torch.randn(4, 6, 5, 5, generator=generator) + 2).requires_grad_() for _ in range(3)]
    norm = torch.nn.BatchNorm2d(6, **options)
    eager, module = torch.nn.Sequential(norm), copy.deepcopy(torch.nn.Sequential(norm)).to("dipu")
    run = compiled(module)
    own = [batch.detach().to("dipu").requires_grad_() for batch in batches]
    for first in range(2):
        pair = slice(first, first + 2)
        torch.testing.assert_close(
            trained(torch, module, run, own[pair]),
            trained(torch, eager, eager, batches[pair]),
            rtol=1e-4,
            atol=1e-5,
        )
    assert symbols(reports()[0]) == ["diopiBatchNorm"] and symbols(reports()[1]) == ["diopiBatchNormBackward"]


@pytest.mark.parametrize("training", [True, False])
def test_batch_norms_without_gradients_are_calls(torch: Any, compiled: Any, reports: Any, training: bool) -> None:
    eager = torch.nn.BatchNorm2d(3).train(training)
    eager.running_mean.fill_(0.5)
    module, x = copy.deepcopy(eager).to("dipu"), torch.randn(4, 3, 5, 5)
    run = compiled(module)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(run(x.to("dipu")).cpu(), eager(x), rtol=1e-5, atol=1e-5)
    for one, other in zip(module.buffers(), eager.buffers(), strict=True):
        torch.testing.assert_close(one.cpu(), other)
    assert symbols(reports()[0]) == ["diopiBatchNorm"]


def test_halves_with_statistics_in_float_are_left_to_the_eager_operator(torch: Any, compiled: Any) -> None:
    """Of two dtypes the schema speaks as of one; the eager operator knows the rest."""
    eager = torch.nn.BatchNorm2d(3)
    module, x = copy.deepcopy(eager).to("dipu"), torch.randn(4, 3, 5, 5).bfloat16()
    found, expected = compiled(module)(x.to("dipu")), eager(x)
    torch.testing.assert_close(found.detach().cpu(), expected.detach(), rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(module.running_mean.cpu(), eager.running_mean, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_reductions_of_all_elements_are_no_islands(torch: Any, compiled: Any, reports: Any, name: str) -> None:
    x = torch.randn(37, 65)
    found = compiled(lambda x: getattr(x, name)() * 2)(x.to("dipu"))
    torch.testing.assert_close(found.cpu().double(), getattr(x.double(), name)() * 2, rtol=1e-5, atol=1e-4)
    assert len(symbols(reports()[0])) <= 1

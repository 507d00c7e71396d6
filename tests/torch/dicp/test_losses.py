"""The cross entropy and its gradient as loops over rows; against torch in float64."""

from collections.abc import Callable
from typing import Any

import pytest

ROWS, CLASSES = 37, 101
JOINED = "_log_softmax_backward_data"


def _gradient(function: Callable[..., Any], x: Any, target: Any, device: str) -> Any:
    given = x.to(device).requires_grad_()
    function(given, target.to(device)).sum().backward()
    return given.grad.cpu().double()


def _loss(torch: Any, **options: Any) -> Callable[..., Any]:
    return lambda x, target: torch.nn.functional.cross_entropy(x, target, **options)


def _names(reports: Any) -> str:
    return "\n".join(report.text() for report in reports() if report.phase == "backward")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_no_class_is_written_twice(torch: Any, compiled: Any, reports: Any, reduction: str, dtype: str) -> None:
    torch.manual_seed(1)
    x, target = 3 * torch.randn(ROWS, CLASSES, dtype=torch.float64), torch.randint(CLASSES, (ROWS,))
    x, target[::5] = x.to(getattr(torch, dtype)), -100
    loss = _loss(torch, reduction=reduction)
    found = _gradient(compiled(loss), x, target, "dipu")
    wanted = _gradient(loss, x.double(), target, "cpu")
    digits = torch.finfo(x.dtype).eps
    torch.testing.assert_close(found, wanted, rtol=4 * digits, atol=4 * digits / (ROWS if reduction == "mean" else 1))
    assert not found[::5].any()
    assert "Backward" not in _names(reports) and f"{JOINED}_where" in _names(reports)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("train", [True, False])
def test_a_loss_takes_of_a_row_what_it_needs(
    torch: Any, compiled: Any, reports: Any, train: bool, reduction: str, dtype: str
) -> None:
    torch.manual_seed(2)
    x, target = 3 * torch.randn(ROWS, CLASSES, dtype=torch.float64), torch.randint(CLASSES, (ROWS,))
    x, target[::5] = x.to(getattr(torch, dtype)), -100
    loss = _loss(torch, reduction=reduction)
    found = compiled(loss)(x.to("dipu").requires_grad_(train), target.to("dipu"))
    assert found.dtype == x.dtype
    digits = torch.finfo(x.dtype).eps
    torch.testing.assert_close(found.detach().cpu().double(), loss(x.double(), target), rtol=8 * digits, atol=digits)
    (text,) = (report.text() for report in reports() if report.phase in ("forward", "inference"))
    assert "LogSoftmax" not in text and "NLLLoss" not in text and "diopiGather" in text and "island" not in text[90:]


def test_of_converted_logits_the_halves_are_read(torch: Any, compiled: Any, reports: Any) -> None:
    x, target = torch.randn(ROWS, CLASSES, dtype=torch.bfloat16), torch.randint(CLASSES, (ROWS,))

    def loss(x: Any, target: Any) -> Any:
        return torch.nn.functional.cross_entropy(x.float(), target)

    torch.testing.assert_close(_gradient(compiled(loss), x, target, "dipu"), _gradient(loss, x, target, "cpu"))
    (forward,) = (report for report in reports() if report.phase == "forward")
    whole = [view for i in forward.program.instructions for view in i.writes if view.root.bytes >= 4 * x.numel()]
    assert not whole, forward.text()


@pytest.mark.parametrize("device", ["dipu", "cpu"])
def test_logarithms_that_are_asked_for_are_given(torch: Any, compiled: Any, device: str) -> None:
    x, target = torch.randn(ROWS, CLASSES), torch.randint(CLASSES, (ROWS,))

    def both(x: Any, target: Any) -> Any:
        logarithms = torch.log_softmax(x, 1)
        return torch.nn.functional.nll_loss(logarithms, target), logarithms.to(device)

    loss, logarithms = compiled(both)(x.to("dipu"), target.to("dipu"))
    assert logarithms.device.type == device
    for found, wanted in zip((loss, logarithms), both(x, target), strict=True):
        torch.testing.assert_close(found.cpu(), wanted.cpu())


@pytest.mark.parametrize("train", [True, False])
def test_a_class_that_is_not_there_is_refused(torch: Any, compiled: Any, train: bool) -> None:
    x, target = torch.randn(ROWS, CLASSES).to("dipu").requires_grad_(train), torch.full((ROWS,), CLASSES).to("dipu")
    with pytest.raises((IndexError, RuntimeError), match="index 101 is out of bounds"):
        compiled(_loss(torch))(x, target).cpu()


@pytest.mark.parametrize("options", [{"ignore_index": 7}, {"ignore_index": 7, "reduction": "sum"}])
def test_a_row_that_is_ignored_has_no_gradient(torch: Any, compiled: Any, options: dict[str, Any]) -> None:
    x, target = torch.randn(4, CLASSES), torch.full((4,), 7)
    assert not _gradient(compiled(_loss(torch, **options)), x, target, "dipu").nan_to_num().any()
    target[1] = 3
    loss = _loss(torch, **options)
    found, wanted = (_gradient(f, x, target, device) for f, device in ((compiled(loss), "dipu"), (loss, "cpu")))
    torch.testing.assert_close(found, wanted)


def test_what_the_loop_does_not_say_stays(torch: Any, compiled: Any, reports: Any) -> None:
    weights = torch.rand(CLASSES) + 0.5
    x, target = torch.randn(ROWS, CLASSES), torch.randint(CLASSES, (ROWS,))
    images, labels = torch.randn(2, 5, 3, 3), torch.randint(5, (2, 3, 3))

    def weighted(x: Any, target: Any) -> Any:
        return torch.nn.functional.cross_entropy(x, target, weights.to(x.device))

    for loss, given, of in ((weighted, x, target), (_loss(torch), images, labels)):
        torch.testing.assert_close(_gradient(compiled(loss), given, of, "dipu"), _gradient(loss, given, of, "cpu"))
        assert f"{JOINED}_where" not in _names(reports)

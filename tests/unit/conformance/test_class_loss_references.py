"""Focal losses by hand and by what they come to without focus, and the gradient of the temporal classification loss."""

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from diopi_conformance.references import ctc, focal_losses
from diopi_conformance.values.related.losses import spelled
from tests.unit.conformance.calls import Given, between, numbers, tensor


def test_without_focus_each_class_has_its_cross_entropy() -> None:
    source, target = numbers(6, 4), torch.tensor([0, 3, 4, 2, 1, 4])  # 4 is background
    truth = F.one_hot(target, 5)[:, :4].double()
    expected = F.binary_cross_entropy_with_logits(source, truth, reduction="none") / 2
    found = focal_losses.sigmoid_focal_loss(Given(input=source, target=target, gamma=0.0, alpha=0.5))["output"]
    torch.testing.assert_close(found, expected)


def test_the_focal_loss_of_one_class_by_hand() -> None:
    """At 0 the sigmoid is 1/2: alpha (1/2)^gamma ln 2 for the class, 1 - alpha for the rest, times a weight."""
    call = Given(input=torch.zeros(1, 3).double(), target=torch.tensor([1]), gamma=2.0, alpha=0.25)
    rest, own = 0.75 * math.log(2) / 4, 0.25 * math.log(2) / 4
    torch.testing.assert_close(focal_losses.sigmoid_focal_loss(call)["output"], tensor([[rest, own, rest]]))
    for weight, factor in ((tensor([5, 3, 7]), 3), (torch.zeros(0).double(), 1)):
        found = focal_losses.sigmoid_focal_loss(call.but(weight=weight))["output"]
        torch.testing.assert_close(found, factor * tensor([[rest, own, rest]]))


def test_the_derivative_of_the_sigmoid_focal_loss_by_its_formula() -> None:
    source, target = numbers(6, 4), torch.tensor([0, 3, 4, 2, 1, 4])
    gamma, alpha = 1.5, 0.3
    p = torch.sigmoid(source)
    own = -alpha * (1 - p) ** gamma * (1 - p - gamma * p * p.log())
    rest = -(1 - alpha) * p**gamma * (gamma * (1 - p) * (1 - p).log() - p)
    expected = torch.where(target[:, None] == torch.arange(4), own, rest)
    call = Given(input=source, target=target, gamma=gamma, alpha=alpha)
    torch.testing.assert_close(focal_losses.sigmoid_focal_loss_backward(call)["grad_input"], expected)


@pytest.mark.parametrize("weighted", [True, False])
def test_the_softmax_focal_loss_without_focus_is_a_cross_entropy(weighted: bool) -> None:
    logits, target = numbers(6, 4), torch.tensor([0, 3, 1, 2, 1, 3])
    weight = tensor([1, 2, 3, 4]) if weighted else None
    call = Given(softmax=logits.softmax(1), target=target, weight=weight, gamma=0.0, alpha=1.0)
    expected = F.cross_entropy(logits, target, weight, reduction="none")
    torch.testing.assert_close(focal_losses.softmax_focal_loss(call)["output"], expected)
    truth = F.one_hot(target, 4) * (1 if weight is None else weight[target][:, None])
    slope = logits.softmax(1) * truth.sum(1, keepdim=True) - truth
    torch.testing.assert_close(focal_losses.softmax_focal_loss_backward(call)["grad_input"], slope)


def test_the_derivative_of_the_softmax_focal_loss_is_by_the_logits() -> None:
    logits, target, way = numbers(6, 4), torch.tensor([0, 3, 1, 2, 1, 3]), numbers(6, 4, seed=1)
    call = Given(target=target, weight=tensor([1, 2, 3, 4]), gamma=1.5, alpha=0.25)
    found = focal_losses.softmax_focal_loss_backward(call.but(softmax=logits.softmax(1)))["grad_input"]
    ends = [
        focal_losses.softmax_focal_loss(call.but(softmax=(logits + s * way).softmax(1)))["output"]
        for s in (1e-6, -1e-6)
    ]
    torch.testing.assert_close((found * way).sum(1), (ends[0] - ends[1]) / 2e-6)


def spellings(target: list[int], steps: int, classes: int, blank: int) -> list[tuple[int, ...]]:
    """All sequences that come to the target when repeats and then blanks are dropped."""
    return [
        path
        for path in itertools.product(range(classes), repeat=steps)
        if [c for c, _ in itertools.groupby(path) if c != blank] == target
    ]


DRAWN = {
    "targets": np.array([[1, 1, 2], [2, 1, 0]]),
    "input_lengths": np.array([5, 4]),
    "target_lengths": np.array([3, 2]),
    "blank": 0,
    "log_alpha": np.zeros((2, 5, 7)),
}


def temporal(reduction: str = "none", **changed: object) -> Given:
    values = {**DRAWN, "log_probs": between(-4, -1, 5, 2, 3).numpy(), **changed}
    call = Given({name: torch.as_tensor(v) if isinstance(v, np.ndarray) else v for name, v in values.items()})
    kept = {name: torch.as_tensor(value) for name, value in spelled(values).items()}
    return call.but(**kept, reduction=reduction, zero_infinity=False)


def test_what_the_loss_leaves_is_counted_over_all_spellings() -> None:
    call = temporal()
    probabilities = call["log_probs"].exp()
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(5, 2).double())
    for n, target in enumerate(([1, 1, 2], [2, 1])):
        steps = int(call["input_lengths"][n])
        total = sum(
            math.prod(float(probabilities[t, n, c]) for t, c in enumerate(path))
            for path in spellings(target, steps, 3, 0)
        )
        assert float(call["neg_log_likelihood"][n]) == pytest.approx(-math.log(total))


def test_what_the_loss_leaves_is_what_torch_leaves() -> None:
    call = temporal()
    lengths = call["input_lengths"], call["target_lengths"]
    likelihood, alpha = torch.ops.aten._ctc_loss.Tensor(call["log_probs"], call["targets"], *lengths, 0, False)
    torch.testing.assert_close(call["neg_log_likelihood"], likelihood)
    torch.testing.assert_close(call["log_alpha"][0], alpha[0])
    torch.testing.assert_close(call["log_alpha"][1, :4, :5], alpha[1, :4, :5])


def test_joined_targets_are_spelled_like_padded_ones() -> None:
    joined = temporal(targets=np.array([1, 1, 2, 2, 1]))
    torch.testing.assert_close(joined["log_alpha"], temporal()["log_alpha"])
    grad = numbers(2)
    found = [ctc.ctc_loss_backward(call.but(grad_output=grad))["grad_input"] for call in (joined, temporal())]
    torch.testing.assert_close(found[0], found[1])


def test_the_gradient_is_the_probability_less_the_share_of_the_spellings() -> None:
    call = temporal()
    grad = tensor([2, -3])
    found = ctc.ctc_loss_backward(call.but(grad_output=grad))["grad_input"]
    probabilities = call["log_probs"].exp()
    for n, target in enumerate(([1, 1, 2], [2, 1])):
        steps = int(call["input_lengths"][n])
        share = torch.zeros(5, 3).double()
        for path in spellings(target, steps, 3, 0):
            weight = math.prod(float(probabilities[t, n, c]) for t, c in enumerate(path))
            for t, c in enumerate(path):
                share[t, c] += weight
        expected = probabilities[:, n] - share / share[0].sum()
        expected[steps:] = 0
        torch.testing.assert_close(found[:, n], grad[n] * expected)


def test_a_reduced_loss_hands_its_share_to_each_sequence() -> None:
    each = ctc.ctc_loss_backward(temporal().but(grad_output=torch.ones(2).double()))["grad_input"]
    total = ctc.ctc_loss_backward(temporal("sum").but(grad_output=tensor(2)))["grad_input"]
    torch.testing.assert_close(total, 2 * each)
    mean = ctc.ctc_loss_backward(temporal("mean").but(grad_output=tensor(2)))["grad_input"]
    torch.testing.assert_close(mean, 2 * each / 2 / tensor([3, 2])[:, None])


def test_a_target_that_cannot_be_spelled_has_no_gradient_if_asked() -> None:
    call = temporal(input_lengths=np.array([3, 4])).but(zero_infinity=True, grad_output=torch.ones(2).double())
    assert call["neg_log_likelihood"][0] == math.inf  # the equal letters need a blank between them
    found = ctc.ctc_loss_backward(call)["grad_input"]
    assert not found[:, 0].any()
    assert found[:, 1].any()

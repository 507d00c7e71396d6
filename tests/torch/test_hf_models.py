"""Models of transformers train on dipu as on the CPU, and the command that compares them sees when they do not."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tools.hf_models.outcome import Outcome
from tools.hf_models.parallel import _error_line, run_models


@pytest.fixture(scope="module")
def outcomes(libraries: Path) -> dict[str, Outcome]:
    pytest.importorskip("transformers")
    os.environ["DIPU_LIBRARY_DIR"] = str(libraries)
    models = ("bert", "llama", "resnet-basic", "no-such-model")
    return {outcome.model: outcome for outcome in run_models(models, (), 2, 300.0)}


@pytest.mark.parametrize(("model", "tied"), [("bert", 2), ("llama", 0), ("resnet-basic", 0)])
def test_a_model_trains_as_on_the_cpu(outcomes: dict[str, Outcome], model: str, tied: int) -> None:
    outcome = outcomes[model]
    assert outcome.error == "" and outcome.agrees, json.dumps(outcome.result)
    assert outcome.result["tied"] == tied and outcome.result["gradients"] > 60
    assert outcome.result["losses"]["dipu"][2] < outcome.result["losses"]["dipu"][0]
    assert outcome.result["fallbacks"] == []


def test_a_model_that_ends_badly_says_how(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["no-such-model"]
    assert not outcome.agrees and outcome.error == "KeyError: 'no-such-model'"


def test_errors_are_told_in_a_line() -> None:
    frames = 'Traceback (most recent call last):\n  File "a.py", line 1, in run\n    run()\n'
    assert (
        _error_line(f"a warning\n{frames}ValueError: no such size\nException raised from f")
        == "ValueError: no such size"
    )
    assert _error_line(f"{frames}ImportError: \n\nThe loss needs scipy.\n") == "ImportError:  The loss needs scipy."
    assert _error_line("") == ""


def test_a_model_that_takes_too_long_is_ended() -> None:
    (outcome,) = run_models(["bert"], (), 1, 0.01)
    assert outcome.error == "not done after 0 s" and not outcome.agrees


def test_differences_are_seen(torch: Any) -> None:
    from tools.hf_models.agreement import differences

    expected = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([1e-9]), "c": torch.ones(2)}
    close = {"a": torch.tensor([1.0, 2.001]), "b": torch.tensor([-1e-9]), "c": torch.ones(2)}
    assert differences(close, expected) == []
    off = differences({"a": torch.tensor([1.0, 2.01]), "b": torch.tensor([float("nan")]), "d": torch.ones(1)}, expected)
    assert {row.name for row in off} == {"a", "b", "c", "d"}
    # Where rounding of the weights moves the reference as far, it is no difference.
    moved = {**expected, "a": torch.tensor([1.002, 2.0])}
    assert differences({**close, "a": torch.tensor([1.0, 2.01])}, expected, [moved]) == []
    assert [row.name for row in differences({**close, "a": torch.tensor([1.0, 2.1])}, expected, [moved])] == ["a"]


def test_chance_is_taken_out(torch: Any) -> None:
    from tools.hf_models.training import HostRandom, tied_names, without_dropout

    layer = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    layer[2].weight = layer[1].weight
    x = torch.ones(50, 2)
    assert without_dropout(layer).training and torch.equal(layer[0](x), x)
    assert tied_names(layer) == {frozenset({"1.weight", "2.weight"})}
    drawn = []
    for device in ("cpu", "dipu"):
        torch.manual_seed(1)
        with HostRandom():
            drawn.append((torch.rand(3, device=device).cpu(), torch.randn_like(torch.ones(2, device=device)).cpu()))
    assert all(torch.equal(a, b) for a, b in zip(*drawn, strict=True))

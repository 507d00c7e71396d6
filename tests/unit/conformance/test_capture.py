"""From a running script to cases of the contract's functions."""

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from torch.nn import functional as F

from diopi_conformance.capture.context import CaptureContext, trial
from diopi_conformance.capture.recorder import recorded
from diopi_conformance.capture.session import LARGEST, Session
from diopi_conformance.capture.store import Captured, Store
from diopi_conformance.capture.summary import summary
from diopi_conformance.capture.whole_operators import kept_whole
from diopi_conformance.cases.model_cases import model_cases, model_names
from diopi_conformance.cases.plan import plan_of
from diopi_conformance.cli import cli
from diopi_conformance.prepare import prepare
from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project
from diopigen.targets import conformance

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def here():
    project, diagnostics = Project(root=ROOT), Diagnostics()
    program = pipeline.run(project, diagnostics, pipeline.Stage.ATEN)
    assert program is not None
    (output,) = conformance.outputs(program, lambda *_: "")
    return CaptureContext(program=program, plan=plan_of(json.loads(output.text)))


@pytest.fixture
def captured(here):
    """What a function makes of the contract, by function of it; every case is prepared."""

    def capture(step) -> dict[str, list[Captured]]:
        session = Session(here.program)
        with session.capturing():
            step()
        assert not session.tally.unmapped, summary(session.tally, here.refused)
        found: dict[str, list[Captured]] = {}
        for case in session.cases.values():
            prepare(here.plan, trial(case))
            found.setdefault(case.function, []).append(case)
        return found

    return capture


def test_a_call_keeps_shapes_types_and_numbers(captured):
    a, b = torch.ones(3, 4), torch.ones(4)
    found = captured(lambda: torch.add(a, b, alpha=2))
    assert list(found) == ["diopiAdd"]
    (case,) = found["diopiAdd"]
    assert case.values == {"input": [3, 4], "other": [4], "alpha": 2}
    assert case.dtypes == {"out": "f32", "input": "f32", "other": "f32"}
    assert (case.topic, case.elements, case.layout, case.view) == ("arithmetic", "f32", "", "contiguous")


def test_equal_calls_are_one_case(captured):
    a = torch.ones(3, 4)
    assert len(captured(lambda: [a.exp(), (a + 0).exp(), torch.exp(a)])["diopiExp"]) == 1


def test_a_number_takes_the_scalar_form(captured):
    (case,) = captured(lambda: torch.ones(5, dtype=torch.float16) * 2.5)["diopiMulScalar"]
    assert case.values == {"input": [5], "other": 2.5}
    assert case.dtypes == {"out": "f16", "input": "f16"}


def test_a_number_less_a_tensor_is_a_tensor_without_dimensions(captured):
    (case,) = captured(lambda: 1 - torch.ones(5))["diopiSub"]
    assert case.values == {"input": [], "other": [5]}


def test_linear_stays_whole_with_its_gradients(captured):
    layer, x = torch.nn.Linear(6, 3), torch.randn(2, 5, 6, requires_grad=True)
    found = captured(lambda: layer(x).backward(torch.ones(2, 5, 3)))
    assert found["diopiLinear"][0].values == {"input": [2, 5, 6], "weight": [3, 6], "bias": [3]}
    (case,) = found["diopiLinearBackward"]
    assert case.values == {"input": [2, 5, 6], "weight": [3, 6], "bias": [3]}
    assert case.forward == {"out": "f32", "input": "f32", "weight": "f32", "bias": "f32"}
    assert case.dtypes["grad_output"] == "f32"


@pytest.mark.parametrize("left, right", [((4, 5), (5, 6)), ((5,), (5, 6)), ((4, 5), (5,)), ((2, 1, 4, 5), (3, 5, 6))])
def test_whole_matmul_has_the_gradients_of_pytorch(left, right):
    def gradients() -> tuple[torch.Tensor, ...]:
        torch.manual_seed(1)
        a = torch.randn(left, dtype=torch.float64, requires_grad=True)
        b = torch.randn(right, dtype=torch.float64, requires_grad=True)
        out = a @ b
        return torch.autograd.grad(out, [a, b], torch.ones_like(out))

    usual = gradients()
    with kept_whole():
        whole = gradients()
    assert all(torch.allclose(x, y) for x, y in zip(usual, whole, strict=True))


def test_whole_linear_has_the_gradients_of_pytorch():
    def gradients() -> tuple[torch.Tensor, ...]:
        torch.manual_seed(1)
        layer = torch.nn.Linear(4, 3).double()
        x = torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True)
        return torch.autograd.grad(layer(x).square().sum(), [x, layer.weight, layer.bias])

    usual = gradients()
    with kept_whole():
        whole = gradients()
    assert all(torch.allclose(x, y) for x, y in zip(usual, whole, strict=True))


def test_whole_operators_are_taken_apart_again_afterwards():
    seen: list[str] = []
    with kept_whole():
        pass
    with recorded(lambda call: seen.append(call.overload)):
        F.linear(torch.ones(2, 3), torch.ones(4, 3))
    assert "linear" not in seen


def test_convolution_of_one_dimension_is_one_of_images(captured):
    layer, x = torch.nn.Conv1d(4, 6, 3, stride=2, padding=1), torch.randn(2, 4, 10)
    found = captured(lambda: layer(x).backward(torch.ones(2, 6, 5)))
    (forward,), (backward,) = found["diopiConvolution2d"], found["diopiConvolution2dBackward"]
    wanted = {"input": [2, 4, 1, 10], "weight": [6, 4, 1, 3], "bias": [6], "stride": [1, 2], "padding": [0, 1]}
    assert forward.values == wanted
    # Nobody asked for the gradient of the input, but its shape is known.
    assert backward.values == wanted


def test_images_with_inner_channels_and_views_are_told(captured):
    image = torch.randn(2, 8, 4, 4).to(memory_format=torch.channels_last)
    (nhwc,) = captured(lambda: F.relu(image))["diopiRelu"]
    assert (nhwc.layout, nhwc.view) == ("nhwc", "contiguous")
    rows = torch.randn(4, 6)
    views = {
        "transposed": rows.T,
        "strided": rows[:, ::2],
        "offset": rows[1:],
        "expanded": rows[:1].expand(4, 6),
    }
    for name, view in views.items():
        (case,) = captured(lambda view=view: torch.exp(view))["diopiExp"]
        assert (case.view, case.values) == (name, {"input": list(view.shape)})


def test_fused_optimizers_are_calls_of_the_contract(captured):
    layer = torch.nn.Linear(3, 2)
    layer(torch.ones(1, 3)).sum().backward()
    found = captured(torch.optim.AdamW(layer.parameters(), lr=0.5, fused=True).step)
    (case,) = found["diopiFusedAdamW"]
    assert case.values["params"] == [[2, 3], [2]]
    assert case.values["max_exp_avg_sqs"] == [None, None]
    assert case.values["lr"] == 0.5
    momentum = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9, dampening=0.2, fused=True)
    first = captured(momentum.step)["diopiSgd"]
    assert [case.values["param"] for case in first] == [[2, 3], [2]]
    assert first[0].values["dampening"] == 0.0  # the first step has none
    assert captured(momentum.step)["diopiSgd"][0].values["dampening"] == 0.2


def test_losses_and_their_gradients_say_how_they_reduce(captured):
    scores = torch.randn(4, 5, requires_grad=True)
    found = captured(lambda: F.cross_entropy(scores, torch.tensor([1, 2, 3, 4]), reduction="sum").backward())
    names = [name for name in found if "NLL" in name]
    assert len(names) == 2
    for name in names:
        assert found[name][0].values["reduction"] == "sum"
        assert found[name][0].values["target"] == [4]


def test_fills_and_padding_are_what_a_device_does(captured):
    assert set(captured(lambda: torch.zeros(3))) == {"diopiZeroInp"}
    assert set(captured(lambda: torch.full((3,), 2.0))) == {"diopiFill"}
    found = captured(lambda: F.pad(torch.ones(2, 3), (1, 1)))
    assert set(found) >= {"diopiZeroInp", "diopiCopyInp"}


def test_what_the_contract_cannot_say_is_counted(here):
    session = Session(here.program)
    x, large = torch.ones(4), torch.ones(LARGEST + 1)
    with session.capturing():
        F.glu(x)
        large.exp_()
    assert dict(session.tally.unmapped) == {("glu", "nothing in the contract"): 1, ("exp_", "too large"): 1}
    assert (session.tally.calls, session.tally.mapped) == (2, 0)
    text = summary(session.tally, here.refused)
    assert text.splitlines()[0] == "2 calls, 0 of them calls of the contract, 2 not"
    assert text.splitlines()[1:3] == ["       1 exp_: too large", "       1 glu: nothing in the contract"]


def test_views_are_no_calls(here):
    session = Session(here.program)
    with session.capturing():
        torch.ones(2, 3).view(6)[1:].unsqueeze(0)
    assert session.tally.calls == 1  # the ones


def case(**changes) -> Captured:
    usual = {
        "topic": "unary",
        "function": "diopiNeg",
        "elements": "f32",
        "dtypes": {"out": "f32", "input": "f32"},
        "forward": {},
        "layout": "",
        "view": "contiguous",
        "values": {"input": [2, 3]},
    }
    return Captured(**{**usual, **changes})


def test_numbers_stay_when_models_are_added(here, tmp_path):
    store = Store(tmp_path)
    assert store.add("one", [case(values={"input": [9]}), case()]) == 2
    store.write()
    before = {c.id: c.values for c in model_cases(here.plan, tmp_path)}
    store = Store(tmp_path)
    assert store.add("two", [case(values={"input": [1]}), case(), case(view="strided")]) == 2
    store.write()
    after = {c.id: c for c in model_cases(here.plan, tmp_path)}
    assert {name: after[name].values for name in before} == before
    assert after["neg/f32/model/1"].models == ("one", "two")
    assert after["neg/f32/model/2"].models == ("two",)
    assert "neg/f32/strided/model/3" in after
    assert model_names(tmp_path) == ("one", "two")


def test_the_same_cases_are_the_same_bytes(tmp_path):
    for folder in ("a", "b"):
        store = Store(tmp_path / folder)
        store.add("one", [case(values={"input": [2], "alpha": float("inf")}), case(), case(elements="f16")])
        store.write()
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == ["models.json", "unary.jsonl"]
    assert all((tmp_path / "a" / n).read_bytes() == (tmp_path / "b" / n).read_bytes() for n in names)
    assert '{"alpha":{"float":"inf"},"input":[2]}' in (tmp_path / "a" / "unary.jsonl").read_text()


@pytest.fixture
def capture(tmp_path, here, monkeypatch):
    """The command, with a script."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("diopi_conformance.capture.context.setting", lambda plan: here)

    def invoke(text: str, *args: str):
        script = tmp_path / "step.py"
        script.write_text(text)
        out = ["--out", str(tmp_path / "data")]
        return CliRunner().invoke(cli, ["capture", "--name", "mine", *out, str(script), *args])

    return invoke


def test_the_command_runs_a_script_and_adds_its_cases(capture, here, tmp_path):
    result = capture("import sys, torch\ntorch.ones(int(sys.argv[1]), 3).neg()\n", "7")
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1] == f"2 new cases of mine; 2 in {tmp_path / 'data'}"
    (neg,) = (c for c in model_cases(here.plan, tmp_path / "data") if c.function == "diopiNeg")
    assert (neg.values, neg.models) == ({"input": [7, 3]}, ("mine",))


def test_a_script_that_fails_leaves_nothing(capture, tmp_path):
    result = capture("import sys\nsys.exit(3)\n")
    assert result.exit_code == 2
    assert f"Error: {tmp_path / 'step.py'} ended with 3; nothing is written" in result.output
    result = capture("1 / 0\n")
    assert result.exit_code == 2
    assert f"Error: {tmp_path / 'step.py'} ended with an exception; nothing is written" in result.output
    assert not (tmp_path / "data").exists()

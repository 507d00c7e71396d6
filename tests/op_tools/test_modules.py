"""Runs recorded module by module: a program is left as it is, equal runs are equal, and of others the first module is
named whose results part though its inputs agree."""

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import op_tools
from op_tools.modules.comparison import ModulesCompared, are_modules, modules_compared
from op_tools.modules.render import lines
from op_tools.runs.comparison import CannotCompare
from op_tools.store.recording import GRADIENTS, MODULE, WEIGHTS, BadRecording, read_recording, recordings
from tests.processes import run_warm

Change = Callable[["Model"], None]


class Layer(nn.Module):
    """Normed, attending to itself, with three users of one tensor, a residual sum and an in-place activation."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True)
        self.up, self.act, self.down = nn.Linear(8, 16), nn.ReLU(inplace=True), nn.Linear(16, 8)
        self.gate = nn.Linear(8, 16)
        self.factor = 1.0
        self.turned: Callable[[torch.Tensor], torch.Tensor] = lambda x: x

    def forward(self, x: torch.Tensor, *, scale: float) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        y = self.norm(x)
        x = x + self.attention(y, y, y)[0]
        y = self.act(self.up(x)) * self.gate(x)
        return x + self.turned(self.down(y) * (scale * self.factor)), {"inner": y}


class Model(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.shared = nn.Linear(8, 8)  # runs twice
        self.ending = nn.Sequential(nn.BatchNorm1d(8), nn.Dropout(dropout), nn.Linear(8, 3))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens)
        for layer in self.layers:
            x, _ = layer(self.shared(x), scale=0.5)
        return self.ending(x.mean(1))


class Scaled(torch.autograd.Function):
    """Its gradient is 5% too large."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0] * 1.05


class BadBackward(nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.linear(Scaled.apply(input), self.weight, self.bias)


class BadWeightGradient(nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.linear(input, Scaled.apply(self.weight), self.bias)


class BadForward(nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(input) * 1.01


class OtherOrder(nn.Linear):
    """Adds in another order: what differs is rounding."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        half = self.in_features // 2
        first, second = input[..., :half] @ self.weight[:, :half].t(), input[..., half:] @ self.weight[:, half:].t()
        return second + (first + self.bias)


def become(module: nn.Module, kind: type[nn.Module]) -> None:
    module.__class__ = kind


def reordered(model: Model) -> None:
    for module in list(model.modules()):
        if type(module) is nn.Linear:
            become(module, OtherOrder)


def trained(
    change: Change = lambda _: None, *, steps: int = 1, dropout: float = 0.0, seed: int = 5, rate: float = 1e-2,
    shift: int = 0, weight: float = 1.0,
) -> tuple[Model, list[float]]:  # fmt: skip
    """What it has after some steps, and the losses."""
    torch.manual_seed(1)
    model, losses = Model(dropout), []
    change(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    tokens, classes = (torch.arange(24).view(4, 6) * 5 + shift) % 11, torch.tensor([0, 2, 1, 1])
    torch.manual_seed(seed)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens), classes) * weight
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


def record(folder: Path, change: Change = lambda _: None, *, fixed: Path | None = None, **options: Any) -> Path:
    whole = options.pop("whole", 1 << 16)
    steps = options.get("steps", 1)
    with op_tools.ModuleRecord(folder=folder, whole=whole, iterations=steps, fixed_to=fixed):
        trained(change, **options)
    return folder


def compared(a: Path, b: Path) -> ModulesCompared:
    (found,) = modules_compared(a, b)
    return found


def test_a_recorded_program_runs_as_it_did(tmp_path):
    own = nn.Module.__call__
    model, losses = trained(steps=3)
    with op_tools.ModuleRecord(folder=tmp_path, iterations=2) as recorder:
        watched, same = trained(steps=3)
    assert nn.Module.__call__ is own and not recorder.left
    assert losses == same
    for one, other in zip(model.parameters(), watched.parameters(), strict=True):
        assert torch.equal(one, other)


def test_what_is_recorded(tmp_path):
    (found,) = recordings(record(tmp_path))
    runs = Counter(line["module"] for line in found.of(MODULE))
    assert runs["shared"] == 2 and set(runs.values()) == {1, 2} and "" in runs
    assert {name for name, module in Model().named_modules() if not isinstance(module, nn.ModuleList)} - set(runs) == {
        "layers.0.attention.out_proj",
        "layers.1.attention.out_proj",
    }  # which attention uses without running it
    layer = next(line for line in found.of(MODULE) if line["module"] == "layers.1")
    assert list(layer["inputs"]) == ["args[0]"] and list(layer["outputs"]) == ["result[0]", "result[1].inner"]
    gradients = {(line["module"], line["number"], line["place"]) for line in found.of(GRADIENTS)}
    assert {("shared", 0, "args[0]"), ("shared", 1, "result"), ("layers.0.attention", 0, "args[0]")} <= gradients
    told = Counter(line["what"] for line in found.of(WEIGHTS))
    weights = len(list(Model().parameters()))
    assert told == {"initial": weights + 3, "gradient": weights, "updated": weights}  # with the norm's buffers


def test_an_iteration_ends_with_the_step_of_an_optimizer(tmp_path):
    one, two = record(tmp_path / "one", steps=1), tmp_path / "two"
    with op_tools.ModuleRecord(folder=two):
        trained(steps=3)
    counts = [len(found.of(MODULE)) for found in (*recordings(one), *recordings(two))]
    assert counts[0] == counts[1]
    recorder = op_tools.ModuleRecord(folder=tmp_path / "again")
    for _ in range(2):
        with recorder:
            trained(steps=2)
    assert len(recordings(tmp_path / "again")[0].of(MODULE)) == 2 * counts[0]


@pytest.mark.parametrize("whole", [1 << 16, 0])
@pytest.mark.parametrize("change", [lambda _: None, reordered], ids=["same", "reordered"])
def test_equal_runs_are_equal(tmp_path, change, whole):
    found = compared(record(tmp_path / "a", steps=2, whole=whole), record(tmp_path / "b", change, steps=2, whole=whole))
    assert found.parting is None, "\n".join(lines([found]))
    assert found.only == ((), ()) and len(found.runs) > 40


FAULTS: dict[str, tuple[Change, str, str]] = {
    "forward of a layer": (lambda m: become(m.layers[1].down, BadForward), "forward", "layers.1.down"),
    "forward of one that runs twice": (lambda m: become(m.shared, BadForward), "forward", "shared"),
    "what a module does itself": (lambda m: setattr(m.layers[0], "factor", 1.01), "forward", "layers.0"),
    "backward of a layer": (lambda m: become(m.layers[0].up, BadBackward), "backward", "layers.0.up"),
    "backward of one of two users": (lambda m: become(m.layers[1].gate, BadBackward), "backward", "layers.1.gate"),
    "backward of what a module does itself": (
        lambda m: setattr(m.layers[1], "turned", Scaled.apply), "backward", "layers.1",
    ),
    "gradient of a weight": (lambda m: become(m.ending[2], BadWeightGradient), "gradient", "ending.2"),
    "first values": (lambda m: m.layers[1].gate.weight.data.mul_(1.001), "weights", "layers.1.gate"),
}  # fmt: skip


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """A run without a fault, with whole tensors and with sketches."""
    return {whole: record(tmp_path_factory.mktemp("clean") / "a", whole=whole) for whole in (1 << 16, 0)}


@pytest.mark.parametrize("whole", [1 << 16, 0])
@pytest.mark.parametrize("name", FAULTS)
def test_the_first_module_that_parts_is_named(clean, tmp_path, name, whole):
    change, kind, module = FAULTS[name]
    found = compared(clean[whole], record(tmp_path, change, whole=whole)).parting
    assert found is not None and (found.kind, found.module) == (kind, module), found


@pytest.mark.parametrize(
    ("options", "kind"), [({"shift": 1}, "input"), ({"rate": 2e-2}, "optimizer"), ({"weight": 1.5}, "loss")]
)
def test_what_is_no_module_s_fault_is_told_as_such(clean, tmp_path, options, kind):
    found = compared(clean[1 << 16], record(tmp_path, **options)).parting
    assert found is not None and found.kind == kind


def test_random_numbers_are_told_as_such(tmp_path):
    a, b = record(tmp_path / "a", dropout=0.5), record(tmp_path / "b", dropout=0.5, seed=6)
    found = compared(a, b).parting
    assert found is not None and (found.kind, found.module, found.type) == ("random", "ending.1", "Dropout")
    assert compared(a, record(tmp_path / "c", dropout=0.5)).parting is None


def test_fixed_inputs_show_each_module_s_own_error(tmp_path):
    def faulty(model: Model) -> None:
        become(model.layers[0].up, BadForward)
        become(model.layers[1].gate, BadBackward)

    reference = record(tmp_path / "a")
    free = compared(reference, record(tmp_path / "free", faulty))
    fixed = compared(reference, record(tmp_path / "fixed", faulty, fixed=reference))

    def parted(found: ModulesCompared, places: str) -> set[str]:
        gaps = ((run.module, gap) for run in found.runs for gap in getattr(run, places).values())
        return {module for module, gap in gaps if gap is not None and gap.relative > 1e-5}

    assert {"layers.0.up", "layers.0.act", "layers.1.norm", "ending.2", "shared"} <= parted(free, "outputs")
    # What is made of no module alone, and their own
    assert parted(fixed, "outputs") == {"layers.0.up"} and parted(fixed, "inputs") == set()
    assert parted(fixed, "gradients") == {"layers.0.up", "layers.0", "layers.1.gate", "layers.1"}


def test_what_cannot_be_fixed_is_counted(tmp_path):
    reference = record(tmp_path / "a", whole=8)
    with op_tools.ModuleRecord(folder=tmp_path / "b", fixed_to=reference) as recorder:
        trained()
    assert recorder.left["layers.0.up args[0]", "not fixed, the other run kept a sketch only (--whole)"] == 1
    calls = tmp_path / "calls"
    with op_tools.OpRecord(folder=calls):
        torch.ones(3).exp()
    with pytest.raises(BadRecording, match="holds no modules; record them with"):
        op_tools.ModuleRecord(fixed_to=calls)
    with pytest.raises(CannotCompare, match=r"only one of .* is of modules; record both with --modules"):
        are_modules(reference, calls)


def test_checkpointed_layers_are_recorded_as_they_ran_first(tmp_path):
    from torch.utils.checkpoint import checkpoint

    layer = Layer()
    x = torch.randn(2, 3, 8, requires_grad=True)
    with op_tools.ModuleRecord(folder=tmp_path):
        checkpoint(lambda y: layer(y, scale=1.0)[0], x, use_reentrant=False).sum().backward()
    (found,) = recordings(tmp_path)
    assert Counter(line["module"] for line in found.of(MODULE))["up"] == 1
    assert ("up", "args[0]") in {(line["module"], line["place"]) for line in found.of(GRADIENTS)}


SCRIPT = """\
import sys
import torch
if "dipu" in sys.argv:
    import torch_dipu
    torch_dipu.start()
device = "dipu" if "dipu" in sys.argv else "cpu"
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.GELU(), torch.nn.LayerNorm(5), torch.nn.Linear(5, 2))
x = torch.randn(4, 6)
model, x = model.to(device), x.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    loss = (model(x) if "--bad" not in sys.argv else model[3](model[2](model[1](model[0](x)) + 0.01))).square().sum()
    loss.backward()
    optimizer.step()
"""


@pytest.fixture
def command(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return run_warm("-m", "op_tools", *words, folder=tmp_path, TORCH_DEVICE_BACKEND_AUTOLOAD="0")

    return run


def test_the_commands(command, tmp_path):
    first = command("run", "train.py", "--record", "a", "--modules")
    assert first.returncode == 0 and first.stdout == "modules: 5 runs of 5 modules in a\n", first.stderr
    assert command("run", "train.py", "--record", "b", "--modules").returncode == 0
    equal = command("compare-runs", "a", "b")
    assert equal.returncode == 0, equal.stdout + equal.stderr
    table = [line.split() for line in equal.stdout.splitlines()]
    assert table[0] == ["module", "class", "inputs", "outputs", "grad", "of", "grad", "of"]
    assert table[2:] == [
        ["0", "Linear", "0", "0", "0", "-"],
        ["1", "GELU", "0", "0", "0", "0"],
        ["2", "LayerNorm", "0", "0", "0", "0"],
        ["3", "Linear", "0", "0", "0", "0"],
        ["(model)", "Sequential", "0", "0", "0", "-"],
        [],
        ["equal", "but", "for", "rounding"],
    ]
    bad = command("run", "train.py", "--record", "c", "--modules", "--iterations", "2", "--", "--bad")
    assert bad.returncode == 0, bad.stderr
    nothing = command("compare-runs", "a", "c", "--json", "found.json")
    assert nothing.returncode == 1 and "only A: 0 (run 1), 1 (run 1), 2 (run 1), 3 (run 1)\n" in nothing.stdout
    told = json.loads((tmp_path / "found.json").read_text())
    assert told["first"]["kind"] == "forward" and told["first"]["module"] == ""


def test_wrong_usage(command):
    without = command("run", "train.py", "--modules")
    assert without.returncode == 2
    text = "modules are recorded with --record DIR --modules, and --fix-inputs goes with these"
    assert without.stderr.splitlines()[-1] == f"Error: {text}"
    assert command("run", "train.py", "--record", "a", "--fix-inputs", ".").stderr.splitlines()[-1] == f"Error: {text}"
    none = command("run", "train.py", "--record", "a", "--modules", "--fix-inputs", ".")
    assert none.returncode == 2 and ". holds no recording; make one with" in none.stderr
    assert command("run", "train.py", "--record", "a").returncode == 0
    assert command("run", "train.py", "--record", "b", "--modules").returncode == 0
    mixed = command("compare-runs", "a", "b")
    assert mixed.returncode == 2
    assert mixed.stderr == "op-tools: only one of a and b is of modules; record both with --modules, or both without\n"


@pytest.mark.usefixtures("libraries")
def test_runs_on_the_cpu_and_on_dipu_are_equal(command):
    for device in ("cpu", "dipu"):
        done = command("run", "train.py", "--record", device, "--modules", "--", device)
        assert done.returncode == 0, done.stderr
    found = command("compare-runs", "cpu", "dipu")
    assert found.returncode == 0, found.stdout + found.stderr
    fixed = command(
        "run", "train.py", "--record", "alone", "--modules", "--fix-inputs", "cpu", "--", "dipu",
    )  # fmt: skip
    assert fixed.returncode == 0 and "not fixed" not in fixed.stdout, fixed.stderr + fixed.stdout
    assert command("compare-runs", "cpu", "alone").returncode == 0


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    (found,) = recordings(record(tmp_path))
    found.path.write_bytes(found.path.read_bytes()[:-20])
    assert len(read_recording(found.path).lines) == len(found.lines) - 1

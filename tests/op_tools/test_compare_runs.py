"""Two recorded runs: clean ones are equal whatever operators they are made of, and of others the first wrong call is
named."""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import op_tools
from op_tools.runs.comparison import CannotCompare, Compared, compared
from op_tools.runs.render import lines
from op_tools.store.recording import BadRecording, read_recording, recordings
from tests.op_tools.faulty import Fault, Faulty, wrong_value


class Attention(nn.Module):
    """Two layers of attention with rotated keys, a buffer that is written by index, an in-place sum and dropout."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(13, 16)
        self.layers = nn.ModuleList(Layer(dropout) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 13)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Layer(nn.Module):
    copies = 0  # what a run copies more

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(16, 16) for _ in range(4))
        self.gate, self.up, self.down = nn.Linear(16, 32), nn.Linear(16, 32), nn.Linear(32, 16)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(Layer.copies):
            x = x.clone()
        n, t, width = x.shape
        q, k, v = (f(x).view(n, t, 2, 8).transpose(1, 2) for f in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(mixed.transpose(1, 2).reshape(n, t, width))
        y = self.dropout(self.down(F.silu(self.gate(x)) * self.up(x)))
        kept = torch.zeros_like(y)
        kept.index_put_((torch.arange(n), torch.zeros(n, dtype=torch.int64)), torch.tensor(0.5))
        return y.add_(kept).add(x)


def adamw(**options: Any) -> Callable[[nn.Module], torch.optim.Optimizer]:
    return lambda model: torch.optim.AdamW(model.parameters(), lr=1e-2, **options)


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to compute the same: which operators it is made of."""

    optimizer: Callable[[nn.Module], torch.optim.Optimizer] = field(default_factory=lambda: adamw(foreach=False))
    math: bool = False  # attention by single operators
    copies: int = 0
    dropout: float = 0.0
    seed: int = 7  # of what is random in training


LOOP, LIST, FUSED = Way(), Way(optimizer=adamw(foreach=True)), Way(optimizer=adamw(fused=True))
MATH, COPIES = Way(math=True), Way(copies=2)


def record(folder: Path, way: Way, *faults: Faulty, steps: int = 2, whole: int = 1 << 16) -> Path:
    """Trains the model one way on a chip with faults."""
    torch.manual_seed(3)
    model, tokens, classes = Attention(way.dropout), torch.randint(13, (3, 6)), torch.randint(13, (18,))
    optimizer = way.optimizer(model)
    torch.manual_seed(way.seed)
    with ExitStack() as stack:
        for fault in faults:
            stack.enter_context(fault)
        stack.enter_context(copies(way.copies))
        if way.math:
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        stack.enter_context(op_tools.OpRecord(".*", folder=folder, whole=whole))
        for _ in range(steps):
            optimizer.zero_grad()
            F.cross_entropy(model(tokens).view(-1, 13), classes).backward()
            optimizer.step()
    return folder


@contextmanager
def copies(count: int) -> Iterator[None]:
    Layer.copies, before = count, Layer.copies
    try:
        yield
    finally:
        Layer.copies = before


def only(a: Path, b: Path) -> Compared:
    (found,) = compared(a, b)
    return found


WAYS = {"list": LIST, "fused": FUSED, "math": MATH, "copies": COPIES}


MORE = pytest.mark.deep("matrix", "two of the ways by whole tensors, and one of them by sketches")
FEW = (("list", 0), ("list", 1 << 16), ("copies", 1 << 16))
COMPARED = [pair if pair in FEW else pytest.param(*pair, marks=MORE) for pair in itertools.product(WAYS, (0, 1 << 16))]


@pytest.mark.parametrize(("name", "whole"), COMPARED)
def test_runs_of_other_operators_are_equal(tmp_path, name, whole):
    a, b = (record(tmp_path / name, way, steps=3, whole=whole) for name, way in (("a", LOOP), ("b", WAYS[name])))
    found = only(a, b)
    assert found.divergence is None, "\n".join(lines([found]))
    assert found.paired > 250 and (found.steps[0] != found.steps[1] or name == "list")


def nothing(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """It gives what it should write, and does not write it."""
    return args[0] if func._schema.returns else None


def nan(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    result = func(*args, **kwargs)
    result.view(-1)[5] = float("nan")
    return result


def first_wrong(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The first of several results is off."""
    results = func(*args, **kwargs)
    results[0][(0,) * (results[0].dim() - 1)][3] += 0.01
    return results


def wider(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return func(*args, **kwargs).double()


def first_parameter_left(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A fused step that forgets one parameter."""
    kept = args[0][4].clone()
    func(*args, **kwargs)
    args[0][4].copy_(kept)


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A fault of one of two runs, and what is to be said of it."""

    a: Way = LOOP
    b: Way
    operator: str  # the faulty one
    fault: Fault
    call: int = 1
    kind: str = "wrong"
    phase: str = "forward"
    module: str = "layers.0"
    says: str


PLANTED = {
    "forward": Planted(
        b=MATH, operator="aten.silu.default", fault=wrong_value, call=2, module="layers.1", says="result[2, 5, 31] is"
    ),
    "forward of the run with more copies": Planted(
        b=COPIES, operator="aten.silu.default", fault=wrong_value, says="result[2, 5, 31] is"
    ),
    "backward": Planted(
        b=LIST, operator="aten.silu_backward.default", fault=wrong_value, phase="backward", module="layers.1", says="["
    ),
    "backward beside other attention": Planted(
        b=MATH,
        operator="aten.native_layer_norm_backward.default",
        fault=first_wrong,
        phase="backward",
        module="norm",
        says="result[0][0, 0, 3] is",
    ),
    "optimizer's loop beside lists": Planted(
        a=LIST,
        b=LOOP,
        operator="aten.addcdiv_.default",
        fault=wrong_value,
        call=9,
        phase="optimizer",
        module="",
        says="self",
    ),
    "optimizer's state in a list": Planted(
        b=LIST,
        operator="aten._foreach_lerp_.Scalar",
        fault=lambda func, args, kwargs: (func(*args, **kwargs), args[0][2].view(-1)[0].add_(0.01))[0],
        phase="optimizer",
        module="",
        says="self[2]",
    ),
    "fused optimizer forgets a parameter": Planted(
        b=FUSED,
        operator="aten._fused_adamw_.default",
        fault=first_parameter_left,
        call=2,
        phase="optimizer",
        module="",
        says="self[4]",
    ),
    "in place": Planted(b=MATH, operator="aten.add_.Tensor", fault=wrong_value, says="self[2, 5, 15] is"),
    "in place, nothing written": Planted(
        b=COPIES, operator="aten.add_.Tensor", fault=nothing, says="(48 of 288 are wrong: equal to 'self')"
    ),
    "indexed write": Planted(
        b=COPIES, operator="aten.index_put_.default", fault=nothing, says="self[0, 0, 0] is 0, expected 0.5"
    ),
    "NaN": Planted(b=MATH, operator="aten.silu.default", fault=nan, says="is nan"),
    "dtype": Planted(
        a=LIST,
        b=LOOP,
        operator="aten.sqrt.default",
        fault=wider,
        phase="optimizer",
        module="",
        says="result is of torch.float64, expected torch.float32",
    ),
    "fused attention": Planted(
        a=MATH, b=LOOP, operator="aten._scaled_dot_product_flash_attention_for_cpu.default", fault=first_wrong, says="["
    ),
    "one operator of attention": Planted(b=MATH, operator="aten._safe_softmax.default", fault=wrong_value, says="["),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_divergence_is_named(tmp_path, name):
    planted = PLANTED[name]
    a = record(tmp_path / "a", planted.a)
    b = record(tmp_path / "b", planted.b, Faulty(planted.operator, planted.fault, only=planted.call))
    found = only(a, b)
    text = "\n".join(lines([found]))
    assert found.steps[0] != found.steps[1] or LIST in (planted.a, planted.b), "the runs are of as many operators"
    parted = found.divergence
    assert parted is not None, text
    assert (parted.step.operator, parted.kind, parted.run) == (planted.operator, planted.kind, "B"), text
    assert (parted.step.phase, parted.step.line["module"]) == (planted.phase, planted.module), text
    assert planted.says in parted.reason and parted.step.line["location"].startswith("test_compare_runs.py:"), text
    calls = [line for line in parted.step.run.of("call") if line["operator"] == planted.operator]
    assert calls[planted.call - 1] is parted.step.line


def test_the_run_that_is_wrong_is_named_whichever_it_is(tmp_path):
    a = record(tmp_path / "a", MATH, Faulty("aten.silu.default", wrong_value))
    parted = only(a, record(tmp_path / "b", FUSED)).divergence
    assert parted is not None and (parted.step.operator, parted.run) == ("aten.silu.default", "A")


def test_another_seed_of_one_random_operator_is_named(tmp_path):
    a = record(tmp_path / "a", Way(dropout=0.5))
    b = record(tmp_path / "b", Way(dropout=0.5, seed=8, math=True))
    parted = only(a, b).divergence
    assert parted is not None and parted.kind == "random" and parted.step.line["module"] == "layers.0.dropout"
    assert "by another seed, generator or order of draws" in parted.reason


def test_the_same_seed_is_no_divergence(tmp_path):
    a, b = record(tmp_path / "a", Way(dropout=0.5)), record(tmp_path / "b", Way(dropout=0.5, copies=1))
    assert only(a, b).divergence is None


def test_an_argument_that_differs_is_named(tmp_path):
    a = record(tmp_path / "a", LIST)
    b = record(
        tmp_path / "b", Way(optimizer=lambda model: torch.optim.AdamW(model.parameters(), lr=2e-2, foreach=False))
    )
    parted = only(a, b).divergence
    assert parted is not None and parted.kind == "arguments" and parted.step.phase == "optimizer"
    assert parted.reason == "scalar is 0.9999 in A and 0.9998 in B"


def test_an_update_that_only_one_run_makes_is_named(tmp_path):
    def frozen(model):
        model.layers[1].up.bias.requires_grad_(False)
        return torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)

    a, b = record(tmp_path / "a", LOOP), record(tmp_path / "b", Way(optimizer=frozen))
    parted = only(a, b).divergence
    assert parted is not None and parted.kind == "missing" and parted.run == "A", parted
    assert "layers.1.up.bias" in parted.reason


def test_other_data_are_named(tmp_path):
    for name, value in (("a", 1.0), ("b", 2.0)):
        x = torch.tensor([value, 3.0])
        with op_tools.OpRecord(folder=tmp_path / name):
            x.exp().sum()
    parted = only(tmp_path / "a", tmp_path / "b").divergence
    assert parted is not None and parted.kind == "input" and parted.step.operator == "aten.exp.default"
    assert (
        parted.reason.startswith("self [0] is 1 in A and 2 in B") and "the program's own data differ" in parted.reason
    )


def test_memory_that_changes_behind_the_calls_is_told(tmp_path):
    for name in "ab":
        with op_tools.OpRecord(folder=tmp_path / name):
            x = torch.ones(3).mul(2)
            if name == "b":
                x.numpy()[1] = 7.0
            x.exp()
    parted = only(tmp_path / "a", tmp_path / "b").divergence
    assert parted is not None and (parted.kind, parted.step.operator) == ("changed", "aten.exp.default")
    assert "no recorded call wrote it" in parted.reason


def test_large_tensors_are_told_apart_by_sketches(tmp_path):
    a = record(tmp_path / "a", LOOP, whole=0)
    b = record(tmp_path / "b", COPIES, Faulty("aten.silu.default", wrong_value), whole=0)
    parted = only(a, b).divergence
    assert parted is not None and (parted.kind, parted.step.operator) == ("differs", "aten.silu.default")
    assert parted.gap is not None and parted.gap.index == (2, 5, 31) and abs(parted.gap.worst - 0.01) < 1e-4


SCRIPT = """\
import os, sys
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach="--list" in sys.argv)
x = torch.randn(3, 4)
for step in range(2):
    optimizer.zero_grad()
    y = model(x)
    if "--wrong" in sys.argv and os.environ.get("RANK") == "1" and step:
        y.data[0, 0] += 0.25
    y.square().sum().backward()
    optimizer.step()
"""


@pytest.fixture
def command(tmp_path, run_python) -> Callable[..., subprocess.CompletedProcess[str]]:
    (tmp_path / "train.py").write_text(SCRIPT)
    return partial(run_python, "-m", "op_tools")


def test_one_rank_of_two_that_differs_is_named(command, tmp_path):
    for rank in "01":
        assert command("run", "train.py", "--record", "a", RANK=rank).returncode == 0
        assert command("run", "train.py", "--record", "b", "--", "--list", "--wrong", RANK=rank).returncode == 0
    found = command("compare-runs", "a", "b", "--json", "found.json")
    assert found.returncode == 1, found.stdout + found.stderr
    assert (
        "first divergence on rank 1: torch.Tensor.sum (aten.sum.default), in A and B: self [0, 0] is " in found.stdout
    )
    assert "the calls before it are others, each right by itself" in found.stdout
    assert (
        "between: torch.Tensor.add_ (aten.add_.Tensor), call 24, 1st of this operator, at train.py:12" in found.stdout
    )
    told = json.loads((tmp_path / "found.json").read_text())
    assert [one["divergence"] is None for one in told["processes"]] == [True, False]
    assert told["first"]["call"]["rank"] == 1 and told["first"]["call"]["location"] == "train.py:13"
    again = command("run", "train.py", "--record", "a", RANK="0")
    assert again.returncode == 2 and "is of another run; name another folder, or remove a" in again.stderr


def test_exit_codes(command, tmp_path):
    assert command("run", "train.py", "--record", "a").returncode == 0
    assert command("run", "train.py", "--record", "b", "--", "--list").returncode == 0
    equal = command("compare-runs", "a", "b")
    assert equal.returncode == 0 and "equal but for rounding" in equal.stdout, equal.stdout
    empty = command("compare-runs", "a", ".")
    assert empty.returncode == 2
    assert empty.stderr == "op-tools: . holds no recording; make one with `op-tools run SCRIPT --record .`\n"


def test_runs_of_nothing_in_common_are_refused(tmp_path):
    with op_tools.OpRecord(folder=tmp_path / "a"):
        torch.ones(3).exp()
    with op_tools.OpRecord(folder=tmp_path / "b"):
        torch.zeros(2, 2).sin()
    with pytest.raises(CannotCompare, match="have no call in common: are they runs of one program"):
        compared(tmp_path / "a", tmp_path / "b")


def test_what_a_killed_process_has_recorded_is_readable(tmp_path):
    program = (
        "import torch, op_tools\n"
        "x = torch.randn(500)\n"
        f"with op_tools.OpRecord(folder=r'{tmp_path}'):\n"
        "    while True: x = x * 1.001 + 1"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    )
    try:
        while len(list(tmp_path.glob("memory/*.safetensors"))) < 40 and process.poll() is None:
            pass
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    (found,) = recordings(tmp_path)
    assert len(found.lines) >= 20
    text = found.path.read_bytes()
    found.path.write_bytes(text[:-30])
    assert len(read_recording(found.path).lines) in (len(found.lines), len(found.lines) - 1)
    found.path.write_bytes(text.replace(b"\n", b"\nno\n", 1))
    with pytest.raises(BadRecording, match=r"\.jsonl:2: "):
        read_recording(found.path)

"""The search for the operator that breaks a run: as an algorithm, and on a chip with planted faults."""

import math
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from op_tools.bisect.metric import parting, series
from op_tools.bisect.search import culprits
from tests.torch import faulty_vendor


@given(st.integers(1, 200), st.data())
def test_a_single_culprit_is_found_in_logarithmic_time(count, data):
    guilty = data.draw(st.integers(0, count - 1))
    runs = []

    def is_bad(some):
        runs.append(some)
        return str(guilty) in some

    assert culprits([str(i) for i in range(count)], is_bad) == [str(guilty)]
    assert len(runs) <= math.ceil(math.log2(count)) + 1


@given(st.integers(2, 40), st.data())
def test_of_several_culprits_one_is_found(count, data):
    guilty = {str(i) for i in data.draw(st.sets(st.integers(0, count - 1), min_size=2, max_size=5))}
    assert set(culprits([str(i) for i in range(count)], lambda some: bool(guilty & set(some)))) <= guilty


@given(st.integers(2, 40), st.data())
def test_what_is_bad_only_together_is_named_together(count, data):
    pair = {str(i) for i in data.draw(st.sets(st.integers(0, count - 1), min_size=2, max_size=2))}
    assert set(culprits([str(i) for i in range(count)], lambda some: pair <= set(some))) == pair


@given(st.integers(2, 100), st.data())
def test_a_fault_that_shows_at_times_only_is_found(count, data):
    guilty = str(data.draw(st.integers(0, count - 1)))
    hidden = data.draw(st.lists(st.booleans(), max_size=count))
    shown = {"in turn": 0}

    def is_bad(some):
        """Bad every second time at the latest."""
        if guilty not in some:
            return False
        shown["in turn"] += 1
        return shown["in turn"] % 2 == 0 or (bool(hidden) and hidden.pop())

    found = culprits([str(i) for i in range(count)], is_bad, trials=2)
    assert found == [guilty]


def test_a_search_ends_at_what_is_known_to_be_bad_without_a_run():
    runs = []

    def is_bad(some):
        runs.append(some)
        return False

    assert culprits(["a", "b"], is_bad, lambda operator: operator == "b") == ["b"] and runs == [["a"]]


def test_a_metric_is_read_as_scripts_print_it():
    text = "step 1 loss 0.5\n{'loss': 2.5e-1} LOSS=nan, loss: -3 glossy 7 losses 8\n"
    found = series(text, "loss")
    assert found[:2] == [0.5, 0.25] and math.isnan(found[2]) and found[3:] == [-3.0]


@pytest.mark.parametrize(
    ("good", "bad", "step"),
    [
        ([1.0, 2.0], [1.0, 2.0], None),
        ([1.0, 2.0], [1.0005, 2.0], None),
        ([1.0, 2.0], [1.0, 2.1], 1),
        ([1.0, 2.0], [1.0], 1),
        ([1.0, 2.0], [float("nan"), 2.0], 0),
        ([float("nan")], [float("nan")], None),
        ([float("inf")], [float("inf")], None),
        ([0.0], [1e-9], 0),
    ],
)
def test_where_two_runs_part(good, bad, step):
    found = parting(good, bad, 1e-3)
    assert (None if found is None else found.step) == step


SCRIPT = """\
import ctypes, os
import torch
import torch_dipu

torch_dipu.start()
ctypes.CDLL(os.environ["DIPU_VENDOR_LIBRARY"]).plant(os.environ["PLANTED"].encode())
torch.manual_seed(0)
layers = [torch.nn.Embedding(9, 8), torch.nn.Linear(8, 8), torch.nn.SiLU(), torch.nn.Linear(8, 8), torch.nn.ReLU()]
model = torch.nn.Sequential(*layers, torch.nn.Linear(8, 4)).to("dipu")
tokens, classes = torch.randint(9, (16,)).to("dipu"), torch.randint(4, (16,)).to("dipu")
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
for step in range(4):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(tokens) * 2, classes)
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item(), flush=True)
"""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory, libraries):
    """A vendor library in which a function can be made wrong."""
    if not (libraries / "libdiopi_impl.so").exists():
        pytest.skip("droplet is not built")
    return faulty_vendor.build(tmp_path_factory.mktemp("faulty"), libraries)


@pytest.fixture
def bisect(tmp_path, run_python, faulty) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(planted: str, *words: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "train.py").write_text(SCRIPT)
        command = ("-m", "op_tools", "bisect", "train.py", "--bad", "dipu", "--folder", "found", *words)
        return run_python(*command, timeout=500, DIPU_VENDOR_LIBRARY=str(faulty), PLANTED=planted)

    return run


GRADIENT = pytest.mark.deep("mutants", "a fault in a gradient, which is named and repeated the same way")


@pytest.mark.parametrize(
    ("planted", "operator"),
    [
        pytest.param("diopiSilu", "aten.silu.default", marks=GRADIENT),
        ("diopiLinearBackward", "aten.linear_backward.default"),
    ],
)
def test_a_planted_fault_is_named_with_a_program_that_repeats_it(bisect, tmp_path, planted, operator):
    found = bisect(planted)
    assert found.returncode == 1, found.stdout + found.stderr
    lines = found.stdout.splitlines()
    assert f"culprit: {operator}" in lines, found.stdout
    counts = next(line for line in lines if "operators on dipu" in line).split()
    runs, operators = int(counts[0]), int(counts[2])
    assert runs <= math.ceil(math.log2(operators)) + 3
    assert planted in lines[-2] and "expected" in lines[-2]
    program = tmp_path / lines[-1].removeprefix("reproduce: python ")
    assert "from op_tools.bisect.reproduction import repeated" in program.read_text()


@pytest.mark.deep("mutants", "a wrong result, which is planted, named and repeated the same way")
@pytest.mark.parametrize(
    ("operator", "kind"), [("aten.tanh.default", "stale output"), ("aten.abs.default", "input clobbered")]
)
def test_a_planted_fault_of_another_kind_is_named_and_repeated(faulty, operator, kind):
    from tools.op_faults.__main__ import bisected

    outcome = bisected(operator, kind)
    assert outcome.good, outcome.line + outcome.text


@pytest.mark.deep("mutants", "the search as an algorithm, and a fault that it names")
def test_a_run_without_a_fault_is_told_so(bisect):
    found = bisect("")
    assert (
        found.returncode == 0
        and "'loss' is the same on dipu as with every operator on the cpu, in 5 runs" in found.stdout
    )


def test_a_script_without_the_metric_is_told_so(bisect):
    found = bisect("", "--metric", "accuracy")
    assert found.returncode == 2 and "train.py on the CPU printed no 'accuracy' (exit code 0)" in found.stderr

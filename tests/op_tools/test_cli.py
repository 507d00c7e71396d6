"""The command op-tools, as people type it."""

from functools import partial
from itertools import cycle
from pathlib import Path

import pytest

import op_tools

SCRIPT = """\
import sys
import torch

torch.manual_seed(0)
layer = torch.nn.Linear(4, 2)
loss = layer(torch.randn(3, 4)).square().sum()
loss.backward()
if "--nan" in sys.argv:
    torch.zeros(1).log()
print("script", *sys.argv[1:])
sys.exit(3 if "--fail" in sys.argv else 0)
"""


@pytest.fixture
def run(tmp_path, run_python):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    return partial(run_python, "-m", "op_tools")


def test_a_script_is_captured_and_replayed(run):
    found = run("run", "train.py", "--capture", "--per-operator", "5", "--", "--steps", "1")
    assert found.returncode == 0, found.stderr
    assert "script --steps 1" in found.stdout and "calls of" in found.stdout.splitlines()[-1]
    again = run(
        "replay", "op_tools_results/op_capture_results", "--device", "cpu", "--acc-check", "--only", "aten.addmm"
    )
    assert again.returncode == 0, again.stdout + again.stderr
    assert again.stdout.splitlines()[-1] == "1 calls on cpu: 1 equal"
    assert "torch.nn.functional.linear: equal" in again.stdout


def test_a_script_is_compared_timed_and_observed(run):
    found = run("run", "train.py", "--compare", "--time", "--observe", "aten.addmm")
    assert found.returncode == 0, found.stderr
    assert ", 0 wrong" in found.stdout and "aten.addmm.default" in found.stdout and "p95 ms" in found.stdout


def test_captures_run_under_the_established_name_and_options(run, run_python):
    """As a module and as a script."""
    starts = cycle(
        [("-m", "op_tools.run_op_from_data"), (str(Path(op_tools.__file__).parent / "run_op_from_data.py"),)]
    )
    assert run("run", "train.py", "--capture", "--folder", "captures").returncode == 0

    def again(*words: str) -> list[str]:
        found = run_python(*next(starts), "captures", "--device", "cpu", *words)
        assert found.returncode == 0, found.stdout + found.stderr
        return found.stdout.splitlines()

    everything, forward = again("--acc_check"), again("--only_run_forward")
    backward = [sum("Tensor.backward" in line for line in lines) for lines in (everything, forward)]
    assert backward[0] > 3 and backward[1] == 1  # the first gradient is made before the graph runs
    assert len(forward) < len(everything) and any("torch.nn.functional.linear: equal" in line for line in forward)
    timed = again("--run_times", "3", "--only_run_forward")
    assert all("ms of 3" in line for line in timed[:-1])
    assert all("ms of 100" in line for line in again("--sync_time_measure", "--only", "aten.addmm")[:-1])


def test_exit_codes(run):
    assert run("run", "train.py", "--observe=aten.mm", "--", "--fail").returncode == 3
    overflow = run("run", "train.py", "--overflow", "--", "--nan")
    assert overflow.returncode == 1 and "overflow: 1 calls gave infinities or NaN" in overflow.stdout
    broken = run("run", "broken.py", "--observe=aten.mm")
    assert broken.returncode == 1 and "in <module>\n    1 / 0\n" in broken.stderr
    assert broken.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    unwritable = run("run", "train.py", "--capture", "--folder", "train.py/captures")
    assert unwritable.returncode == 2 and unwritable.stderr.endswith("cannot be written: Not a directory\n")
    none = run("run", "train.py")
    assert none.returncode == 2 and "name a tool: --observe, --capture" in none.stderr
    missing = run("replay", "nowhere")
    assert missing.returncode == 2 and missing.stderr == "op-tools: nowhere holds no captures\n"


def test_help_teaches(run):
    found = run("run", "--help")
    assert "op-tools run train.py --compare -- --steps 3" in found.stdout and Path("train.py").name in found.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--time", "--total", "100"), "--total is for --capture"),
        (("--time", "--stop"), "--stop is for --compare and --overflow"),
        (("--compare", "--iterations", "2"), "--iterations is for --modules"),
    ],
)
def test_an_option_that_no_tool_reads_is_refused(run, words, said):
    found = run("run", "train.py", *words)
    assert (found.returncode, found.stdout, found.stderr.splitlines()[-1]) == (2, "", f"Error: {said}")

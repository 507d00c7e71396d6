"""A program in a fork of an interpreter that has torch is what it is in an interpreter of its own."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.processes import run_python, run_warm

TELLS = """
import atexit, os, sys
import torch
atexit.register(print, "the end")
print(__name__, sys.argv, os.getcwd(), os.environ.get("TOLD"), sys.path[0])
print("to the other", file=sys.stderr)
"""
WITHOUT_BACKENDS = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


def both(*words: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """What the fork says, which is what the interpreter says."""
    alone = run_python(*words, folder=folder, **WITHOUT_BACKENDS, **variables)
    warm = run_warm(*words, folder=folder, **WITHOUT_BACKENDS, **variables)
    assert (warm.returncode, warm.stdout, warm.args) == (alone.returncode, alone.stdout, alone.args)
    assert warm.stderr.splitlines()[-1:] == alone.stderr.splitlines()[-1:]
    return warm


@pytest.mark.parametrize("words", [("tells.py", "a", "b"), ("-m", "tells", "a"), ("-c", TELLS, "a")])
def test_it_is_called_as_it_would_be(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    assert "the end\n" in both(*words, folder=tmp_path, TOLD="yes").stdout


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("import sys; sys.exit(3)", 3),
        ("raise ValueError('no')", 1),
        ("import os; os.abort()", -signal.SIGABRT),
        ("import sys; sys.exit('a sentence')", 1),
    ],
)
def test_it_ends_as_it_would(tmp_path: Path, program: str, status: int) -> None:
    assert both("-c", program, folder=tmp_path).returncode == status


def test_one_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    run_warm("-c", "import os, torch; os.environ['LEFT'] = '1'; torch.left = 1", **WITHOUT_BACKENDS)
    both("-c", "import os, torch; print('LEFT' in os.environ, hasattr(torch, 'left'))", folder=tmp_path)


def test_one_that_hangs_is_ended() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_warm("-c", "import time; time.sleep(60)", timeout=1, **WITHOUT_BACKENDS)
    assert run_warm("-c", "print(1)", **WITHOUT_BACKENDS).stdout == "1\n"


def test_what_counts_while_torch_is_imported_gets_an_interpreter_of_its_own(tmp_path: Path) -> None:
    program = "import torch; print(torch.get_num_threads())"
    assert both("-c", program, folder=tmp_path, OMP_NUM_THREADS="1").stdout == "1\n"

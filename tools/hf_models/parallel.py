"""Runs models in processes of their own, several at a time; a crash or an endless loop costs one model."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tools.hf_models.outcome import Outcome

_ROOT = Path(__file__).resolve().parents[2]


def run_models(models: Sequence[str], options: Sequence[str], jobs: int, timeout: float) -> Iterator[Outcome]:
    """The outcomes as they come; `timeout` is in seconds and for one model."""
    with ThreadPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(_run, model, options, timeout) for model in models]):
            yield done.result()


def _run(model: str, options: Sequence[str], timeout: float) -> Outcome:
    command = [sys.executable, "-m", "tools.hf_models.child", model, *options]
    try:
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return Outcome(model=model, error=f"not done after {timeout:.0f} s")
    if done.returncode == 0:
        return Outcome(model=model, result=json.loads(done.stdout.splitlines()[-1]))
    if done.returncode < 0:
        return Outcome(model=model, error=f"ended by signal {-done.returncode}")
    return Outcome(model=model, error=_error_line(done.stderr) or f"ended with {done.returncode}")


def _error_line(stderr: str) -> str:
    """The line of a traceback that names the exception, and the next where the message begins only there.

    torch puts a C++ stack behind it.
    """
    lines = stderr.splitlines()
    frames = [number for number, line in enumerate(lines) if line.startswith("  ")]
    rest = [line for line in lines[frames[0] if frames else 0 :] if line and not line.startswith(" ")]
    return " ".join(rest[:2] if rest and rest[0].endswith(": ") else rest[:1])

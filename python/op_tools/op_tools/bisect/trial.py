"""One run of a script under tools, in a process of its own, and what came of it."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from op_tools import environment
from op_tools.bisect.metric import series


class BrokenRun(RuntimeError):
    """The script failed where it should not; the text has its last lines."""


@dataclass(slots=True, kw_only=True)
class Script:
    """What is run, and how often it was."""

    path: Path
    args: tuple[str, ...]
    metric: str
    timeout: float | None = None  # seconds of one run
    runs: int = field(default=0)

    def with_fallback(self, *, but: Sequence[str]) -> tuple[list[float], dict[str, Any]]:
        """The metric, and the record of the tools, of a run whose operators are on the CPU but for some.

        Raises BrokenRun where it prints no metric.
        """
        lists = {environment.DISABLE_LIST.format("FALLBACK"): ",".join(_exactly(name) for name in but)}
        return self._run(["--fallback", ".*"], lists, must_end=not but)

    def plain(self) -> list[float]:
        """The metric of a run on the device; empty where it ends before the first value."""
        return series(self._done([sys.executable, str(self.path), *self.args], {}).stdout, self.metric)

    def compared(self, operators: Sequence[str], folder: Path) -> list[dict[str, Any]]:
        """The mismatches of some operators with the CPU; their calls are captured in `folder`."""
        names = ",".join(map(_exactly, operators))
        words = ["--compare", names, "--folder", str(folder), "--per-operator", "3"]
        found: list[dict[str, Any]] = self._run(words, {}, must_end=False)[1].get("compare", {}).get("mismatches", [])
        return found

    def _run(self, words: list[str], lists: dict[str, str], *, must_end: bool) -> tuple[list[float], dict[str, Any]]:
        with tempfile.TemporaryDirectory() as folder:
            record = Path(folder) / "record.json"
            command = [sys.executable, "-m", "op_tools", "run", str(self.path), *words, "--json", str(record)]
            done = self._done([*command, "--", *self.args], lists)
            values = series(done.stdout, self.metric)
            if must_end and not values:
                last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
                raise BrokenRun(
                    f"{self.path} on the CPU printed no '{self.metric}' (exit code {done.returncode}):\n{last}"
                )
            return values, json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}

    def _done(self, command: list[str], lists: dict[str, str]) -> subprocess.CompletedProcess[str]:
        self.runs += 1
        return subprocess.run(
            command,
            env={**os.environ, **lists},
            capture_output=True,
            text=True,
            timeout=self.timeout,
            check=False,
        )


def _exactly(name: str) -> str:
    return name.replace(".", r"\.")

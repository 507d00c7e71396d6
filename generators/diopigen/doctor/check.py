"""What the doctor says of one thing that a target needs."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class State(Enum):
    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"  # there, but of another version, or broken
    STALE = "stale"  # made from older sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the report."""

    target: str  # what it is for, e.g. "build", "vendor droplet"
    what: str  # e.g. "cmake"
    state: State
    found: str  # e.g. "3.31.2", "not found"
    wanted: str  # e.g. "3.21 or later"; empty: anything
    remedy: str  # the command that fixes it, or a sentence; empty where nothing is to be done
    needed: bool = True  # False: the target does without it

    @property
    def failed(self) -> bool:
        return self.needed and self.state in (State.MISSING, State.WRONG)


def search_path() -> str:
    """Where a build finds its tools: beside this Python first, as pip puts them there."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"


def answer(*command: str, text: str = "", environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """The exit status of a program and what it printed; 127 if it cannot be run, 124 if it does not end."""
    environ = {**os.environ, "PATH": search_path(), "LC_ALL": "C", **(environment or {})}
    try:
        done = subprocess.run(
            command, input=text, env=environ, capture_output=True, text=True, timeout=120, errors="replace", check=False
        )
    except subprocess.TimeoutExpired:
        return 124, f"{command[0]} did not end in two minutes"
    except OSError as error:
        return 127, str(error.strerror)
    return done.returncode, done.stdout + done.stderr


def shown_python(root: Path) -> str:
    """This Python as it is called from the checkout, e.g. ".venv/bin/python"."""
    path = Path(sys.executable)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)

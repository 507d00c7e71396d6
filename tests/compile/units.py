"""Every unit of C++ of a build, with the flags that CMake gives it for a compiler."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.built import ROOT

_CROSS = ("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64")


@dataclass(frozen=True, slots=True)
class Unit:
    """A source, and the command that compiles it, run in `folder`; its object is not wanted."""

    source: Path
    folder: Path
    command: tuple[str, ...]

    @property
    def name(self) -> str:
        """e.g. "runtime_cpp/adaptor/call.cpp"."""
        return os.path.relpath(self.source, ROOT)

    def complaint(self, *flags: str) -> str:
        """What the compiler says against it; "" if nothing."""
        done = subprocess.run(
            [*self.command, *flags], cwd=self.folder, capture_output=True, text=True, check=False, timeout=1200
        )
        return done.stderr if done.returncode or done.stderr else ""


def units(compiler: str, folder: Path, *settings: str) -> tuple[Unit, ...]:
    """Those of a build by `compiler`, configured into `folder`; AssertionError with CMake's words if it cannot."""
    command = [
        "cmake",
        "-S",
        str(ROOT),
        "-B",
        str(folder),
        "-G",
        "Ninja",
        f"-DCMAKE_CXX_COMPILER={compiler}",
        *settings,
    ]
    command += [
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON",
        "-DCMAKE_COLOR_DIAGNOSTICS=OFF",
    ]
    command += [f"-DPython_EXECUTABLE={sys.executable}", *(_CROSS if compiler.startswith("aarch64") else ())]
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    entries = json.loads((folder / "compile_commands.json").read_text(encoding="utf-8"))
    return tuple(
        Unit(Path(entry["file"]), Path(entry["directory"]), _without_object(entry["command"])) for entry in entries
    )


def _without_object(command: str) -> tuple[str, ...]:
    words = shlex.split(command)
    place = words.index("-o")
    return (*words[:place], *words[place + 2 :])


def complaints(found: Iterable[Unit], *flags: str) -> str:
    """What the compiler says against them, by their names."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        told = pool.map(lambda unit: (unit.name, unit.complaint(*flags)), found)
        return "\n".join(f"{name}:\n{text}" for name, text in told if text)


def sample(found: Sequence[Unit], *ends: str) -> tuple[Unit, ...]:
    """For each ending the first unit whose name has it; StopIteration if there is none."""
    return tuple(next(unit for unit in found if unit.name.endswith(end)) for end in ends)

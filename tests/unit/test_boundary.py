"""Every command of the three programs ends with a code of docs/exit-codes.md, and with one line where it fails."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from diopigen.atomic import write_text
from diopigen.boundary import Program
from diopigen.project import Project
from tests.unit.commands.test_doctor import ENTRY

PROGRAMS = ("diopigen", "diopi_conformance", "op_tools")


class Refusal(Exception):
    pass


class Own(Program):
    refusals = (Refusal,)


def ended(action: Callable[[], object]) -> Result:
    @click.group(cls=Own)
    def program() -> None: ...

    program.command("act")(action)
    return CliRunner().invoke(program, ["act"], prog_name="program")


def failing(error: BaseException) -> Callable[[], object]:
    def act() -> None:
        raise error

    return act


@pytest.mark.parametrize(
    ("action", "code", "says"),
    [
        (lambda: None, 0, ""),
        (lambda: sys.exit(1), 1, ""),
        (lambda: click.get_current_context().exit(1), 1, ""),
        (failing(click.UsageError("no such file")), 2, "Error: no such file\n"),
        (failing(click.ClickException("no clang")), 2, "Error: no clang\n"),
        (failing(Refusal("A='x' is no number")), 2, "program: A='x' is no number\n"),
        (failing(PermissionError(13, "Permission denied", "/x/y")), 2, "program: /x/y: Permission denied\n"),
        (failing(OSError("libx.so: no such library")), 2, "program: libx.so: no such library\n"),
        (failing(MemoryError()), 2, "program: the machine has no memory left\n"),
        (failing(ModuleNotFoundError("no", name="lark.x")), 2, "the Python module 'lark' is missing: run '"),
        (failing(KeyboardInterrupt()), 130, "interrupted; no file is half-written\n"),
        (failing(BrokenPipeError()), 141, ""),
        (lambda: write_text(Path("/dev/null/x"), ""), 2, "program: /dev/null/x cannot be written: Not a directory\n"),
    ],
)
def test_what_ends_a_command_is_a_code_and_a_line(action: Callable[[], object], code: int, says: str) -> None:
    result = ended(action)
    assert result.exit_code == code
    assert says in result.stderr and (says or not result.stderr)
    assert len(result.stderr.splitlines()) <= 4  # of which three say how the command is called
    assert not result.stdout


@pytest.mark.parametrize("error", [KeyError("x\ny"), RecursionError("deep"), ModuleNotFoundError(name="diopigen.x")])
def test_a_fault_of_ours_is_one_line_and_a_kept_traceback(error: Exception) -> None:
    result = ended(failing(error))
    assert result.exit_code == 70
    line = re.fullmatch(
        r"program: this is a fault of ours, (.*); the traceback is in (.*); "
        r"report it with that and with the files that were read\n",
        result.stderr,
    )
    assert line is not None, result.stderr
    assert line[1].startswith(type(error).__name__)
    kept = Path(line[2])
    assert "Traceback (most recent call last)" in kept.read_text(encoding="utf-8")
    kept.unlink()


def called(program: str, *words: str, out: int) -> tuple[int, str]:
    command = [sys.executable, "-m", program, *words]
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_full_and_a_closed_standard_output(program: str) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    code, said = called(program, "--help", out=full)
    assert (code, said.partition(": ")[2]) == (2, "standard output cannot be written: No space left on device\n")
    reading, writing = os.pipe()
    os.close(reading)
    assert called(program, "--help", out=writing) == (141, "")


def test_standard_output_that_is_full_at_the_end_of_a_command(checkout: object) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    code, said = called("diopigen", "lint", "--list", out=full)
    assert (code, said) == (2, "diopigen: standard output cannot be written: No space left on device\n")


@pytest.mark.parametrize("command", ["diopigen", "diopi-conformance", "op-tools"])
def test_the_signal_of_control_c_ends_each_program(command: str) -> None:
    module = command.replace("-", "_") + ".cli"
    code = (
        f"import os, signal, click\nfrom {module} import *\nimport {module} as cli\n"
        "group = cli.cli if hasattr(cli, 'cli') else cli.main\n"
        "act = click.Command('act', callback=lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "type(group).get_command = lambda *_: act\n"
        f"group(['act'], prog_name='{command}')\n"
    )
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr.strip()) == (128 + signal.SIGINT, "interrupted; no file is half-written")


@pytest.mark.parametrize("program", ["diopigen", "diopi_conformance", "op_tools"])
def test_control_c_while_modules_load(program: str) -> None:
    code = (
        "import os, signal, sys\n"
        "class Slow:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.endswith('.cli'):\n"
        "            try:\n"
        "                os.kill(os.getpid(), signal.SIGINT)\n"
        "            except BaseException:\n"
        "                pass\n"
        "sys.meta_path.insert(0, Slow())\n"
        f"sys.argv = ['{program}', '--help']\n"
        f"from diopigen.programs import {program}\n{program}()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted; no file is half-written\n")


@pytest.mark.parametrize("program", PROGRAMS)
def test_control_c_while_modules_load_for_a_module(program: str, tmp_path: Path) -> None:
    """`python -m`: the package is loaded before its __main__."""
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    (tmp_path / "torch.py").write_text("import click\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", program, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted; no file is half-written\n")


@pytest.mark.parametrize(("program", "name"), [(p, p.replace("_", "-")) for p in PROGRAMS])
def test_a_program_is_a_module_too(program: str, name: str) -> None:
    done = subprocess.run([sys.executable, "-m", program, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith(f"Usage: {name} ")


def test_the_programs_are_those_that_are_installed() -> None:
    found = {
        point.name: point.value for point in entry_points(group="console_scripts") if point.dist.name == "diopigen"
    }
    names = ("diopigen", "diopi_conformance", "op_tools")
    assert found == {name.replace("_", "-"): f"diopigen.programs:{name}" for name in names}


def test_without_a_compiler(miniature: Callable[..., Project]) -> None:
    """Clang reads a compiler's headers; where it has read them before, and nothing changed, none is needed."""
    project = miniature({"tests.yaml": ENTRY})
    command = [sys.executable, "-m", "diopigen", "--project", str(project.root)]
    environment = {key: value for key, value in os.environ.items() if key not in ("CXX", "DIOPIGEN_CACHE_DIR")}
    environment["PATH"] = "/nowhere"
    said = "there is no C++ compiler, whose headers clang reads; install g++, or set CXX to a compiler"

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *words], env={**environment, **variables}, capture_output=True, text=True)

    done = run("lint")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"diopigen: {said}\n")
    done = run("doctor", "--format", "json")
    (check,) = (check for check in json.loads(done.stdout) if check["what"] == "libclang.so")
    assert f"{check['found']}; {check['remedy']}" == said and done.returncode == 1
    done = run("lint", CXX=shutil.which("g++") or "")
    assert done.returncode == 0, done.stderr
    assert run("lint").returncode == 0

"""--quiet, --verbose, --version and --color behind every command of the three programs; what commands leave behind."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from diopigen.command_group import SectionedCommand
from diopigen.project import Project
from tests import processes
from tests.unit.test_command_group import ENTRY, PROGRAMS, started

GOOD = ENTRY.replace("agrs", "args").replace("  cases", "  where: {T: any}\n  kernel: input + input\n  cases")
TIMED = re.compile(r"(diopigen|diopi-conformance|op-tools) \d+\.\d+\.\d+ of \S.*, Python \d+\.\d+\.\d+: \d+\.\d\d s")


def commands() -> Iterator[tuple[str, str]]:
    for program, group in PROGRAMS.items():
        for name in group.list_commands(click.Context(group)):
            yield program, name


every = pytest.mark.parametrize(("program", "name"), [*commands()])


@every
def test_the_options_of_every_command(program: str, name: str) -> None:
    """With --help behind: each is known there, and changes nothing of it."""
    usual = CliRunner().invoke(PROGRAMS[program], [name, "--help"], prog_name=program)
    assert usual.exit_code == 0
    for words in (["-q"], ["--quiet"], ["--color", "never"]):
        done = CliRunner().invoke(PROGRAMS[program], [name, *words, "--help"], prog_name=program)
        assert (done.exit_code, done.output) == (0, usual.output)
    for option in ("-v", "--verbose"):
        done = CliRunner().invoke(PROGRAMS[program], [name, option, "--help"], prog_name=program)
        assert (done.exit_code, done.stdout) == (0, usual.stdout)
        assert TIMED.fullmatch(done.stderr.strip())
    for option in ("-V", "--version"):
        done = CliRunner().invoke(PROGRAMS[program], [name, option], prog_name=program)
        assert re.fullmatch(rf"{program}, version \d+\.\d+\.\d+\n", done.output) and done.exit_code == 0


@every
def test_sections_of_help_name_options(program: str, name: str) -> None:
    group = PROGRAMS[program]
    command = group.get_command(click.Context(group), name)
    if not isinstance(command, SectionedCommand):
        return
    named = [param for names in command.sections.values() for param in names]
    assert len(named) == len({*named})
    shown = CliRunner().invoke(group, [name, "--help"]).output
    for param in command.params:
        if isinstance(param, click.Option) and not param.hidden:
            assert len(re.findall(rf"^  (?:-\S+, )*{param.opts[0]}\b", shown, re.MULTILINE)) == 1, param.opts
    titles = [title for title in (*command.sections, "Other options") if f"\n{title}:\n" in shown]
    assert len(titles) > 2 and {param.name for param in command.params} & {*named}


@every
def test_help_of_every_command_has_an_example(program: str, name: str) -> None:
    group = PROGRAMS[program]
    command = group.get_command(click.Context(group), name)
    assert command is not None and command.help is not None
    assert f"{program} {name}" in command.help or command.deprecated, command.help


@pytest.fixture
def project(miniature: Callable[..., Project]) -> Project:
    return miniature({"tests.yaml": GOOD})


@pytest.mark.parametrize("before", [True, False], ids=["before the command", "behind it"])
@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("", "1 ops, 1 functions: no problems found\n"),
        ("-q", ""),
        ("-v", "1 ops, 1 functions: no problems found\n"),
        ("-qv", "1 ops, 1 functions: no problems found\n"),  # the last one counts
    ],
)
def test_lint(project: Project, option: str, says: str, before: bool) -> None:
    options = [option] if option else []
    words = [*options, "lint"] if before else ["lint", *options]
    done = CliRunner().invoke(PROGRAMS["diopigen"], ["--project", str(project.root), *words], prog_name="diopigen")
    assert (done.exit_code, done.stdout) == (0, says), done.output
    lines = done.stderr.splitlines()
    if "v" not in option:
        assert not any(TIMED.fullmatch(line) or line.startswith("reads ") for line in lines)
        return
    assert f"reads {project.root}" in lines and TIMED.fullmatch(lines[-1])


def test_quietly_a_mistake_is_all_that_is_said(project: Project) -> None:
    path = project.schemas / "ops" / "tests.yaml"
    path.write_text(ENTRY, encoding="utf-8")
    said = {}
    for option in ("-q", "--color=auto"):
        done = CliRunner().invoke(PROGRAMS["diopigen"], ["--project", str(project.root), "lint", option])
        assert done.exit_code == 1
        said[option] = done.output
    assert said["--color=auto"] == f"{said['-q']}1 error\n"


def test_a_table_has_colours_where_they_are_chosen() -> None:
    for color, coloured in (("always", True), ("never", False)):
        done = started("diopigen", "--color", color, "doctor", NO_COLOR="1", FORCE_COLOR="1")
        assert ("\x1b" in done.stdout) == coloured, done.stdout + done.stderr


def test_no_import_changes_the_environment() -> None:
    program = """
import os
before = dict(os.environ)
import diopigen.cli, diopi_conformance.cli, op_tools.cli
import diopi_conformance.expected.live, op_tools.export, dicp.backend
print({key: os.environ.get(key) for key in before.keys() | os.environ.keys() if before.get(key) != os.environ.get(key)})
"""
    done = processes.run_python("-c", program)
    assert (done.stdout, done.returncode) == ("{}\n", 0), done.stderr


def test_references_load_no_backend() -> None:
    program = "import diopi_conformance.expected.live, sys; print('torch_dipu' in sys.modules)"
    done = processes.run_python("-c", program, TORCH_DEVICE_BACKEND_AUTOLOAD="1")
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--preload", "/nowhere/lib.so", "--under", "nice"),
        ("plan",),
    ],
)
def test_no_command_changes_the_environment(words: tuple[str, ...], tmp_path: Path) -> None:
    references = tmp_path / "references.py"
    references.write_text("", encoding="utf-8")
    before = dict(os.environ)
    options = ["--vendor", "none", "--references", str(references), "--color", "never"]
    done = CliRunner().invoke(PROGRAMS["diopi-conformance"], ["--color", "always", *words, *options])
    assert done.exit_code == 2
    assert dict(os.environ) == before

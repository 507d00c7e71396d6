"""What the three programs share: version, colours, sections of help, suggestions, completion, SARIF."""

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import op_tools
from diopi_conformance.cli import cli as conformance
from diopigen.cli import cli as diopigen
from diopigen.command_group import CommandGroup
from diopigen.commands.rules import rules
from diopigen.project import Project
from op_tools.cli import main as tools

PROGRAMS = {"diopigen": diopigen, "diopi-conformance": conformance, "op-tools": tools}
BIN = Path(sys.executable).parent
ENTRY = "double:\n  doc: Doubles `input`.\n  agrs: {input: Tensor<T>}\n  out: Tensor<T> like input\n  cases: []\n"
both = pytest.mark.parametrize("program", PROGRAMS)


def started(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    command = [str(BIN / words[0]), *words[1:]]
    return subprocess.run(command, env={**environment, **variables}, capture_output=True, text=True, check=False)


@both
def test_the_version(program: str) -> None:
    for option in ("-V", "--version"):
        done = CliRunner().invoke(PROGRAMS[program], [option], prog_name=program)
        assert re.fullmatch(rf"{program}, version \d+\.\d+\.\d+\n", done.output) and done.exit_code == 0


@both
def test_help_lists_each_command_once_with_its_sentence(program: str) -> None:
    group = PROGRAMS[program]
    assert isinstance(group, CommandGroup)
    names = [name for section in group.sections.values() for name in section]
    assert len(names) == len({*names})
    listed = CliRunner().invoke(group, ["--help"]).output
    for title in group.sections:
        assert f"\n{title}:\n" in listed
    for name in names:
        command = group.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None and command.help is not None
        sentence = " ".join(command.help.split("\n\n")[0].split()).partition(". ")[0].removesuffix(".")
        assert f"{name}{sentence}".replace(" ", "") in "".join(listed.split())
    assert {*group.commands} - {"classic"} <= {*names}


@pytest.mark.parametrize(
    ("program", "word", "text"),
    [
        ("diopigen", "lnt", "No such command 'lnt'. Did you mean 'lint'?"),
        ("diopi-conformance", "captur", "No such command 'captur'. Did you mean 'capture'?"),
        ("op-tools", "bisct", "No such command 'bisct'. Did you mean 'bisect'?"),
        *((program, "--colr", "No such option '--colr'. Did you mean '--color'?") for program in PROGRAMS),
    ],
)
def test_a_suggestion_for_a_wrong_word(program: str, word: str, text: str) -> None:
    done = CliRunner().invoke(PROGRAMS[program], [word])
    assert (done.exit_code, done.output.splitlines()[-1]) == (2, f"Error: {text}")


@both
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(program: str, shell: str) -> None:
    variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
    script = started(program, **{variable: f"{shell}_source"})
    assert script.returncode == 0 and program in script.stdout
    word = next(iter(PROGRAMS[program].sections.values()))[0]  # type: ignore[attr-defined]
    words = {"COMP_WORDS": f"{program} {word[:-1]}", "COMP_CWORD": word[:-1] if shell == "fish" else "1"}
    done = started(program, **words, **{variable: f"{shell}_complete"})
    assert word in re.split(r"[\n,\t]", done.stdout)


def test_help_of_op_tools_loads_nothing() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = started("op-tools", "--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


def test_every_name_of_op_tools_is_found() -> None:
    for name in op_tools.__all__:
        assert getattr(op_tools, name).__name__ == name
    assert {*op_tools.__all__} == {*op_tools._MODULES}
    with pytest.raises(AttributeError, match=r"module 'op_tools' has no attribute 'OpCaptrue'"):
        _ = op_tools.OpCaptrue  # type: ignore[attr-defined]


@pytest.fixture
def project(miniature: Callable[..., Project]) -> Project:
    return miniature({"tests.yaml": ENTRY})


PLAIN = """\
schemas/ops/tests.yaml:3:3: error[unknown-key]: 'double' has no property 'agrs'
     3 |   agrs: {input: Tensor<T>}
       |   ^^^^ did you mean 'args'?
1 error
"""
COLOURED = "\x1b[31m\x1b[1merror[unknown-key]:\x1b[0m"


@pytest.mark.parametrize(
    ("before", "after", "variables", "coloured"),
    [
        ([], [], {}, False),  # no terminal
        (["--color", "always"], [], {}, True),
        ([], ["--color", "always"], {}, True),
        (["--color", "always"], [], {"NO_COLOR": "1"}, True),
        (["--color", "always"], ["--color", "never"], {}, False),
        ([], [], {"FORCE_COLOR": "1"}, True),
        ([], [], {"FORCE_COLOR": ""}, False),
        ([], [], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (["--color", "never"], [], {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colours(
    project: Project, before: list[str], after: list[str], variables: dict[str, str], coloured: bool
) -> None:
    done = started("diopigen", "--project", str(project.root), *before, "lint", *after, **variables)
    assert done.returncode == 1
    assert re.sub("\x1b\\[[0-9]*m", "", done.stderr) == PLAIN
    assert (COLOURED in done.stderr) == coloured and ("\x1b" in done.stderr) == coloured


def test_a_terminal_has_colours(project: Project) -> None:
    words = f"{BIN}/diopigen --project {project.root} lint"
    shown = subprocess.run(["script", "-qec", words, "/dev/null"], capture_output=True, text=True, check=False)
    assert COLOURED in shown.stdout


def test_sarif(project: Project, checkout: Project) -> None:
    done = CliRunner().invoke(diopigen, ["--project", str(project.root), "lint", "--error-format", "sarif"])
    assert done.exit_code == 1
    document: dict[str, Any] = json.loads(done.stdout)
    assert (document["version"], *document) == ("2.1.0", "$schema", "version", "runs")
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "diopigen" and run["columnKind"] == "unicodeCodePoints"
    explained = rules(checkout.root / "docs" / "diagnostics.yaml")
    assert [(rule["id"], rule["shortDescription"]["text"]) for rule in driver["rules"]] == [
        (rule.code, rule.means) for rule in explained
    ]
    assert len({rule["id"] for rule in driver["rules"]}) == len(explained)  # SARIF: ids are distinct
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
    assert run["results"] == [
        {
            "ruleId": "unknown-key",
            "ruleIndex": next(at for at, rule in enumerate(explained) if rule.code == "unknown-key"),
            "level": "error",
            "message": {"text": "'double' has no property 'agrs'; did you mean 'args'?"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": "schemas/ops/tests.yaml"},
                        "region": {"startLine": 3, "startColumn": 3, "endColumn": 7},
                    }
                }
            ],
        }
    ]

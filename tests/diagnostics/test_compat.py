"""Every diagnostic of `diopigen compat`: an older header, and the exact text that somebody reads."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopigen.cli import cli
from diopigen.diagnostics import Diagnostics, render_human
from diopigen.project import Project
from diopigen.source.cpp.interface_record import read_record

HERE = Path(__file__).parent / "compat"
OLD = sorted(path for path in HERE.iterdir() if path.is_dir())


@pytest.fixture
def project(miniature: Callable[..., Project], monkeypatch: pytest.MonkeyPatch) -> Project:
    project = miniature({"contract.yaml": (HERE / "contract.yaml").read_text(encoding="utf-8")})
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(project.root / ".cache"))
    assert CliRunner().invoke(cli, ["--project", str(project.root), "header"]).exit_code == 0
    return project


@pytest.mark.parametrize("old", OLD, ids=lambda path: path.name)
def test_text(old: Path, project: Project, golden: Callable[[Path, str], None]) -> None:
    shutil.copytree(old, project.root / "old")
    words = ["--project", str(project.root), "compat", "--against", str(project.root / "old")]
    result = CliRunner().invoke(cli, words)
    assert f"[{old.name}]" in result.stderr
    assert result.exit_code == int("error[" in result.stderr)
    golden(old.with_suffix(".txt"), result.stderr)


def test_additions_are_listed(project: Project) -> None:
    shutil.copytree(HERE / "compat-renamed", project.root / "old")
    words = ["--project", str(project.root), "compat", "--against", str(project.root / "old")]
    shown = CliRunner().invoke(cli, words)
    assert shown.stdout.splitlines()[0] == "schemas/ops/contract.yaml:12:1: functions.h declares 'diopiFold' too"
    assert shown.stdout.splitlines()[-1] == f"nothing breaks of {project.root}/old (functions: 1, types: 0)"
    told = CliRunner().invoke(cli, [*words, "--error-format", "json"])
    assert told.stdout.splitlines()[1] == (
        '{"severity": "note", "code": "compat-added", "message": "functions.h declares \'diopiFold\' too", '
        '"path": "schemas/ops/contract.yaml", "line": 12, "column": 1, "length": 4, "hint": null, "related": []}'
    )
    noted = CliRunner().invoke(cli, [*words, "--error-format", "github"])
    assert noted.stdout.splitlines()[1] == (
        "::notice file=schemas/ops/contract.yaml,line=12,col=1,title=compat-added::functions.h declares 'diopiFold' too"
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"type": "t"', "Expecting ',' delimiter, column 13"),
        ('{"type": "t", "header": "diopirt.h"}', "it has other properties"),
        ("\\xff", "it is not UTF-8 text"),
        (
            '{"param": "ctx", "spelled": "void*", "resolved": "void*"}',
            "no declaration precedes it",
        ),
    ],
)
def test_a_record_that_is_none(line: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "contract.record"
    head = b'{"record": "diopi interface", "version": 1}\n'
    path.write_bytes(head + (b"\xff" if line.startswith("\\") else line.encode()) + b"\n")
    diagnostics = Diagnostics()
    assert read_record(path, "contract.record", diagnostics) is None
    first, *_ = render_human(diagnostics, tmp_path)
    assert first == f"contract.record:2:1: error[broken-record]: this line is not a record: {reason}"

"""The diagnostics of the documentation site: a bad file, and the exact text that somebody reads."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from diopigen.commands.docs import write_docs
from diopigen.project import Project

BAD = Path(__file__).parent / "docs" / "bad-formula.yaml"


def test_a_bad_formula(
    miniature: Callable[..., Project],
    golden: Callable[[Path, str], None],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    project = miniature({})
    shutil.copy(BAD, project.schemas / "ops" / BAD.name)
    assert write_docs(project, tmp_path / "docs", "human") == 1
    assert not (tmp_path / "docs").exists()
    golden(BAD.with_suffix(".txt"), capsys.readouterr().err)

"""What `lint` and `explain` found is told again as long as nothing has changed that it follows from, and no longer."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from diopigen import pipeline
from diopigen.cli import cli
from diopigen.project import Project
from tests.processes import run_python
from tests.unit.commands.test_doctor import ENTRY

LINT = ("lint", "--vendor", "chip", "--notes")
EXPLAIN = ("explain", "double", "--vendor", "chip")
COMMANDS = pytest.mark.parametrize("words", [LINT, EXPLAIN], ids=["lint", "explain"])
OPS, RULES, VENDOR = "schemas/ops/tests.yaml", "vendors/chip/convert_config.yaml", "vendors/chip/vendor.yaml"


@pytest.fixture
def project(miniature: Callable[..., Project], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Project:
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(tmp_path / "cache"))
    return miniature({"tests.yaml": ENTRY}, {"chip": {"vendor.yaml": "doc: A chip for tests.\n"}})


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One for each run of the passes over the entries."""
    found: list[object] = []
    run = pipeline.run

    def counted(*args: object, **options: object) -> object:
        found.extend([None] if "vendor" in options else [])
        return run(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "run", counted)
    return found


def said(project: Project, words: tuple[str, ...]) -> Result:
    return CliRunner().invoke(cli, ["--project", str(project.root), *words], prog_name="diopigen")


def append(project: Project, path: str, text: str) -> None:
    with (project.root / path).open("a", encoding="utf-8") as file:
        file.write(text)


@COMMANDS
def test_an_answer_is_found_once(project: Project, runs: list[object], words: tuple[str, ...]) -> None:
    first, second = said(project, words), said(project, words)
    assert (second.exit_code, second.output) == (first.exit_code, first.output) == (0, first.output)
    assert "double" in first.output or "1 op" in first.output
    assert len(runs) == 1


@COMMANDS
@pytest.mark.parametrize("path", [OPS, VENDOR])
def test_what_changed_is_asked_for_again(
    project: Project, runs: list[object], words: tuple[str, ...], path: str
) -> None:
    said(project, words)
    append(project, path, "# a remark\n")
    said(project, words)
    assert len(runs) == 2


def test_a_new_file_is_read(project: Project, runs: list[object]) -> None:
    said(project, LINT)
    (project.root / RULES).write_text("- zzz:\n    dtype: (float64)->float32\n", encoding="utf-8")
    found = said(project, LINT)
    assert f"{RULES}:1:3: error" in found.output
    assert (found.exit_code, len(runs)) == (1, 2)


@COMMANDS
def test_what_is_wrong_is_told_from_the_files_each_time(
    project: Project, runs: list[object], words: tuple[str, ...]
) -> None:
    append(project, OPS, "zz: x\n")
    first, second = said(project, words), said(project, words)
    assert "error[" in first.output
    assert (second.exit_code, second.output) == (first.exit_code, first.output) == (1, first.output)
    assert len(runs) == 2


def test_an_answer_about_files_that_changed_meanwhile_is_not_kept(
    project: Project, runs: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = pipeline.run

    def edited(*args: object, **options: object) -> object:
        found = run(*args, **options)  # type: ignore[arg-type]
        append(project, OPS, "# a remark\n")
        return found

    before = (project.root / OPS).read_text(encoding="utf-8")
    monkeypatch.setattr(pipeline, "run", edited)
    said(project, LINT)
    monkeypatch.setattr(pipeline, "run", run)
    (project.root / OPS).write_text(before, encoding="utf-8")
    said(project, LINT)
    assert len(runs) == 2


def test_another_question_has_another_answer(project: Project, runs: list[object]) -> None:
    outputs = {said(project, words).output for words in (LINT, EXPLAIN, ("lint",), ("explain", "double"))}
    assert (len(outputs), len(runs)) == (3, 4)  # the chip adds no note: it is linted with the same words


def test_notes_are_kept_with_their_places(project: Project, runs: list[object]) -> None:
    (project.root / OPS).write_text(ENTRY.partition("  cases:")[0], encoding="utf-8")
    first, second = said(project, LINT), said(project, LINT)
    assert first.output.startswith(f"{OPS}:1:1: note[no-case]: ")
    assert second.output == first.output
    assert len(runs) == 1


def test_a_kept_answer_loads_no_passes(project: Project) -> None:
    """Which takes most of a second."""
    said(project, LINT)
    program = (
        "import sys; from diopigen.cli import cli\n"
        f"try: cli(['--project', {str(project.root)!r}, 'lint', '--vendor', 'chip'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'diopigen.pipeline', 'pydantic', 'clang', 'lark', 'torchgen'} & {*sys.modules}))"
    )
    assert run_python("-c", program).stdout.splitlines()[-1] == "[]"

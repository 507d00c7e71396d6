"""What older headers may be: a file alone, folders, a revision, a record; and what they find beside them."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from diopigen.cli import cli
from diopigen.project import Project

ENTRY = """\
shrink:
  doc: Moves the elements of `input` towards zero.
  args:
    input: Tensor<T>
    hard: bool
  out: Tensor<T> like input
  where: {T: float}
"""
CHANGED = ENTRY.replace("hard: bool", "hard: int")
# As an established header is: C++ that takes size_t and bool for granted.
ESTABLISHED = """\
#include <cstddef>
#include "diopirt.h"
extern "C" {
DIOPI_API diopiError_t diopiShrink(diopiContextHandle_t ctx, diopiTensorHandle_t out,
                                   diopiConstTensorHandle_t input, bool hard);
}
"""


@pytest.fixture
def project(miniature: Callable[..., Project], monkeypatch: pytest.MonkeyPatch) -> Project:
    project = miniature({"ops.yaml": ENTRY})
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(project.root / ".cache"))
    return project


def run(project: Project, *words: object) -> Result:
    return CliRunner().invoke(cli, ["--project", str(project.root), *map(str, words)])


def change(project: Project) -> None:
    (project.schemas / "ops" / "ops.yaml").write_text(CHANGED, encoding="utf-8")


def assert_found(result: Result, place: str) -> None:
    assert result.exit_code == 1, result.output
    assert f"{place}: error[compat-type]: 'hard' of 'diopiShrink' is 'int64_t' now" in result.stderr
    assert "schemas/ops/ops.yaml:5:5: note: ours is here" in result.stderr


def test_an_established_header_alone(project: Project, tmp_path: Path) -> None:
    """It finds our diopirt.h, and its bool is a bool."""
    header = tmp_path / "functions.h"
    header.write_text(ESTABLISHED, encoding="utf-8")
    assert run(project, "compat", "--against", header).exit_code == 0
    change(project)
    assert_found(run(project, "compat", "--against", header), f"{header}:5:68")


@pytest.mark.parametrize("inside", ["", "diopi", "include/diopi"])
def test_a_folder(inside: str, project: Project, tmp_path: Path) -> None:
    header = tmp_path / "old" / inside / "functions.h"
    header.parent.mkdir(parents=True)
    header.write_text(ESTABLISHED, encoding="utf-8")
    change(project)
    assert_found(run(project, "compat", "--against", tmp_path / "old"), f"{header}:5:68")


def test_a_revision(project: Project) -> None:
    def git(*words: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(project.root), *identity, *words], check=True, capture_output=True)

    git("init", "--quiet")
    assert run(project, "header").exit_code == 0
    git("add", "generated")
    git("commit", "--quiet", "-m", "one")
    change(project)
    assert run(project, "header").exit_code == 0
    git("commit", "--quiet", "-a", "-m", "two")
    assert run(project, "compat", "--against", "HEAD").exit_code == 0
    result = run(project, "compat", "--against", "HEAD~1")
    assert result.exit_code == 1
    assert "'hard' of 'diopiShrink' is 'int64_t' now" in result.stderr
    assert "bool hard);" in result.stderr


def test_a_record(project: Project, tmp_path: Path) -> None:
    record = tmp_path / "contract.record"
    saved = run(project, "compat", "--save", record)
    assert saved.exit_code == 0
    again = tmp_path / "again.record"
    assert run(project, "compat", "--against", record, "--save", again).exit_code == 0
    assert again.read_bytes() == record.read_bytes()
    change(project)
    lines = record.read_text(encoding="utf-8").splitlines()
    line = 1 + lines.index('{"param": "hard", "spelled": "bool", "resolved": "bool"}')
    assert_found(run(project, "compat", "--against", record), f"{record}:{line}:1")


def test_a_header_that_is_not_read_whole_is_no_agreement(project: Project, tmp_path: Path) -> None:
    """Without the header that makes `flag` a bool, clang would read it as int and go on."""
    header = tmp_path / "functions.h"
    header.write_text(ESTABLISHED.replace("<cstddef>", "<vendor_types.h>").replace("bool", "flag"), encoding="utf-8")
    result = run(project, "compat", "--against", header)
    assert result.exit_code == 1
    assert f"{header}:1:10: error[broken-header]" in result.stderr
    assert "compat-type" not in result.stderr
    (tmp_path / "types").mkdir()
    (tmp_path / "types" / "vendor_types.h").write_text("typedef bool flag;\n", encoding="utf-8")
    assert run(project, "compat", "--against", header, "--include", tmp_path / "types").exit_code == 0


def test_a_header_of_c_alone(project: Project, tmp_path: Path) -> None:
    header = tmp_path / "functions.h"
    text = ESTABLISHED.replace("<cstddef>", "<stdbool.h>").replace('extern "C" {\n', "").replace("}\n", "")
    header.write_text(text + "int diopiOld(int *restrict class);\n", encoding="utf-8")
    result = run(project, "compat", "--against", header)
    assert result.stderr.count("error[") == 1
    assert "'diopiOld' no longer exists" in result.stderr


def test_what_cannot_be_compared_with(project: Project, tmp_path: Path) -> None:
    nothing = run(project, "compat")
    assert nothing.exit_code == 2
    assert "name what to compare with by --against" in nothing.stderr
    unknown = run(project, "compat", "--against", "v0.1")
    assert unknown.exit_code == 2
    assert "'v0.1' is no file and no folder, and git has no headers of 'v0.1' in generated/include" in unknown.stderr
    (tmp_path / "nothing.h").write_text("#include <stdint.h>\n", encoding="utf-8")
    nothing = run(project, "compat", "--against", tmp_path / "nothing.h")
    assert nothing.exit_code == 2
    assert "declares nothing" in nothing.stderr
    (tmp_path / "nothing.h").unlink()
    empty = run(project, "compat", "--against", tmp_path)
    assert empty.exit_code == 2
    assert f"there are no headers in {tmp_path}" in empty.stderr


def test_a_record_that_cannot_be_written(project: Project) -> None:
    path = project.schemas / "runtime.yaml" / "contract.record"
    result = run(project, "compat", "--save", path)
    assert (result.exit_code, result.stderr) == (2, f"cli: {path} cannot be written: Not a directory\n")

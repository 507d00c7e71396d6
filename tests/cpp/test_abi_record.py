"""Two sides compiled against headers with one difference: the difference is named, and only if the library minds it."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project
from diopigen.targets import header
from diopigen.targets.output import renderer

ROOT = Path(__file__).resolve().parents[2]
OPS = """\
shrink:
  doc: Moves the elements of `input` towards zero.
  args:
    input: Tensor<T>
  out: Tensor<T> like input
  where: {T: float}

voxels:
  doc: Counts the points of each voxel.
  header: functions_mmcv
  args:
    points: Tensor<T>
    most: int
  out: Tensor<T> like points
  where: {T: float}
"""
RECORD = """\
#include <diopi/abi.h>
static const diopiAbiEntry_t entries[] = {GROUPS};
const diopiAbiRecord_t* diopiGetAbiRecord(void) {
    static const diopiAbiRecord_t record = DIOPI_ABI_RECORD(entries);
    return &record;
}
"""
COMPARE = """\
#include "contract/abi_difference.h"
#include <cstdio>
int main() { std::puts(diopi::abi_difference(*diopiGetAbiRecord()).c_str()); }
"""
COMMON, FUNCTIONS, MMCV = (f"DIOPI_ABI_{name}(DIOPI_ABI_ENTRY)" for name in ("COMMON", "FUNCTIONS", "FUNCTIONS_MMCV"))
STRICTLY = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")


@pytest.fixture
def project(miniature: Callable[..., Project], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Project:
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(tmp_path / "cache"))
    return miniature({"ops.yaml": OPS})


def include(project: Project, folder: Path) -> Path:
    """The project's headers, written under `folder`."""
    diagnostics = Diagnostics()
    program = pipeline.run(project, diagnostics)
    assert program is not None and not diagnostics.failed
    for output in header.outputs(program, renderer(project.templates)):
        path = folder / output.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(output.text, encoding="utf-8")
    return folder / "include"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def difference(theirs: Path, ours: Path, groups: str, folder: Path, source: str = RECORD) -> str:
    """What a runtime with the headers `ours` says to a library, written in C, with the headers `theirs`."""
    (folder / "record.c").write_text(source.replace("GROUPS", groups), encoding="utf-8")
    (folder / "compare.cpp").write_text(COMPARE, encoding="utf-8")
    record, program = folder / "record.o", folder / "compare"
    subprocess.run(["gcc", "-std=c11", *STRICTLY, f"-I{theirs}", "-c", folder / "record.c", "-o", record], check=True)
    command = ["g++", "-std=c++17", *STRICTLY, f"-I{ours}", f"-I{ROOT / 'runtime_cpp'}", folder / "compare.cpp", record]
    subprocess.run([*command, "-o", program], check=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip()


def test_the_same_headers_agree(project: Project, tmp_path: Path) -> None:
    here = include(project, tmp_path / "here")
    assert difference(here, here, f"{COMMON} {FUNCTIONS} {MMCV}", tmp_path) == ""


@pytest.mark.parametrize(
    ("file", "old", "new", "groups", "said"),
    [
        ("ops/ops.yaml", "input: Tensor<T>\n", "input: Tensor<T>\n    far: int\n", FUNCTIONS, "functions.h"),
        ("ops/ops.yaml", "most: int", "most: int?", MMCV, "functions_mmcv.h"),
        ("ops/ops.yaml", "most: int", "most: int?", FUNCTIONS, None),
        ("ops/ops.yaml", "Counts the points", "Counts all points", MMCV, None),
        ("runtime.yaml", "(const char* record_name, void** record)", "(const char* record_name)", "", "diopirt.h"),
        ("runtime.yaml", "(malloc_func_t func)", "(free_func_t func)", "", "diopi_register.h"),
    ],
)
def test_a_header_that_differs(
    file: str, old: str, new: str, groups: str, said: str | None, project: Project, tmp_path: Path
) -> None:
    here = include(project, tmp_path / "here")
    edit(project.schemas / file, old, new)
    there = include(project, tmp_path / "there")
    expected = "" if said is None else f"a declaration of {said} differs"
    assert difference(there, here, f"{COMMON} {groups}", tmp_path) == expected


@pytest.mark.parametrize(
    ("entries", "count", "said"),
    [
        ("0", 3, "the ABI record there has no 3 entries"),
        ("entries", 1 << 30, "the ABI record there has no 1073741824 entries"),
        ("entries", 1, "entry 0 of the ABI record there has no name"),
        ("0", 0, ""),
    ],
)
def test_a_record_that_is_none(entries: str, count: int, said: str, project: Project, tmp_path: Path) -> None:
    here = include(project, tmp_path / "here")
    record = RECORD.replace("static const diopiAbiRecord_t", "static diopiAbiRecord_t").replace(
        "    return", f"    record.entries = {entries};\n    record.entry_count = {count};\n    return"
    )
    assert difference(here, here, "{diopiAbiSize, 0, 0}", tmp_path, record) == said


def test_an_enum_that_differs(project: Project, tmp_path: Path) -> None:
    here = include(project, tmp_path / "here")
    edit(project.schemas / "runtime.yaml", "ReductionMean: [1,", "ReductionMean: [7,")
    there = include(project, tmp_path / "there")
    assert difference(there, here, COMMON, tmp_path) == "a value of diopiReduction_t differs"


def test_a_struct_that_differs(project: Project, tmp_path: Path) -> None:
    here, there = include(project, tmp_path / "here"), include(project, tmp_path / "there")
    edit(there / "diopi" / "diopirt.h", "int64_t len;", "int64_t len;\n    int64_t more;")
    assert difference(there, here, COMMON, tmp_path) == "the size of diopiSize_t is 24 there and 16 here"

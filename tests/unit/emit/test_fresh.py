"""Which files a run may read, of the vendor and of what may be its bases, and in which folders they may appear."""

import os
from pathlib import Path

import pytest

from diopigen.emit.fresh import vendor_inputs
from diopigen.project import Project


@pytest.mark.parametrize(
    ("base", "read"),
    [
        ("", ["b"]),
        ("base: portable", ["b"]),
        ("base: a", ["b", "a"]),
        ("base: [portable, c]", ["b", "c", "a"]),
    ],
)
def test_the_files_of_bases_are_among_the_inputs(tmp_path: Path, base: str, read: list[str]) -> None:
    for name, text in {"a": "doc: A.\n", "b": f"doc: B.\n{base}\n", "c": "doc: C.\nbase: [a]\n"}.items():
        folder = tmp_path / "vendors" / name
        folder.mkdir(parents=True)
        (folder / "vendor.yaml").write_text(text, encoding="utf-8")
    found = [os.path.relpath(path, tmp_path) for path in vendor_inputs(Project(root=tmp_path), "b").files]
    assert found == [f"vendors/{name}/vendor.yaml" for name in read]


def test_folders_are_known_before_they_have_files(tmp_path: Path) -> None:
    (tmp_path / "vendors" / "b" / "functions" / "nn").mkdir(parents=True)
    for aside in ("build-1", ".git", "__pycache__"):
        (tmp_path / "vendors" / "b" / aside).mkdir()
    found = [os.path.relpath(path, tmp_path / "vendors") for path in vendor_inputs(Project(root=tmp_path), "b").folders]
    assert found == ["b", "b/functions", "b/functions/nn"]


@pytest.mark.parametrize("name", ["a.cpp", "a.cc", "a.cxx", "a.c++", "a.C", "a.cu"])
def test_every_source_that_is_searched_is_an_input(tmp_path: Path, name: str) -> None:
    path = tmp_path / "vendors" / "b" / name
    path.parent.mkdir(parents=True)
    path.touch()
    assert vendor_inputs(Project(root=tmp_path), "b").files == (str(path),)

"""`diopigen new-vendor`: what it writes, what it refuses, and that nothing is ever left half-written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from diopigen.cli import cli
from diopigen.commands import new_vendor
from diopigen.project import Project

NO_NAME = "no name for a vendor: lower case, digits and '_', a letter first"


@pytest.fixture
def project(miniature: Callable[..., Project]) -> Project:
    return miniature({}, {"chip": {"vendor.yaml": "doc: A chip for tests.\n"}})


def run(project: Project, name: str) -> Result:
    return CliRunner().invoke(cli, ["--project", str(project.root), "new-vendor", name])


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_folder(project: Project) -> None:
    done = run(project, "big_chip")
    assert done.exit_code == 0
    files = tree(project.vendors / "big_chip")
    assert sorted(files) == ["CMakeLists.txt", "README.md", "device.cpp", "launcher.h", "train.py", "vendor.yaml"]
    assert b'"big_chip"' in files["device.cpp"]
    assert b"#pragma once\n" in files["launcher.h"]
    assert b"BigChip" in files["vendor.yaml"]
    assert not any(b"{{" in text or b"\r" in text or not text.endswith(b"\n") for text in files.values())
    assert done.output.splitlines() == [
        *(f"vendors/big_chip/{name}" for name in sorted(files)),
        "",
        "next: make build IMPL=big_chip, then DIPU_VENDOR=big_chip .venv/bin/python vendors/big_chip/train.py",
        "after that vendors/big_chip/README.md says what to do, step by step",
    ]


def test_the_templates_state_no_facts_of_operators(project: Project, checkout: Project) -> None:
    """Every contract name in the folder belongs to the device, not to an operator."""
    assert run(project, "chip2").exit_code == 0
    header = (checkout.generated / "include" / "diopi" / "functions.h").read_text(encoding="utf-8")
    symbols = {word.split("(")[0] for word in header.split() if word.startswith("diopi") and "(" in word}
    assert len(symbols) > 300
    text = b"\n".join(tree(project.vendors / "chip2").values()).decode()
    own = {"diopiGetVendorName", "diopiGetImplVersion", "diopiGetLastErrorString"}
    assert {symbol for symbol in symbols if f"{symbol}(" in text} - own == set()


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("chip", "vendors/chip is there already, and stays as it is; choose another name"),
        ("Big-Chip", f"'Big-Chip' is {NO_NAME}; 'big_chip' would do"),
        ("9", f"'9' is {NO_NAME}"),
        ("../x", f"'../x' is {NO_NAME}; 'x' would do"),
        ("union", "'union' is a word of C++ and cannot name a namespace; 'union_chip' would do"),
        ("docs", "'docs' is taken: generated/docs holds the documentation; choose another name"),
        ("portable", "'portable' is taken: the kernels that serve every vendor are called so; choose another name"),
    ],
)
def test_names_that_are_refused(project: Project, name: str, answer: str) -> None:
    before = tree(project.vendors)
    done = run(project, name)
    assert (done.exit_code, done.output) == (2, answer + "\n")
    assert tree(project.vendors) == before


def test_an_empty_folder_is_not_taken_over(project: Project) -> None:
    (project.vendors / "mine").mkdir()
    assert run(project, "mine").exit_code == 2
    assert list((project.vendors / "mine").iterdir()) == []


def test_interrupted_it_leaves_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(project.root.rglob("*"))
    calls = []

    def interrupted(path: Path, text: str) -> Any:
        calls.append(path)
        if len(calls) == 3:
            raise KeyboardInterrupt
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    monkeypatch.setattr(new_vendor, "write_text", interrupted)
    with pytest.raises(KeyboardInterrupt):
        new_vendor.new_vendor(project, "half")
    assert sorted(project.root.rglob("*")) == before

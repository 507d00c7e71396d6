"""docs/getting-started.md, docs/install.md and docs/tutorial.md, followed literally."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.page_commands import ROOT, Shell, checkout, steps

pytestmark = pytest.mark.deep("matrix", "the same commands in the tests of each program and of a repository of its own")


def followed(page: str, shell: Shell, failing: str = "") -> list[str]:
    """Every command of the page that ran; the first that has the word `failing` ends with 1, all others with 0."""
    ran, printed = [], ""
    for step in steps(page):
        if step.file:
            path = shell.folder / step.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text, encoding="utf-8")
        elif step.language == "sh":
            wanted = int(bool(failing) and failing in step.text and not any(failing in command for command in ran))
            code, printed = shell.run(re.sub(r"^make ", "make --dry-run ", step.text))
            assert code == wanted, f"{step.text}: {printed}"
            ran.append(step.text)
        else:
            assert step.text.strip() in printed
    return ran


def test_getting_started(libraries: Path, tmp_path: Path) -> None:
    """`make demo` is only asked what it would do."""
    root = checkout(tmp_path / "checkout")
    ran = followed("getting-started.md", Shell(root))
    assert [shlex.split(command)[0] for command in ran] == [
        "make", "source", "python", "diopigen", "diopi-conformance", "op-tools",
    ]  # fmt: skip
    assert "<h1>Conformance of droplet" in (root / "build" / "relu.html").read_text(encoding="utf-8")


def test_install(libraries: Path, tmp_path: Path) -> None:
    ran = followed("install.md", Shell(checkout(tmp_path / "checkout")))
    assert ran == ["make setup", "source .venv/bin/activate", "diopigen doctor"]


def test_make_demo(libraries: Path) -> None:
    done = subprocess.run(["make", "demo"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and re.search(r"^done \(at ", done.stdout, re.MULTILINE), done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_the_tutorial(libraries: Path, tmp_path: Path) -> None:
    shell = Shell(checkout(tmp_path / "checkout"))
    assert shell.run("source .venv/bin/activate") == (0, "")
    followed("tutorial.md", shell, failing="--html relu.html")
    pages = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "chip-kernels").glob("*.html")}
    assert sorted(pages) == ["coverage.html", "relu.html"]
    assert "<title>Conformance of chip: passed</title>" in pages["relu.html"]

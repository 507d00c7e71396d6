"""The documentation and the coverage are the same bytes under another hash seed, locale and order of files."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from diopigen.project import Project
from tests.golden.conftest import lay_out

DRIVE = Path(__file__).with_name("drive.py")
Run = Callable[[str, str, str], dict[str, bytes]]


@pytest.fixture
def run(checkout: Project, tmp_path: Path) -> Run:
    """Writes the pages and the three coverages into an empty folder and gives each file's bytes by its path."""
    project = lay_out(tmp_path / "project")

    def write(seed: str, locale: str, order: str) -> dict[str, bytes]:
        out = tmp_path / f"out-{seed}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
        environment |= {"PYTHONHASHSEED": seed, "LC_ALL": locale, "DIOPIGEN_CACHE_DIR": str(checkout.cache)}
        command = [sys.executable, str(DRIVE), order, "--project", str(project.root)]
        coverage = ["coverage", "--vendor", "chip", "--format"]
        forms = [[*coverage, form, "--out", str(out / f"chip.{form}")] for form in ("markdown", "json", "html")]
        for words in (["docs", "--out", str(out)], *forms):
            done = subprocess.run([*command, *words], env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        files = (path for path in out.rglob("*") if path.is_file())
        return {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(files)}

    return write


def test_pages_are_the_same(run: Run) -> None:
    plain, other = run("0", "C.UTF-8", "as-is"), run("4242", "C", "reversed")
    assert "chip.html" in plain and "pages/operators/arithmetic/add.md" in plain
    assert sorted(plain) == sorted(other)
    assert [path for path in plain if plain[path] != other[path]] == []

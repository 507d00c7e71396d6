"""The releases of Python that the packages say they run on: the same in each, and no warning from their own modules."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = (ROOT / "pyproject.toml", *sorted(ROOT.glob("python/*/pyproject.toml")))
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
PREFIX = "Programming Language :: Python :: "
FOLDERS = ("generators", "conformance", "python", "demo", "tools", "tests", "benchmarks")
COMPILED = """
import pathlib, sys, warnings
warnings.simplefilter("error")
for folder in sys.argv[1:]:
    for path in pathlib.Path(folder).rglob("*.py"):
        compile(path.read_bytes(), str(path), "exec")
"""


def releases(path: Path) -> list[str]:
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == ">=3.11"
    return [word.removeprefix(PREFIX) for word in project["classifiers"] if word.startswith(PREFIX)]


RELEASES = releases(PROJECTS[0])


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_packages_name_the_same_releases(path: Path) -> None:
    assert releases(path) == RELEASES
    assert RELEASES[0] == "3.11" and HERE in RELEASES


@pytest.mark.parametrize("release", RELEASES)
def test_sources_compile_without_a_warning(release: str) -> None:
    python = sys.executable if release == HERE else shutil.which(f"python{release}")
    if python is None or not _starts(python):
        pytest.skip(f"there is no python{release}")
    done = subprocess.run([python, "-c", COMPILED, *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _starts(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    "words", [("lint", "--vendor", "droplet"), ("explain", "add"), ("coverage", "--vendor", "droplet")]
)
def test_commands_give_no_warning(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-W", "error", "-m", "diopigen", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not re.search(r"\w+Warning", done.stderr), done.stderr

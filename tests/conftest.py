"""Fixtures that more than one kind of test needs."""

import json
import math
import os
import shutil
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from diopigen.project import Project
from tests.built import forget
from tests.processes import built_folder

pytest_plugins = ["tests.tiers", "tests.times"]

ROOT = Path(__file__).resolve().parent.parent
TIMES = ROOT / "benchmarks" / "results" / "test_times.json"  # written by `make times`


@pytest.fixture(scope="session")
def libraries() -> Path:
    """Where the libraries of the PyTorch backend lie; the test is skipped where they are not built."""
    folder = built_folder()
    if folder is None:
        pytest.skip("torch_dipu is not built")
    return folder


@pytest.fixture(scope="session")
def checkout() -> Project:
    """This checkout."""
    return Project(root=ROOT)


# Of the checkout's cache: what follows from the installed torch and from run-time sources, which a miniature has, too.
KNOWN = ("aten-*.tsv", "checks.json", "derive.json", "shape.json")


@pytest.fixture
def miniature(tmp_path: Path) -> Callable[..., Project]:
    """Makes a project in a temporary folder: the real ground files, templates and run time, other ops and vendors."""

    def make(ops: dict[str, str], vendors: dict[str, dict[str, str]] | None = None) -> Project:
        root = tmp_path / "project"
        (root / "schemas" / "ops").mkdir(parents=True)
        (root / "vendors").mkdir()
        for name in ("dtypes.yaml", "runtime.yaml"):
            shutil.copy(ROOT / "schemas" / name, root / "schemas" / name)
        (root / "schemas" / "patterns.yaml").write_text("{}\n", encoding="utf-8")
        for folder in ("templates", "runtime_cpp", "generators"):
            (root / folder).symlink_to(ROOT / folder)
        for name, text in ops.items():
            (root / "schemas" / "ops" / name).write_text(text, encoding="utf-8")
        for vendor, files in (vendors or {}).items():
            for name, text in files.items():
                path = root / "vendors" / vendor / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        known = root / ".cache" / "diopigen"
        known.mkdir(parents=True)
        for path in (found for pattern in KNOWN for found in (ROOT / ".cache" / "diopigen").glob(pattern)):
            shutil.copy(path, known)
        return Project(root=root)

    return make


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compares a text with the file that keeps it; `--snapshot-update` (make golden) writes the file."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--snapshot-update"):
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text

    return compare


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """`make test` builds first and sets DIOPI_REQUIRE_BUILD: a test that misses the build has then failed."""
    report = yield
    if report.skipped and os.environ.get("DIOPI_REQUIRE_BUILD") == "1" and "not built" in str(report.longrepr):
        report.outcome = "failed"
    return report


def pytest_sessionstart(session: pytest.Session) -> None:
    """Removes what no test has used for a week."""
    if not hasattr(session.config, "workerinput"):
        forget()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts files that take long, or nobody knows how long, first: no process is left with one at the end."""
    seconds = json.loads(TIMES.read_text(encoding="utf-8"))["files"] if TIMES.exists() else {}

    def place(item: pytest.Item) -> float:
        wall, _ = seconds.get(item.path.relative_to(ROOT).as_posix(), (math.inf, 0.0))
        return -wall

    items.sort(key=place)

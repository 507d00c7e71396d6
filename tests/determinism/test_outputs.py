"""The same bytes whatever the hash seed, the folder that it is started from, the locale or the order of files."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from diopigen.project import Project

DRIVE = Path(__file__).with_name("drive.py")

# One run differs from the plain one in one thing, the last in all at once.
RUNS: Mapping[str, Mapping[str, str]] = {
    "another hash seed": {"seed": "4242"},
    "another working folder": {"folder": "elsewhere"},
    "the C locale": {"locale": "C"},
    "another checkout": {"root": "other"},
    "files listed backwards": {"order": "reversed"},
    "all of it": {"seed": "7", "folder": "elsewhere", "locale": "C", "order": "reversed", "root": "other"},
}

_INPUTS = ("schemas", "templates", "generators", "runtime_cpp", "vendors", "generated/include")

# These record when and where something was written, for build tools; they are no outputs.
_RECORDS = (".depfile", ".fresh.json", ".last.kept", ".stamp")

Run = Callable[..., dict[str, bytes]]


@pytest.fixture(scope="module")
def source(checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of everything that is read, so that an edit in the checkout cannot come between two runs."""
    copy = tmp_path_factory.mktemp("source") / "project"
    for name in _INPUTS:
        shutil.copytree(checkout.root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture(scope="module")
def run(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Generates both vendors with nothing cached and gives each output's bytes by its path."""

    def generate(
        seed: str = "0", folder: str = "here", locale: str = "C.UTF-8", order: str = "as-is", root: str = "same"
    ) -> dict[str, bytes]:
        place = tmp_path_factory.mktemp("run")
        start, out, project = place / folder, place / "out", source
        start.mkdir()
        if root == "other":
            project = shutil.copytree(source, place / "elsewhere" / "deeper")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
        environment |= {
            "PYTHONHASHSEED": seed,
            "LC_ALL": locale,
            "DIOPIGEN_CACHE_DIR": str(place / "cache"),
            "PYTHONPATH": str(project / "generators"),
        }
        for vendor in ("droplet", "torch"):
            command = [sys.executable, str(DRIVE), order, "--project", str(project)]
            command += ["all", "--vendor", vendor, "--out", str(out)]
            done = subprocess.run(command, cwd=start, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        files = (path for path in out.rglob("*") if path.is_file() and path.name not in _RECORDS)
        return {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(files)}

    return generate


@pytest.fixture(scope="module")
def plain(run: Run) -> dict[str, bytes]:
    outputs = run()
    assert len(outputs) > 80
    return outputs


ALONE = pytest.mark.deep("matrix", "'all of it' differs from the first run in all of these at once")


@pytest.mark.parametrize(
    "change", [pytest.param(change, marks=() if change == "all of it" else ALONE) for change in RUNS]
)
def test_outputs_are_the_same_with(change: str, run: Run, plain: dict[str, bytes]) -> None:
    outputs = run(**RUNS[change])
    assert list(outputs) == list(plain)
    assert [path for path, text in outputs.items() if text != plain[path]] == []


def test_outputs_name_no_place_of_this_machine(plain: dict[str, bytes], source: Path) -> None:
    root = str(source).encode()
    assert [path for path, text in plain.items() if root in text or b"/tmp/" in text] == []

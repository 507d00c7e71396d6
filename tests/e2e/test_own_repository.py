"""A vendor's own repository, outside of any checkout: `new-vendor --dir`, every command in it, CMake and training."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from diopigen.cli import cli
from tests import processes

NAME = "marble"
FILES = [
    *(".github/workflows/test.yml", ".gitignore", "CMakeLists.txt", "README.md", "device.cpp", "launcher.h"),
    *("pyproject.toml", "tests/test_training.py", "torch_dipu_marble/__init__.py", "train.py", "vendor.yaml"),
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own") / "marble-kernels"
    done = CliRunner().invoke(cli, ["new-vendor", NAME, "--dir", str(folder)])
    assert done.exit_code == 0, done.output
    return folder


def run(folder: Path, *words: str) -> Result:
    """A command as it is started in `folder`."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        return CliRunner().invoke(cli, list(words))
    finally:
        os.chdir(before)


def test_the_files(repository: Path) -> None:
    found = sorted(path.relative_to(repository).as_posix() for path in repository.rglob("*") if path.is_file())
    assert [name for name in found if not name.startswith((".cache", "generated", "build"))] == FILES
    assert "name: marble\n" in (repository / "vendor.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["README.md", "train.py"])
def test_a_folder_with_such_a_file_stays_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine", encoding="utf-8")
    done = CliRunner().invoke(cli, ["new-vendor", NAME, "--dir", str(tmp_path)])
    assert (done.exit_code, done.output) == (
        2,
        f"{tmp_path} has '{name}' already, and stays as it is; name a new folder\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("words", [("lint",), ("explain", "diopiAdd"), ("coverage",), ("fmt", "--check")], ids=str)
@pytest.mark.parametrize("inner", ["", "tests"])
def test_commands_need_no_name_in_it(repository: Path, words: tuple[str, ...], inner: str) -> None:
    done = run(repository / inner, *words)
    assert done.exit_code == 0, done.output


def test_a_mistake_is_told_at_its_place(repository: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copy"
    shutil.copytree(repository, copied, ignore=shutil.ignore_patterns("build", "generated", ".cache"))
    (copied / "convert_config.yaml").write_text("- diopiAdd:\n    dtyp: (float64)->float32\n", encoding="utf-8")
    done = run(copied, "lint")
    assert done.exit_code == 1
    assert "convert_config.yaml:2:5: error[unknown-key]: " in done.output


@pytest.mark.parametrize("way", ["option", "variable", "path"])
def test_from_elsewhere(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    before, after = ["--vendor-dir", str(repository)] if way == "option" else [], ["--vendor", NAME]
    if way == "variable":
        monkeypatch.setenv("DIOPI_VENDOR_DIR", str(repository))
    if way == "path":
        after = ["--vendor", str(repository)]
    done = run(tmp_path, *before, "coverage", *after)
    assert done.exit_code == 0 and NAME in done.output.splitlines()[0], done.output


def test_a_folder_that_is_no_vendors(tmp_path: Path) -> None:
    done = run(tmp_path, "--vendor-dir", str(tmp_path), "lint")
    assert done.exit_code == 2
    said = f"there is no vendor.yaml in {tmp_path}; 'diopigen new-vendor NAME --dir {tmp_path}' makes one"
    assert said in " ".join(done.output.split())


@pytest.fixture(scope="module")
def library(repository: Path) -> Path:
    """Its library, built as its README says."""
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    package = run(repository, "cmake-dir").output.strip()
    configure = ["cmake", "-S", ".", "-B", "build", f"-DDiopi_DIR={package}", f"-DPython_EXECUTABLE={sys.executable}"]
    environment = {**os.environ, "PATH": search, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    for command in (configure, ["cmake", "--build", "build", "--parallel", "2"]):
        done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return repository / "build" / "lib" / "libdiopi_impl.so"


def test_it_computes_and_trains(library: Path, repository: Path, libraries: Path) -> None:
    variables = {"DIPU_VENDOR_LIBRARY": str(library), "DIPU_LIBRARY_DIR": str(libraries)}
    program = 'import torch_dipu, torch; torch_dipu.start(); print((torch.ones(2, device="dipu") + 1).tolist())'
    done = processes.run_python("-c", program, **variables)
    assert (done.stdout, done.returncode) == ("[2.0, 2.0]\n", 0), done.stderr
    text = "import torch_dipu; torch_dipu.start()\n" + (repository / "train.py").read_text(encoding="utf-8")
    done = processes.run_python("-c", text, **variables)
    assert "loss after 50 steps" in done.stdout, done.stderr

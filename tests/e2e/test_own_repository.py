"""A vendor's own repository, outside of any checkout: `new-vendor --dir`, every command in it, CMake and training."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from diopigen.cli import cli
from tests import processes
from tests.built import ROOT

NAME = "marble"
PAGE = ROOT / "docs" / "adding-a-vendor.md"
FILES = [
    *(".github/workflows/test.yml", ".gitignore", "CMakeLists.txt", "CMakePresets.json", "README.md", "device.cpp"),
    *("launcher.h", "pyproject.toml", "tests/test_training.py", "torch_dipu_marble/__init__.py", "train.py"),
    "vendor.yaml",
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


def test_an_entry_of_its_own_is_begun(repository: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copy"
    shutil.copytree(repository, copied, ignore=shutil.ignore_patterns("build", "generated", ".cache"))
    done = run(copied, "new", "softcap", "--like", "hardtanh")
    said = "vendor.yaml names no folder of operators of its own; add 'schemas: [schemas]' to it\n"
    assert (done.exit_code, done.output) == (2, said)
    with (copied / "vendor.yaml").open("a", encoding="utf-8") as file:
        file.write("schemas: [schemas]\n")
    (copied / "schemas").mkdir()
    done = run(copied, "new", "softcap", "--like", "hardtanh")
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert lines[0] == "schemas/operators.yaml:2: 'softcap', after the model of 'hardtanh'"
    assert lines[2:] == [
        "adapt:  args, out, where, variants, kernel, backward, cases",
        "then:   diopigen lint                    # placeholders that are left, and every error",
        "        diopigen explain softcap",
        "        cmake --build build",
    ]
    assert run(copied, "fmt", "--check").exit_code == 0
    path = copied / "schemas" / "operators.yaml"
    first = path.read_text(encoding="utf-8").splitlines()[0]
    schema = first.removeprefix("# yaml-language-server: $schema=")
    assert schema == "../generated/op.schema.json"
    assert run(copied, "header").exit_code == 0 and (path.parent / schema).is_file()
    assert "schemas/operators.yaml:3:8: error[placeholder]: the 'doc' of 'softcap'" in run(copied, "lint").output
    done = run(copied, "new", "softcap")
    said = "there is an op 'softcap' already, at schemas/operators.yaml:2; edit it or choose another name\n"
    assert (done.exit_code, done.output) == (2, said)
    done = run(copied, "new", "relu")
    assert done.exit_code == 2 and done.output.startswith("there is an op 'relu' already, at ")


@pytest.mark.parametrize("words", [("docs",), ("compat", "--torch", "2.13", "2.14"), ("new-vendor", "other")], ids=str)
def test_what_is_for_a_checkout(repository: Path, words: tuple[str, ...]) -> None:
    done = run(repository, *words)
    what = f"this is for a checkout of diopigen, and {repository} is the repository of a vendor"
    cure = "name a folder for 'other' by --dir" if words[0] == "new-vendor" else "name one by --project"
    assert done.exit_code == 2
    assert done.output.splitlines()[-1] == f"Error: {what}; {cure}"


def test_the_doctor_looks_for_what_the_package_needs(repository: Path) -> None:
    done = run(repository, "doctor", "--format", "json")
    found = {(check["target"], check["what"], check["needed"]) for check in json.loads(done.output)}
    assert {("generate", "jinja2", True), ("generate", "libclang", True), ("conformance", "safetensors", False)} < found
    assert (f"vendor {NAME}", "torch_dipu", True) in found
    assert not {what for target, what, _ in found if what == "torch_dipu" and target != f"vendor {NAME}"}
    assert not {target for target, _, _ in found} & {"test", "dev", "docs", "models"}


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


def built(repository: Path) -> Path:
    """Its library, built as its README says."""
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    package = run(repository, "cmake-dir").output.strip()
    configure = ["cmake", "-S", ".", "-B", "build", f"-DDiopi_DIR={package}", f"-DPython_EXECUTABLE={sys.executable}"]
    environment = {**os.environ, "PATH": search, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    for command in (configure, ["cmake", "--build", "build", "--parallel", "2"]):
        done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return repository / "build" / "lib" / "libdiopi_impl.so"


@pytest.fixture(scope="module")
def library(repository: Path) -> Path:
    return built(repository)


def test_the_suite_finds_what_is_built(library: Path, repository: Path) -> None:
    done = processes.run_python(
        "-m", "diopi_conformance.cli", "run", "--op", "add", "--sample", "1", "-q", folder=repository
    )
    assert "4 not-implemented" in done.stdout, done.stdout + done.stderr


def test_it_computes_and_trains(library: Path, repository: Path, libraries: Path) -> None:
    variables = {"DIPU_VENDOR_LIBRARY": str(library), "DIPU_LIBRARY_DIR": str(libraries)}
    program = 'import torch_dipu, torch; torch_dipu.start(); print((torch.ones(2, device="dipu") + 1).tolist())'
    done = processes.run_python("-c", program, **variables)
    assert (done.stdout, done.returncode) == ("[2.0, 2.0]\n", 0), done.stderr
    text = "import torch_dipu; torch_dipu.start()\n" + (repository / "train.py").read_text(encoding="utf-8")
    done = processes.run_python("-c", text, **variables)
    assert "loss after 50 steps" in done.stdout, done.stderr


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the operator of its own that the page adds, built."""
    folder = tmp_path_factory.mktemp("extended") / "marble-kernels"
    assert CliRunner().invoke(cli, ["new-vendor", NAME, "--dir", str(folder)]).exit_code == 0
    section = PAGE.read_text(encoding="utf-8").partition("## An operator of your own\n")[2].partition("\n## ")[0]
    first, *commands = re.findall(r"^\$ (.*)$", section, re.MULTILINE)
    subprocess.run(first, shell=True, cwd=folder, check=True)
    for path, text in re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
        (folder / path).write_text(text, encoding="utf-8")
    for command in (command for command in commands if command.startswith("diopigen ")):
        done = run(folder, *command.split()[1:])
        assert done.exit_code == 0 and not re.search(r"warning\[(?!aten-drifted)", done.output), done.output
    built(folder)
    (folder / "conformance").write_text(commands[-1], encoding="utf-8")
    return folder


def test_an_operator_of_its_own_conforms(extended: Path) -> None:
    words = shlex.split((extended / "conformance").read_text(encoding="utf-8"))
    done = processes.run_python("-m", "diopi_conformance.cli", *words[1:], folder=extended)
    assert done.returncode == 0 and re.search(r"^32 of 32 passed", done.stdout, re.MULTILINE), done.stdout + done.stderr
    report = json.loads((extended / "conformance_results" / f"{NAME}.json").read_text(encoding="utf-8"))
    assert report["planned"] == 32
    wrong = extended / "wrong.py"
    right = (extended / "schemas" / "references.py").read_text(encoding="utf-8")
    wrong.write_text(right.replace("** 2", "** 3"), encoding="utf-8")
    words[words.index("--references") + 1] = str(wrong)
    done = processes.run_python("-m", "diopi_conformance.cli", *words[1:], folder=extended)
    assert done.returncode == 1, done.stdout


PROGRAM = """
import torch, torch_dipu
torch_dipu.start()
x, y = torch.randn(4, 5), torch.randn(5)
a, b = x.to("dipu"), y.to("dipu")
gap = torch.ops.marble.squared_gap
torch.testing.assert_close(gap(a, b, 0.5).cpu(), 0.5 * (x - y) ** 2)
torch.testing.assert_close(gap(a, b).cpu(), (x - y) ** 2)
print(gap.default._schema, gap(a, b).device, *gap(a.to("meta"), b.to("meta")).shape)
try:
    gap(a, b.double())
except RuntimeError as error:
    print(error)
program = torch.compile(lambda a, b: gap(a + 1, b, 0.5).relu() * 2, backend="diopi", fullgraph=True)
torch.testing.assert_close(program(a, b).cpu(), (0.5 * (x + 1 - y) ** 2) * 2)
torch.library.opcheck(gap.default, (a, b, 0.5), test_utils=("test_schema", "test_faketensor"))
print(torch.dipu.fallback.report())
"""


def test_an_operator_of_its_own_in_torch(extended: Path, libraries: Path) -> None:
    library = extended / "build" / "lib" / "libdiopi_impl.so"
    variables = {"DIPU_VENDOR_LIBRARY": str(library), "DIPU_LIBRARY_DIR": str(libraries)}
    done = processes.run_python("-c", PROGRAM, **variables)
    assert done.returncode == 0, done.stderr
    schema = "marble::squared_gap(Tensor input, Tensor other, float alpha=1.) -> Tensor"
    dtypes = "'squared_gap': 'input' is of torch.float32, and 'other' of torch.float64"
    assert done.stdout.splitlines()[:2] == [f"{schema} dipu:0 4 5", dtypes]
    text = "import torch_dipu; torch_dipu.start()\n" + (extended / "use.py").read_text(encoding="utf-8")
    done = processes.run_python("-c", text, **variables)
    assert (done.stdout, done.returncode) == ("torch.Size([4, 5]) torch.Size([4, 5])\n", 0), done.stderr


def test_a_library_without_its_operators(extended: Path, libraries: Path, tmp_path: Path) -> None:
    """The description is of another build than the library."""
    library = shutil.copy(extended / "build" / "lib" / "libdiopi_impl.so", tmp_path)
    described = (extended / "build" / "lib" / "own_operators.json").read_text(encoding="utf-8")
    (tmp_path / "own_operators.json").write_text(described.replace("SquaredGap", "CubedGap"), encoding="utf-8")
    variables = {"DIPU_VENDOR_LIBRARY": str(library), "DIPU_LIBRARY_DIR": str(libraries)}
    done = processes.run_python("-c", "import torch", TORCH_DEVICE_BACKEND_AUTOLOAD="1", **variables)
    said = "the device dipu is not available: the vendor's library lacks diopiCubedGap; build it again"
    assert said in done.stderr

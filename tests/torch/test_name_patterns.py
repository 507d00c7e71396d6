"""Lists of operators and settings of the environment, as the backend reads them; compiled by themselves."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import torch_folders

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import ctypes, sys
import torch
lists = ctypes.CDLL(sys.argv[1])
words = lambda *texts: [text.encode() for text in texts]
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    headers, libraries = torch_folders()
    built = tmp_path_factory.mktemp("lists") / "liblists.so"
    backend = ROOT / "runtime_cpp" / "torch"
    sources = [backend / "interposer" / "name_patterns.cpp", backend / "settings.cpp"]
    folders = [f"-I{backend}", *(f"-isystem{path}" for path in headers)]
    links = [word for path in libraries for word in (f"-L{path}", f"-Wl,-rpath,{path}")]
    flags = ["-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o", str(built)]
    command = ["g++", *flags, *folders, str(Path(__file__).with_name("name_patterns.cpp"))]
    subprocess.run([*command, *map(str, sources), *links, "-ltorch_cpu", "-lc10"], check=True)
    return built


def run(library: Path, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM + program, str(library)]
    variables = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PATH": "/usr/bin:/bin", **environment}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True)


MATCHES = {
    "add.out": "add.out add.Tensor add_.Tensor aten::add.Tensor",
    "aten::add.out": "add.Tensor add_.Tensor",
    "add_.Tensor": "add.Tensor add.out",
    "relu": "relu relu.out relu_",
    "relu_": "relu relu.out relu_",
    "sub.Tensor": "sub.out sub_.Tensor",
    "sort.values_stable": "sort.stable",
    r"mul\..*": "mul.Tensor mul.out mul.Scalar",
    "mm, conv.*": "mm mm.out convolution",
    "_foreach_mul_.List": "_foreach_mul.List",
}
OTHERS = {
    "add.out": "add.Scalar add_.Scalar sub.Tensor addmm.out",
    r"mul\..*": "mul_.Tensor",
    "relu": "relu6 leaky_relu",
    "sort.values_stable": "sort sort.values",
    "addd.out": "add.out add.Tensor",
    "__iand__.Tensor": "__and__.Tensor",
}


def test_a_name_of_an_overload_stands_for_its_forms(library: Path) -> None:
    program = f"""
for expected, cases in ((1, {MATCHES!r}), (0, {OTHERS!r})):
    for listed, names in cases.items():
        for name in names.split():
            if lists.matches(*words(listed, name)) != expected:
                print(listed, name)
print(lists.unmatched(*words("add.out, addd.out, sub.*", "add.Tensor")))
"""
    assert run(library, program).stdout == "2\n"


@pytest.mark.parametrize(
    ("value", "on"), [("1", "1"), ("True", "1"), ("0", "0"), ("false", "0"), ("OFF", "0"), ("", "0")]
)
def test_words_that_switch_something_off(library: Path, value: str, on: str) -> None:
    result = run(library, "print(lists.memory_is_checked())", DIPU_MEM_CHECK=value, DIPU_ROOT="/opt/dipu")
    assert (result.stdout.strip(), result.stderr) == (on, "")


@pytest.mark.parametrize(
    ("environment", "synchronized"),
    [
        ({"DIPU_SYNCHRONIZE_OPS_LIST": "mul"}, "0 1"),
        ({"DIPU_SYNC_EXEC_MODE": "1"}, "1 1"),
        ({"DIPU_SYNC_EXEC_MODE": "1", "DIPU_SYNCHRONIZE_OPS_LIST": "mul"}, "1 1"),
        ({"DIPU_SYNC_EXEC_MODE": "0", "DIPU_SYNCHRONIZE_OPS_LIST": "mul"}, "0 1"),
        ({}, "0 0"),
    ],
)
def test_what_the_device_is_synchronized_after(library: Path, environment: dict[str, str], synchronized: str) -> None:
    program = "print(*(lists.synchronizes(name) for name in (b'add.Tensor', b'mul.Tensor')))"
    assert run(library, program, **environment).stdout.strip() == synchronized


def test_the_established_names_of_a_variable_and_its_file(library: Path, tmp_path: Path) -> None:
    (tmp_path / ".dipu_force_fallback_op_list.config").write_text("add.out\n")
    program = f"import os; os.chdir({str(tmp_path)!r}); print(lists.fallbacks_are_logged())"
    result = run(library, program, DIPU_LOG_FALLBACK_INFO="1")
    told = "dipu: .dipu_force_fallback_op_list.config is not read: set DIPU_FORCE_FALLBACK_OPS_LIST to its lines, "
    assert result.stdout == "1\n" and result.stderr.count("dipu:") == 1 and told in result.stderr


def test_variables_without_effect_are_named_once(library: Path) -> None:
    others = {"DIPU_DEBUG_ALLOCATOR": "15", "DIPU_FORCE_FALLBACK_OP_LIST": "add", "DIPU_DUMP_OP_ARGS": "0"}
    result = run(library, "lists.memory_is_checked(); lists.memory_is_checked()", **others)
    (line,) = (line for line in result.stderr.splitlines() if "dipu:" in line)
    said = line.partition("dipu: environment variables without effect: ")[2]
    assert set(said.partition(" (function")[0].split(", ")) == {"DIPU_DEBUG_ALLOCATOR", "DIPU_FORCE_FALLBACK_OP_LIST"}

"""The other two vendors of docs/adding-a-vendor.md: a chip with a compiler like CUDA's, made by the page's commands and
compiled by nvcc over an SDK that renames CUDA, and a chip whose library computes one operator."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from diopigen.project import Project
from tests.e2e.page_vendors import PAGE, ROOT, diopigen, page_files, page_project

COMMANDS = re.compile(r"^\$ ((?:mkdir|sed) .*vendors/ember.*)$", re.MULTILINE)
KERNELS = ROOT / "runtime_cpp" / "kernels"
STRICTLY = ("-std=c++17", "-Wall", "-Wextra", "-Werror")

# What cuBLAS declares of what vendors/cuda uses, for machines that have a compiler but no library.
MATRIX_LIBRARY = """#pragma once
#include <ember_runtime.h>
#define EMBER_R_16F CUDA_R_16F
#define EMBER_R_16BF CUDA_R_16BF
#define EMBER_R_32F CUDA_R_32F
#define EMBER_R_64F CUDA_R_64F
enum emblasStatus_t { EMBLAS_STATUS_SUCCESS };
enum emblasComputeType_t { EMBLAS_COMPUTE_32F, EMBLAS_COMPUTE_64F, EMBLAS_COMPUTE_32F_FAST_TF32 };
enum emblasOperation_t { EMBLAS_OP_N, EMBLAS_OP_T };
enum emblasGemmAlgo_t { EMBLAS_GEMM_DEFAULT };
typedef struct emblasContext* emblasHandle_t;
const char* emblasGetStatusString(emblasStatus_t);
emblasStatus_t emblasCreate(emblasHandle_t*);
emblasStatus_t emblasDestroy(emblasHandle_t);
emblasStatus_t emblasSetStream(emblasHandle_t, emberStream_t);
enum emblasMath_t { EMBLAS_DEFAULT_MATH, EMBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16 };
emblasStatus_t emblasSetMathMode(emblasHandle_t, emblasMath_t);
emblasStatus_t emblasGemmEx(emblasHandle_t, emblasOperation_t, emblasOperation_t, int, int, int, const void*,
                            const void*, emberDataType_t, int, const void*, emberDataType_t, int, const void*, void*,
                            emberDataType_t, int, emblasComputeType_t, emblasGemmAlgo_t);
emblasStatus_t emblasGemmStridedBatchedEx(emblasHandle_t, emblasOperation_t, emblasOperation_t, int, int, int,
                                          const void*, const void*, emberDataType_t, int, long long, const void*,
                                          emberDataType_t, int, long long, const void*, void*, emberDataType_t, int,
                                          long long, int, emblasComputeType_t, emblasGemmAlgo_t);
"""
FLINTNN = """#pragma once
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct flintnnContext* flintnnHandle_t;
%s
#ifdef __cplusplus
}
#endif
"""


def run(command: Sequence[str | Path]) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def ember(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A checkout with the vendor that the page's files and commands make."""
    root = tmp_path_factory.mktemp("ember")
    project = page_project(root, "ember")
    (root / "vendors" / "cuda").symlink_to(ROOT / "vendors" / "cuda")
    commands = COMMANDS.findall(PAGE.read_text(encoding="utf-8"))
    assert len(commands) == 6
    for command in commands[1:]:  # the folder is there
        subprocess.run(command, shell=True, cwd=root, check=True)
    return project


@pytest.fixture(scope="module")
def sdk(ember: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chip's headers: CUDA's, with every name that the vendor uses under the chip's prefix."""
    folder = tmp_path_factory.mktemp("sdk")
    sources = [p for p in (ember.vendors / "ember").iterdir() if p.suffix in (".cpp", ".cu", ".h")]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    text += re.sub(r"DIOPI_RUNTIME\((\w+)\)", r"ember\1", (ROOT / "runtime_cpp/device/table.h").read_text("utf-8"))
    names = sorted(set(re.findall(r"\bember[A-Z]\w*", text)) | {"emberDataType_t"})
    defines = "".join(f"#define {name} {name.replace('ember', 'cuda')}\n" for name in names)
    for header in sorted(set(re.findall(r"#include <(ember\w*\.h)>", text))):
        include = f"#pragma once\n#include <{header.replace('ember', 'cuda')}>\n"
        (folder / header).write_text(include + defines, encoding="utf-8")
    (folder / "emblas_v2.h").write_text(MATRIX_LIBRARY, encoding="utf-8")
    return folder


def test_a_simt_chip_has_every_function(ember: Project) -> None:
    folder = ember.vendors / "ember"
    found = sorted(path.name for path in folder.iterdir())
    headers = ["gemm_kind.h", "launcher.h", "library_handles.h"]
    expected = ["CMakeLists.txt", "device.cpp", "gemm.cu", *headers, "vendor.yaml"]
    assert found == expected
    done = diopigen(ember, "lint", "--vendor", "ember")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "runtime_cpp/kernels/shape/mesh_grid.cpp" in diopigen(ember, "explain", "mesh_grid", "--vendor", "ember").stdout
    )
    own = "".join(p.read_text(encoding="utf-8") for p in folder.iterdir() if p.suffix != ".txt")
    assert re.findall(r"\bcu(?:da|blas)\w*", own) == []


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc, the CUDA compiler")
@pytest.mark.parametrize("source", ["device.cpp", "gemm.cu", "shape/mesh_grid.cpp"])
def test_a_simt_chip_compiles(ember: Project, sdk: Path, source: str) -> None:
    folder = ember.vendors / "ember"
    path = folder / source if (folder / source).exists() else KERNELS / source
    command = [
        "nvcc",
        "-std=c++17",
        "-arch=sm_90",
        "-Xcicc",
        "-O0",
        "-Xptxas",
        "-O0",
        "-Xcompiler",
        "-Wall,-Wextra,-Werror",
    ]
    command += ["-x", "cu", "--extended-lambda"] if source != "device.cpp" else []
    command += [f"-I{p}" for p in (ROOT / "generated/include", ROOT / "runtime_cpp", KERNELS, folder, sdk)]
    run([*command, f'-DDIOPI_LAUNCHER_HEADER="{folder}/launcher.h"', "-c", "-o", "/dev/null", path])


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc, the CUDA compiler")
def test_the_compiler_of_the_chip_gets_the_kernels(ember: Project) -> None:
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if cmake is None:
        pytest.skip("there is no cmake")
    build = ember.root / "build" / "ember"
    settings = ["-DDIOPI_VENDOR=ember", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    run([cmake, "-S", ember.root, "-B", build, *settings, f"-DPython_EXECUTABLE={sys.executable}"])
    commands = {
        Path(entry["file"]).name: entry["command"]
        for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    }
    for source in ("mesh_grid.cpp", "matrix.cpp", "elementwise_unary.cpp", "gemm.cu"):
        assert "nvcc" in commands[source].split()[0]
        assert "vendors/ember/launcher.h" in commands[source]
    assert "nvcc" not in commands["device.cpp"].split()[0]


@pytest.fixture(scope="module")
def flint(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A checkout with the vendor whose library computes one operator; the page shows what the library declares."""
    project = page_project(tmp_path_factory.mktemp("flint"), "flint")
    declared = re.search(r"```c\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert declared is not None
    header = project.vendors / "flint" / "sdk" / "include" / "flintnn.h"
    header.parent.mkdir(parents=True)
    header.write_text(FLINTNN % declared[1], encoding="utf-8")
    return project


def test_a_library_serves_one_function(flint: Project) -> None:
    done = diopigen(flint, "lint", "--vendor", "flint")
    assert done.returncode == 0, done.stdout + done.stderr
    explained = diopigen(flint, "explain", "diopiSoftmax", "--vendor", "flint").stdout
    assert "vendors/flint/functions/softmax.cpp" in explained
    assert "vendors/flint/convert_config.yaml" in explained
    assert "functions/softmax.cpp" not in diopigen(flint, "explain", "diopiLogSoftmax", "--vendor", "flint").stdout
    assert sorted(page_files("flint")) == ["convert_config.yaml", "functions/softmax.cpp", "vendor.yaml"]


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_a_function_over_a_library_compiles(flint: Project) -> None:
    folder = flint.vendors / "flint"
    include = (ROOT / "generated/include", ROOT / "runtime_cpp", KERNELS, folder / "sdk/include")
    run(["g++", *STRICTLY, *(f"-I{p}" for p in include), "-fsyntax-only", folder / "functions" / "softmax.cpp"])

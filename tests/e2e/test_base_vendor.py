"""Two chips of one family: the younger has one function of its own, the rest it takes from the older and from the
portable kernels, in one library that CMake builds."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from diopigen.project import Project

ROOT = Path(__file__).resolve().parents[2]
LINKED = ("templates", "runtime_cpp", "generators", "CMakeLists.txt")

OPS = """\
cast_dtype:
  doc: Converts `input` to the type of `out`.
  args: {input: Tensor<T>}
  out: Tensor<U> like input
  where: {T: any, U: any}
  cases:
    - {input: [8]}
double:
  doc: Doubles `input`.
  args: {input: Tensor<T>}
  out: Tensor<T> like input
  where: {T: [f32, f64]}
  kernel: input + input
  cases:
    - {input: [8]}
weigh:
  doc: Multiplies `input` with `weight`.
  args: {input: Tensor<T>, weight: Tensor<T>}
  out: Tensor<T> like input
  where: {T: [f32, f64]}
  variants: [out, inplace]
  cases:
    - {input: [8], weight: [8]}
"""
EXPORTED = """\
{name}:
  doc: Multiplies `input` with a number.
  args: {{input: Tensor<T>}}
  out: Tensor<T> like input
  where: {{T: [f32]}}
  cases:
    - {{input: [8]}}
"""
OPS += EXPORTED.format(name="triple") + EXPORTED.format(name="quadruple")
UNARY = "diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t"
BINARY = "diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, diopiConstTensorHandle_t"
INPLACE = "diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t"
# The older chip: a header of its SDK, a macro of its vendor.yaml and a second source stand behind its functions. Two
# have C linkage, one of which the younger chip has itself.
OLDER = {
    "vendor.yaml": "doc: The older chip.\ninclude_dirs: [sdk]\ndefines: [WEIGH_STATUS=diopiDtypeNotSupported]\n",
    "sdk/older_sdk.h": "#pragma once\nint older_status(int status);\n",
    "common/status.cpp": '#include "older_sdk.h"\n\nint older_status(int status) { return status; }\n',
    "functions/nn/weigh.cpp": f"""#include <diopi/functions.h>

#include "older_sdk.h"

namespace impl::older {{

diopiError_t diopiWeigh({BINARY}) {{ return static_cast<diopiError_t>(older_status(WEIGH_STATUS)); }}

diopiError_t diopiWeighInp({INPLACE}) {{ return static_cast<diopiError_t>(older_status(WEIGH_STATUS)); }}

}}  // namespace impl::older
""",
    "functions/exported.cpp": f"""#include <diopi/functions.h>

extern "C" diopiError_t diopiTriple({UNARY}) {{ return diopiDtypeNotSupported; }}

extern "C" diopiError_t diopiQuadruple({UNARY}) {{ return diopiDtypeNotSupported; }}
""",
}
YOUNGER = {
    "vendor.yaml": "doc: The younger chip.\nbase: [older, portable]\n",
    "functions/weigh.cpp": f"""#include <diopi/functions.h>

namespace impl::younger {{

diopiError_t diopiWeighInp({INPLACE}) {{ return diopiNoImplement; }}

diopiError_t diopiQuadruple({UNARY}) {{ return diopiNoImplement; }}

}}  // namespace impl::younger
""",
    "profiles/narrow.yaml": "- common_config: {dtype: (float64)->float32}\n",
}
TARGETS = ("diopi_impl", "diopi_impl_narrow")
PROFILE = "diopi_add_profile(younger vendors/younger/profiles/narrow.yaml)\n"


def diopigen(root: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "diopigen", "--project", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A checkout of three operators and two vendors, each made by `diopigen new-vendor`."""
    root = tmp_path_factory.mktemp("family")
    (root / "schemas" / "ops").mkdir(parents=True)
    for name in ("dtypes.yaml", "runtime.yaml"):
        shutil.copy(ROOT / "schemas" / name, root / "schemas" / name)
    (root / "schemas" / "patterns.yaml").write_text("{}\n", encoding="utf-8")
    (root / "schemas" / "ops" / "tests.yaml").write_text(OPS, encoding="utf-8")
    (root / "vendors").mkdir()
    for name in LINKED:
        (root / name).symlink_to(ROOT / name)
    for vendor, files in {"older": OLDER, "younger": YOUNGER}.items():
        diopigen(root, "new-vendor", vendor)
        for path, text in files.items():
            file = root / "vendors" / vendor / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    with (root / "vendors" / "younger" / "CMakeLists.txt").open("a", encoding="utf-8") as manifest:
        manifest.write(PROFILE)
    return Project(root=root)


def test_explain_shows_whose_function_it_is(project: Project) -> None:
    explained = diopigen(project.root, "explain", "weigh", "--vendor", "younger")
    assert "younger: base, impl::older  vendors/older/functions/nn/weigh.cpp:7:14" in explained
    assert "younger: vendor, impl::younger  vendors/younger/functions/weigh.cpp:5:14" in explained


@pytest.fixture(scope="module")
def libraries(project: Project) -> Path:
    """The folder with libdiopi_impl.so of the younger chip, built by CMake, and below it that of its variant."""
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if cmake is None or shutil.which("g++") is None:
        pytest.skip("there is no cmake or no g++")
    build = project.root / "build" / "younger"
    configure = [cmake, "-S", str(project.root), "-B", str(build), "-DDIOPI_VENDOR=younger"]
    configure += ["-DCMAKE_BUILD_TYPE=Debug", f"-DPython_EXECUTABLE={sys.executable}"]
    for command in (configure, [cmake, "--build", str(build), "--target", *TARGETS, "--parallel", "2"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return build / "lib"


BUILT = pytest.mark.deep("matrix", "whose function it is, and the library of a new vendor, which has the portable base")


@BUILT
@pytest.mark.parametrize("variant", [".", "narrow"])
def test_functions_of_each_are_called(project: Project, libraries: Path, variant: str) -> None:
    """What the library needs of diopirt.h is bound when it is called, so none of it has to be there."""
    library = ctypes.CDLL(str(libraries / variant / "libdiopi_impl.so"), mode=os.RTLD_LAZY)
    header = (project.headers / "diopi" / "diopirt.h").read_text(encoding="utf-8")
    status = {name: library_status(header, name) for name in ("diopiDtypeNotSupported", "diopiNoImplement")}
    assert library.diopiWeigh(None, None, None, None) == status["diopiDtypeNotSupported"]
    assert library.diopiWeighInp(None, None, None) == status["diopiNoImplement"]
    assert library.diopiTriple(None, None, None) == status["diopiDtypeNotSupported"]
    assert library.diopiQuadruple(None, None, None) == status["diopiNoImplement"]
    assert library.diopiCastDtype and library.diopiDouble  # a portable kernel, and a `kernel:` line
    library.diopiGetVendorName.restype = ctypes.c_char_p
    assert library.diopiGetVendorName() == b"younger"  # the older chip's device.cpp stays out


@BUILT
@pytest.mark.parametrize("variant", [".", "narrow"])
def test_only_the_contract_is_left_to_be_found(libraries: Path, variant: str) -> None:
    """A part of the portable kernels that the build forgot would be missed when its function is first called."""
    command = ["nm", "--dynamic", "--undefined-only", str(libraries / variant / "libdiopi_impl.so")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = {line.split()[1] for line in printed.splitlines() if line.split()[0] == "U"}  # w: may be missing
    of_systems = {name for name in names if "@" in name}
    assert {name for name in names - of_systems if not name.startswith("diopi")} == set()
    assert {"diopiGetTensorShape", "diopiRequireTensor"} <= names


def library_status(header: str, name: str) -> int:
    """The number of an enumerator of diopiError_t."""
    found = re.search(rf"\b{name}\s*=\s*(\d+)", header)
    assert found is not None
    return int(found[1])

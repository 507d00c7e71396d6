"""Every portable kernel and every generated one compiles for an NVIDIA GPU too, from device code to machine code.

No GPU is needed for that. Optimizers are off: they take most of the time and prove nothing here.
"""

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from dicp.folds import FOLDS, constructed
from dicp.target import Target
from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project
from diopigen.targets import kernels
from diopigen.targets.output import renderer
from tests.built import compiled

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "runtime_cpp" / "kernels"
COMPILER = ROOT / "runtime_cpp" / "compiler"
SAMPLES = Path(__file__).parent / "kernels" / "elementwise_samples.cpp"
SOURCES = [*sorted(KERNELS.glob("*/*.cpp")), SAMPLES]

# Topics with an elementwise expression; each may give a source of its own.
TOPICS = sorted(
    path.stem for path in (ROOT / "schemas" / "ops").glob("*.yaml") if "kernel: " in path.read_text(encoding="utf-8")
)

pytestmark = pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc, the CUDA compiler")

_QUICKLY = ("-Xcicc", "-O0", "-Xptxas", "-O0", "-Xcompiler", "-O0")
# A warning of the device compiler is mostly a call of host code from device code.
_STRICTLY = ("-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror")


def complaints(source: Path, *options: str, out: Path = Path(os.devnull), chips: Iterable[int] = (90,)) -> str:
    """What nvcc says to the source; empty if it compiles."""
    architectures = [f"-gencode=arch=compute_{chip},code=sm_{chip}" for chip in chips]
    include = [f"-I{folder}" for folder in (ROOT / "generated" / "include", ROOT / "runtime_cpp", KERNELS, COMPILER)]
    command = ["nvcc", "-x", "cu", "--extended-lambda", "-std=c++17", *architectures, *_STRICTLY, *include]
    launcher = ROOT / "vendors" / "cuda" / "launcher.h"
    command += [f'-DDIOPI_LAUNCHER_HEADER="{launcher}"', *(options or ("-c", *_QUICKLY)), "-o", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.fixture(scope="module")
def generated(checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The elementwise kernels that the schemas give to a vendor with the portable base."""
    diagnostics = Diagnostics()
    program = pipeline.run(checkout, diagnostics, pipeline.Stage.VENDOR, vendor="droplet")
    assert program is not None
    folder = tmp_path_factory.mktemp("kernels")
    for output in kernels.outputs(program, renderer(checkout.templates)):
        (folder / Path(output.path).name).write_text(output.text, encoding="utf-8")
    return folder


# Of each way to launch: elementwise, rows, reductions of whole tensors, teams, sorts.
FEW = ("softmax", "reductions_sum", "sorting", "logic")
MANY = pytest.mark.deep("matrix", "a source of each way to launch; g++ compiles all of them with the same warnings")


def each(sources: Iterable[Path | str]) -> list[Any]:
    """The sources, or topics; only a few in `make test`."""
    return [pytest.param(source, marks=() if Path(source).stem in FEW else MANY) for source in sources]


@pytest.mark.parametrize("source", each(SOURCES), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_portable_kernel_compiles(source: Path) -> None:
    assert complaints(source) == ""


@pytest.mark.parametrize(("chips", "early"), [((90,), "true"), ((80,), "false"), ((80, 90), "false")])
def test_kernels_start_early_where_all_code_waits(chips: tuple[int, ...], early: str, tmp_path: Path) -> None:
    source = tmp_path / "early.cpp"
    source.write_text(
        "#include DIOPI_LAUNCHER_HEADER\n"
        f"static_assert(diopi::launch::detail::start_early() == {early});\n"
        "using namespace diopi::launch;\n"
        "diopiError_t one(diopiStreamHandle_t on) { return parallel_for(on, 1, [] __device__(int64_t) {}); }\n",
        encoding="utf-8",
    )
    assert complaints(source, chips=chips) == ""


@pytest.mark.parametrize("topic", each(TOPICS))
def test_a_generated_kernel_compiles(topic: str, generated: Path) -> None:
    sources = sorted([*generated.glob(f"elementwise_{topic}.cpp"), *generated.glob(f"elementwise_{topic}_[0-9].cpp")])
    if not sources:
        pytest.skip(f"portable sources implement all of {topic}")
    assert [complaints(source) for source in sources] == [""] * len(sources)


def test_a_pack_is_one_access(tmp_path: Path) -> None:
    """nvcc divided packs that are stored where branches meet: those of a norm with a weight, or a bias, or neither."""
    assert complaints(KERNELS / "normalization" / "normalization.cpp", "-ptx", out=tmp_path / "norm.ptx") == ""
    kernels = (tmp_path / "norm.ptx").read_text().split(".entry ")[1:]
    packed = [kernel for kernel in kernels if "PackedNorm" in kernel.partition("(")[0]]
    stores = Counter(store for kernel in packed for store in re.findall(r"st\.global\S*", kernel))
    assert len(packed) == 6  # forward and backward, of each type
    assert {*stores} == {"st.global.wb.v4.u32", "st.global.f32"}  # packs, and a row's moments


def test_host_code_in_a_kernel_is_noticed(tmp_path: Path) -> None:
    source = tmp_path / "host_call.cpp"
    source.write_text(
        """
#include <diopi/diopirt.h>

#include "core/host_device.h"
#include "core/launcher.h"

int on_the_host();

template <class T>
diopiError_t fill(diopiStreamHandle_t stream, T* out) {
    return diopi::launch::parallel_for(stream, 1, DIOPI_LAMBDA(int64_t i) { out[i] = on_the_host(); });
}

template diopiError_t fill<int>(diopiStreamHandle_t stream, int* out);
""",
        encoding="utf-8",
    )
    assert "on_the_host" in complaints(source)


def fold_of_rows(number: int, fold: str, element: str) -> str:
    """A program's kernel that folds four rows of six elements, and its launch."""
    return f"""
struct Kernel{number} {{
    {element}* out;
    const {element}* in;
    DIOPI_HD void operator()(int64_t row, const Team& team) const {{
        const auto mine = kernels::stripe_of(team, int64_t{{6}});
        const auto load = [&](int64_t j) {{ return in[row * 6 + j]; }};
        const {element} found = folded<{element}>({constructed(fold, element)}, mine, 6, team, load);
        if (team.rank() == 0) out[row] = found;
    }}
    static constexpr int kWidth = 1;
    bool packs() const {{ return false; }}
    DIOPI_HD void pack(int64_t, const Team&) const {{}}
}};
diopiError_t launch_{number}(diopiStreamHandle_t stream, {element}* out, const {element}* in) {{
    return launch_rows(stream, 4, 6, Kernel{number}{{out, in}});
}}
"""


def program_of(kernels: str) -> str:
    return f"""
#include "program_abi.h"
#include "program_arguments.h"
#include "rows.h"

inline namespace DIOPI_PROGRAM_SPACE {{
using namespace diopi::compiled;
namespace kernels = diopi::kernels;
{kernels}
}}
"""


def test_the_folds_of_compiled_programs_compile(tmp_path: Path) -> None:
    folds = [(fold, element) for fold in FOLDS.values() for element in ("float", "double")]
    kernels = "".join(fold_of_rows(number, fold, element) for number, (fold, element) in enumerate(folds))
    source = tmp_path / "folds.cu"
    source.write_text(program_of(kernels), encoding="utf-8")
    assert complaints(source, "-c", *_QUICKLY, "-DDIOPI_KERNELS_APART") == ""


_ELEMENTWISE = """
struct Doubled {
    float* out;
    const float* in;
    DIOPI_HD void operator()(int64_t row, int64_t begin, int64_t end) const {
        for (int64_t j = begin; j < end; ++j) out[row * 8 + j] = 2 * in[row * 8 + j];
    }
    static constexpr int kWidth = 4;
    bool packs() const { return packed<float, kWidth>(out); }
    DIOPI_HD void pack(int64_t row, int64_t begin) const { (*this)(row, begin, begin + kWidth); }
};
extern "C" diopiError_t doubled(diopiStreamHandle_t stream, float* out, const float* in) {
    return launch_runs(stream, 4, 8, Doubled{out, in});
}
"""


def test_a_program_knows_its_kernels_by_the_names_that_nvcc_gives_them(tmp_path: Path) -> None:
    source, library = tmp_path / "program.cpp", tmp_path / "program.so"
    source.write_text(program_of(_ELEMENTWISE + fold_of_rows(1, FOLDS["sum"], "float")), encoding="utf-8")
    header = f'-DDIOPI_LAUNCHER_HEADER="{ROOT / "vendors" / "cuda" / "launcher.h"}"'
    told = subprocess.run(
        ["nvcc", "-x", "cu", "--dryrun", os.devnull], capture_output=True, text=True, check=True
    ).stderr
    toolkit = re.search(r'INCLUDES="-I(.*?)"', told)
    assert toolkit is not None
    target = Target(
        vendor="cuda",
        folder=tmp_path,
        compiler="g++",
        flags=(
            "-std=c++17",
            "-fPIC",
            f"-isystem{toolkit[1]}",
            "-DDIOPI_KERNELS_APART",
            header,
            "-Wall",
            "-Wextra",
            "-Werror",
        ),
        include=(str(ROOT / "generated" / "include"), str(KERNELS), str(COMPILER)),
        link=(),
        suffix=".cpp",
        kernels=(
            "nvcc",
            "-x",
            "cu",
            "-std=c++17",
            "-arch=sm_90",
            "-cubin",
            "-DDIOPI_KERNELS_APART",
            header,
            *_STRICTLY,
        ),
    )
    target.build(source, library)
    asked = symbols("nm", "-D", "--defined-only", str(library))
    code = symbols("readelf", "-sW", str(source.with_suffix(".fatbin")))
    kernels = {name for name in asked if "diopi_program" in name and "launch6detail" in name}
    assert len(kernels) == 3  # packs, single elements, rows
    assert kernels <= code
    assert "diopi_program_kernels" not in asked  # each program has its own


def symbols(*command: str) -> set[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines() if line.strip()}


_REFUSED = """\
#include <cstdio>

#include "core/error.h"
#include "launch/cuda.h"

__global__ void nothing(int64_t, int64_t) {}

int main() {
    using namespace diopi;
    const int64_t unused = 0;
    const dim3 too_many(4096);
    const diopiError_t status = kernels::guarded([&] {
        const auto code = reinterpret_cast<const void*>(nothing);
        kernels::check_launch(launch::detail::start(nullptr, code, too_many, 1, 1, &unused));
    });
    std::printf("%d: %s", static_cast<int>(status), diopiKernelsLastError());
}
"""
# With a GPU, without one, and without its driver.
_REASONS = (
    "invalid argument",
    "no CUDA-capable device is detected",
    "CUDA driver version is insufficient for CUDA runtime version",
)


def test_a_refused_launch_tells_the_reason_of_cuda(tmp_path: Path) -> None:
    source = tmp_path / "refused.cu"
    source.write_text(_REFUSED, encoding="utf-8")
    folders = (ROOT / "generated" / "include", ROOT / "runtime_cpp", KERNELS)
    flags = ["-std=c++17", "-arch=sm_90", "-Xcompiler", "-Wall,-Wextra,-Werror", *(f"-I{folder}" for folder in folders)]
    program = compiled(["nvcc", *flags, source, KERNELS / "core" / "error.cpp"], "refused")
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout in [f"1: the device did not take a launch: {reason}" for reason in _REASONS]

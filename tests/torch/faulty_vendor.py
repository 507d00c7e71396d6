"""A vendor library over droplet's in which one function at a time computes something slightly wrong."""

import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What the demo's models are trained with, forward, backward and in the optimizer.
FUNCTIONS = (
    "diopiAdd",
    "diopiBatchNorm",
    "diopiBatchNormBackward",
    "diopiBmm",
    "diopiCat",
    "diopiConvolution2d",
    "diopiConvolution2dBackward",
    "diopiEmbedding",
    "diopiEmbeddingBackward",
    "diopiFusedAdamW",
    "diopiLinear",
    "diopiLinearBackward",
    "diopiLogSoftmax",
    "diopiLogSoftmaxBackward",
    "diopiMean",
    "diopiMul",
    "diopiNLLLoss",
    "diopiNLLLossV2Backward",
    "diopiNeg",
    "diopiPow",
    "diopiRelu",
    "diopiRsqrt",
    "diopiSigmoid",
    "diopiSigmoidBackward",
    "diopiSilu",
    "diopiSiluBackward",
    "diopiSoftmax",
    "diopiSoftmaxBackward",
    "diopiSum",
    "diopiThresholdBackward",
    "diopiGelu",
    "diopiGeluBackward",
    "diopiCos",
    "diopiSin",
    "diopiDiv",
    "diopiSgd",
    "diopiMm",
    "diopiAddmm",
)

_HEAD = """// Written by the tests: forwards to the library that it stands before, then spoils what was written.
#include <diopi/functions.h>
#include <dlfcn.h>
#include <cstring>

static const char* planted = "";
extern "C" __attribute__((visibility("default"))) void plant(const char* name) { planted = strdup(name); }

template <class F> static F real(const char* name) { return reinterpret_cast<F>(dlsym(RTLD_NEXT, name)); }

// One percent too much.
static void spoil(diopiContextHandle_t ctx, diopiTensorHandle_t out) {
    diopiDtype_t dtype;
    if (out == nullptr || diopiGetTensorDtype(out, &dtype) != diopiSuccess) return;
    if (dtype != diopi_dtype_float32) return;
    diopiScalar_t factor{};
    factor.stype = diopi_dtype_float64;
    factor.fval = 1.01;
    real<decltype(&diopiMulInpScalar)>("diopiMulInpScalar")(ctx, out, &factor);
}
"""


def build(folder: Path, libraries: Path) -> Path:
    """Compiles the library into `folder`; droplet's own must lie in `libraries`."""
    header = (ROOT / "generated" / "include" / "diopi" / "functions.h").read_text(encoding="utf-8")
    source = folder / "faulty.cpp"
    source.write_text(_HEAD + "\n".join(_function(header, name) for name in FUNCTIONS), encoding="utf-8")
    library = folder / "libfaulty.so"
    compiler = shutil.which("g++")
    assert compiler is not None
    flags = ["-std=c++17", "-shared", "-fPIC", "-Wall", "-Wextra", f"-I{ROOT / 'generated' / 'include'}"]
    flags += [f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-Wl,--no-as-needed"]
    subprocess.run([compiler, *flags, str(source), "-o", str(library), "-ldiopi_impl", "-ldl"], check=True)
    return library


def _function(header: str, name: str) -> str:
    declared = re.search(rf"DIOPI_API diopiError_t {name}\(([^;]*)\);", header)
    assert declared is not None, name
    params = " ".join(declared.group(1).split())
    parts = [part.strip() for part in params.split(",")]
    names = [re.sub(r".*[ *]", "", part) for part in parts]
    outs = []
    for part, given in zip(parts[1:], names[1:], strict=True):
        if part.startswith("diopiTensorHandle_t*"):
            outs.append(f"{given}[0]")
        elif part.startswith("diopiTensorHandle_t"):
            outs.append(given)
        else:
            break
    spoiled = " ".join(f"spoil(ctx, {out});" for out in outs)
    return (
        f'extern "C" __attribute__((visibility("default"))) diopiError_t {name}({params}) {{\n'
        f'    const auto status = real<decltype(&{name})>("{name}")({", ".join(names)});\n'
        f'    if (status == diopiSuccess && strcmp(planted, "{name}") == 0) {{ {spoiled} }}\n'
        f"    return status;\n}}\n"
    )

"""How many lines the kernels take, and which libraries they rest on: what tools/kernel_figures.py prints."""

import re
import statistics
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.project import Project
from diopigen.targets.kernels import outputs as kernel_sources
from diopigen.targets.output import renderer
from tools.kernel_calls import Calls, units
from tools.kernel_figures import VENDORS, figures, libraries, lines_of, vendor_sources
from tools.schema_figures import percentile

FAMILY = """#include "core/shared.h"

namespace impl::portable {
namespace {

// twice() is in a comment only
template <class T>
struct Task {
    T* out;
    void operator()(int64_t i) const { out[i] = scaled<T>(i); }
};

}  // namespace

diopiError_t diopiOne(diopiTensorHandle_t out) {
    return guarded([&] { for_each(Task<float>{address(out)}); });
}

diopiError_t diopiTwo(diopiTensorHandle_t out) { return diopiThree(out, "gemm"); }

}  // namespace impl::portable
"""
SHARED = """#pragma once
constexpr int kWidth = narrow;
void multiply(float* out);
template <class T>
T scaled(T x) { return x * kWidth; }
"""
SHARED_SOURCE = '#include "shared.h"\n\nvoid multiply(float* out) {\n    launch::gemm(out);\n}\n'
OTHER = '#include "core/shared.h"\n\nextern "C" {\nint diopiThree(int out) { return multiply(out), 0; }\n}\n'
LAUNCHER = "namespace launch {\nvoid gemm(float* out);\n}\n"
CHIP = "namespace launch {\nvoid gemm(float* out) { chip_gemm(out); }\n}\n"
CHIP_SORT = "namespace launch {\nvoid scaled(float* out) { chip_sort(out); }\n}\n"


@pytest.fixture
def kernels(tmp_path: Path) -> dict[str, Path]:
    """Two families, a shared header with its source, and a chip's product."""
    texts = {
        "family.cpp": FAMILY,
        "other.cpp": OTHER,
        "core/shared.h": SHARED,
        "core/shared.cpp": SHARED_SOURCE,
        "launch/chip.h": LAUNCHER,
        "chip/gemm.cpp": CHIP,
        "chip/sort.cpp": CHIP_SORT,
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: tmp_path / name for name in texts}


def test_blank_lines_and_comments_do_not_count() -> None:
    assert lines_of("// why\n\nint one;  // 1\n    // deeper\n") == 1


def test_units_are_what_stands_in_namespaces(kernels: dict[str, Path]) -> None:
    found = units(kernels["family.cpp"])
    assert sorted(found) == ["Task", "diopiOne", "diopiTwo"]
    assert "scaled" in found["Task"]
    assert "twice" not in found["Task"]
    assert "gemm" not in found["diopiTwo"]  # in a string
    assert units(kernels["core/shared.h"])["kWidth"] == {"constexpr", "int", "narrow"}


def test_names_are_followed_through_headers_and_functions(kernels: dict[str, Path]) -> None:
    calls = Calls(kernels["family.cpp"].parent, (kernels["chip/gemm.cpp"], kernels["chip/sort.cpp"]))
    sources = {
        f"diopi{n}": kernels[f] for n, f in (("One", "family.cpp"), ("Two", "family.cpp"), ("Three", "other.cpp"))
    }
    assert {"Task", "scaled", "kWidth", "narrow"} <= calls.reached("diopiOne", sources)
    assert "chip_gemm" not in calls.reached("diopiOne", sources)
    assert "chip_gemm" in calls.reached("diopiTwo", sources)
    assert "chip_sort" not in calls.reached("diopiOne", sources)  # a namesake that no launcher declares


@pytest.fixture(scope="module")
def programs(checkout: Project) -> dict[str, Program]:
    return {vendor: pipeline.run(checkout, Diagnostics(), pipeline.Stage.VENDOR, vendor=vendor) for vendor in VENDORS}


def test_every_line_and_every_function_is_counted_once(programs: dict[str, Program], checkout: Project) -> None:
    found = figures(programs["droplet"], checkout, VENDORS)
    files = [p for p in (checkout.root / "runtime_cpp" / "kernels").rglob("*") if p.suffix in (".h", ".cpp")]
    files += [p for vendor in VENDORS for p in vendor_sources(checkout, vendor)]
    assert found.written == sum(lines_of(path.read_text(encoding="utf-8")) for path in files)
    assert all(family.functions for family in found.families)
    assert len(found.by_function) == sum(family.functions for family in found.families)
    assert found.functions - len(found.by_function) > 2 * found.kernel_lines  # one line serves several functions


def test_a_generated_source_has_a_few_operators(programs: dict[str, Program], checkout: Project) -> None:
    outputs = tuple(kernel_sources(programs["cuda"], renderer(checkout.templates)))
    assert {f"kernels/elementwise_unary{part}.cpp" for part in ("", "_1", "_2")} <= {output.path for output in outputs}
    for pattern in (r"^struct (\w+Kernel) \{$", r"^diopiError_t (\w+)\("):
        found = [re.findall(pattern, output.text, re.MULTILINE) for output in outputs]
        names = [name for each in found for name in each]
        assert len(names) == len(set(names)) > 60
        assert all(found)
    functors = [len(re.findall(r"^struct ", output.text, re.MULTILINE)) for output in outputs]
    assert max(functors) <= 2 * 8  # a derivative may have one, too


def test_devices_are_no_kernels(checkout: Project) -> None:
    assert [path.name for path in vendor_sources(checkout, "cuda") if "device" in path.name] == []
    assert "gemm.cu" in [path.name for path in vendor_sources(checkout, "cuda")]


def test_the_kernels_stay_short(programs: dict[str, Program], checkout: Project) -> None:
    found = figures(programs["droplet"], checkout, VENDORS)
    assert found.written / found.functions <= 44
    assert statistics.median(found.by_function) <= 47
    assert percentile(found.by_function, 0.95) <= 119


def test_products_rest_on_a_library(programs: dict[str, Program], checkout: Project) -> None:
    on_droplet = libraries(programs["droplet"], checkout, "droplet")
    on_cuda = libraries(programs["cuda"], checkout, "cuda")
    assert list(on_droplet) == ["LAPACK", "OpenBLAS"]
    assert set(on_droplet["OpenBLAS"]) <= set(on_cuda["cuBLAS"])
    assert {"diopiSort", "diopiUnique"} <= set(on_cuda["CUB"])
    assert {"diopiConvolution2d", "diopiFlashAttention"} <= set(on_cuda["cuDNN"])
    assert "diopiBmm" not in on_cuda["cuDNN"]
    assert set(on_droplet["LAPACK"]) == set(on_cuda["cuSOLVER"]) == {"diopiCholesky", "diopiLinalgQR"}
    assert {"diopiBmm", "diopiConvolution2d", "diopiLinearBackward"} <= set(on_droplet["OpenBLAS"])
    assert {"diopiCholesky", "diopiSoftmax"}.isdisjoint(on_droplet["OpenBLAS"])

"""Kernels with a fault of memory that the environment chooses; memory_faults.h makes it."""

import os
import re
from pathlib import Path

from tools.mutants.build import Vendor, build_changed

ROOT = Path(__file__).resolve().parents[2]
CHOICE = "DIOPI_MEMORY_FAULT"  # the variable
# A source of runtime_cpp/kernels, the function that gets the fault, its output and an input, and who calls it.
KERNELS = {
    "normalization/softmax": ("softmax", "out", "input", "diopiSoftmax"),
    "normalization/layer_norm": ("normalize", "out", "input", "diopiLayerNorm"),
    "indexing/embedding": ("diopiEmbedding", "out", "weight", "diopiEmbedding"),
    "indexing/gather": ("diopiGather", "out", "input", "diopiGather"),
    "shape/join": ("diopiCat", "out", "tensors[0]", "diopiCat"),
    "sorting/sort": ("diopiSort", "values", "input", "diopiSort"),
    "indexing/index_select": ("diopiIndexSelect", "out", "input", "diopiIndexSelect"),
    "indexing/masked": ("diopiWhere", "out", "input", "diopiWhere"),
    "reduction/cumsum": ("diopiCumsum", "out", "input", "diopiCumsum"),
    "linear_algebra/matmul": ("diopiMm", "out", "input", "diopiMm"),
    "normalization/batch_norm": ("diopiBatchNorm", "out", "input", "diopiBatchNorm"),
    "regions/roi_align": ("diopiRoiAlign", "out", "input", "diopiRoiAlign"),
}
# Each of these is an access that memory_faults.h knows.
FAULTS = (
    "read before",
    "read behind",
    "read 600 bytes behind",
    "read 40 kB behind",
    "read 40 kB before",
    "read after return",
    "read after free",
    "write before",
    "write behind",
    "write after return",
)


def build_planted(build: Path, folder: Path) -> Path:
    """The folder of droplet's library, made like that of `build`, with a place for a fault in each of KERNELS."""
    texts = {f"runtime_cpp/kernels/{source}.cpp": _planted(source) for source in KERNELS}
    return build_changed(Vendor(build, ROOT, "droplet"), texts, folder, os.cpu_count() or 1)


def _planted(source: str) -> str:
    """The text of a kernel's source, with a place for a fault."""
    function, out, given, _ = KERNELS[source]
    text = (ROOT / "runtime_cpp" / "kernels" / f"{source}.cpp").read_text(encoding="utf-8")
    begin = re.compile(rf"^diopiError_t {function}\(.*?guarded\(\[&\] \{{", re.DOTALL | re.MULTILINE)
    found, count = begin.subn(lambda m: f"{m[0]} PLANT_MEMORY_FAULT(ctx, {out}, {given});", text, count=1)
    assert count == 1, source
    return f'#include "{Path(__file__).with_suffix(".h")}"\n#line 1 "{source}.cpp"\n{found}'

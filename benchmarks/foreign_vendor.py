"""A checkout with a vendor as others write them: many sources over an SDK that this machine does not have."""

import json
import shutil
from pathlib import Path

from setting import ROOT

SOURCES = 140
_LINKED = ("schemas", "templates", "runtime_cpp", "generators", "CMakeLists.txt")
_HELPER = """\
#pragma once

#include <chip_ops.h>
#include <chip_runtime.h>
#include <diopi/diopirt.h>
#include <diopi/functions.h>

#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#define CHIP_CALL(call) do { chipStatus_t status = call; if (status != CHIP_OK) return diopiErrorOccurred; } while (0)

namespace impl {
namespace foreign {

class Tensor {
public:
    explicit Tensor(diopiConstTensorHandle_t handle) { diopiGetTensorDtype(handle, &dtype_); }
    chipTensorDescriptor_t descriptor() const;

private:
    diopiDtype_t dtype_;
};

}  // namespace foreign
}  // namespace impl
"""
_FUNCTION = """\
diopiError_t {name}({params}) {{
    std::vector<Tensor> tensors;
    chipHandle_t handle = chipHandles.get(ctx);
    CHIP_CALL(chipRun(handle, tensors.data(), tensors.size(), CHIP_FAST));
    return diopiSuccess;
}}
"""


def foreign_project(root: Path, common: bool) -> Path:
    """Writes it below `root`; its sources share one header if `common`, else each includes the SDK itself."""
    root.mkdir()
    for name in _LINKED:
        (root / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "generated" / "include", root / "generated" / "include")
    facts = json.loads((ROOT / "tests" / "contract" / "functions.json").read_text(encoding="utf-8"))["functions"]
    functions = [f for f in facts if f["linkage"] == "DIOPI_API" and f["header"] == "functions.h"]
    folder = root / "vendors" / "foreign"
    (folder / "functions").mkdir(parents=True)
    (folder / "vendor.yaml").write_text("doc: A vendor of others.\n", encoding="utf-8")
    (folder / "helper.hpp").write_text(_HELPER, encoding="utf-8")
    head = '#include "../helper.hpp"\n' if common else _HELPER.removeprefix("#pragma once\n")
    for index in range(SOURCES):
        bodies = [
            _FUNCTION.format(name=f["name"], params=", ".join(f"{t} {n}" for t, n in f["params"]))
            for f in functions[index::SOURCES]
        ]
        text = head + "\nnamespace impl {\nnamespace foreign {\n\n" + "\n".join(bodies) + "\n}\n}\n"
        (folder / "functions" / f"source_{index}.cpp").write_text(text, encoding="utf-8")
    return root

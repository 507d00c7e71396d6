"""impl_functions.hpp, which sources of the established form include to call each other's functions."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.commands.generate import Request, generate
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project

OPS = """\
add:
  doc: The sum.
  args: {input: Tensor<T>, other: Tensor<T>}
  out: {out: Tensor<T> like input}
  where: {T: any}
twice:
  doc: The input twice.
  args: {input: Tensor<T>}
  out: {out: Tensor<T> like input}
  where: {T: any}
"""
RELU = "diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input"
ADD = f"{RELU}, diopiConstTensorHandle_t other"
SHARED = '#pragma once\n#include "impl_functions.hpp"\n'  # e.g. helper.hpp of a vendor, which includes it for all
SOURCES = {
    "vendor.yaml": "doc: A chip.\n",
    "functions/common.hpp": SHARED,
    "functions/add.cpp": (
        f'#include "common.hpp"\nnamespace impl {{\nnamespace chip {{\ndiopiError_t diopiAdd({ADD}) {{\n'
        "    return other == nullptr ? diopiTwice(ctx, out, input) : diopiSuccess;\n}\n}\n}\n"
    ),
    "functions/twice.cpp": (
        '#include "common.hpp"\nnamespace impl {\nnamespace chip {\n'
        f"diopiError_t diopiTwice({RELU}) {{ return diopiAdd(ctx, out, input, input); }}\n}}\n}}\n"
    ),
}
Make = Callable[..., Project]


def found(project: Project, vendor: str = "chip") -> list[str]:
    diagnostics = Diagnostics()
    pipeline.run(project, diagnostics, pipeline.Stage.VENDOR, vendor=vendor)
    return [f"{d.span}: {d.code}: {d.message}" for d in diagnostics.ordered()]


def written(project: Project, vendor: str) -> Path:
    """The folder of what is generated for the vendor."""
    request = Request(contract=True, targets=("adaptor",), vendor=vendor, error_format="github")
    assert generate(project, request) == 0
    return project.generated / vendor


def compiles(project: Project, source: str, *include: Path) -> str:
    folders = [f"-I{folder}" for folder in (project.generated / "include", *include)]
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *folders, source]
    return subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=False).stderr


def test_sources_that_include_it_are_searched_and_compile(miniature: Make) -> None:
    project = miniature({"a.yaml": OPS}, {"chip": SOURCES})
    assert found(project) == []
    declared = written(project, "chip") / "declarations" / "chip"
    for name in ("add.cpp", "twice.cpp"):
        assert compiles(project, f"vendors/chip/functions/{name}", declared) == ""


def test_it_declares_what_the_vendor_defines_in_its_own_namespace(miniature: Make) -> None:
    body = f"diopiError_t diopiTwice({RELU}) {{ return diopiSuccess; }}"
    inside = f"namespace impl::chip {{ inline namespace v2 {{ {body} }} }}\n"
    one = SOURCES["functions/add.cpp"].replace("diopiTwice(ctx, out, input)", "diopiSuccess")
    sources = SOURCES | {"functions/add.cpp": one, "functions/twice.cpp": f"#include <diopi/diopirt.h>\n{inside}"}
    project = miniature({"a.yaml": OPS}, {"chip": sources})
    text = (written(project, "chip") / "declarations/chip/impl_functions.hpp").read_text(encoding="utf-8")
    assert "namespace impl::chip {" in text and "diopiError_t diopiAdd(" in text and "diopiTwice" not in text


def test_a_base_has_its_own(miniature: Make) -> None:
    """The sources of a base call the base's functions, whoever derives from it."""
    derived = {
        "vendor.yaml": "doc: A variant.\nbase: chip\n",
        "functions/twice.cpp": SOURCES["functions/twice.cpp"].replace("chip", "variant").replace("common", "shared"),
        "functions/shared.hpp": SHARED,
    }
    derived["functions/twice.cpp"] = derived["functions/twice.cpp"].replace(
        "diopiAdd(ctx, out, input, input)", "diopiSuccess"
    )
    project = miniature({"a.yaml": OPS}, {"chip": SOURCES, "variant": derived})
    assert found(project, "variant") == []
    folder = written(project, "variant") / "declarations"
    assert compiles(project, "vendors/chip/functions/add.cpp", folder / "chip") == ""
    own = (folder / "variant" / "impl_functions.hpp").read_text(encoding="utf-8")
    assert "diopiTwice" in own and "diopiAdd" not in own


def test_the_vendor_s_own_file_of_that_name_comes_first(miniature: Make) -> None:
    own = SOURCES | {"functions/impl_functions.hpp": "#include <diopi/diopirt.h>\n#error the vendor's\n"}
    (finding,) = (f for f in found(miniature({"a.yaml": OPS}, {"chip": own})) if "impl_functions.hpp" in f)
    assert finding == "vendors/chip/functions/impl_functions.hpp:2:2: vendor-source: clang says: the vendor's"


def test_functions_with_c_linkage_are_exported_without_an_adaptor(miniature: Make) -> None:
    text = f'#include <diopi/functions.h>\nextern "C" diopiError_t diopiAdd({ADD}) {{ return diopiSuccess; }}\n'
    config = "- diopiAdd: {dtype: (float64)->float32}\n"
    sources = SOURCES | {"functions/add.cpp": text, "convert_config.yaml": config}
    del sources["functions/twice.cpp"]
    project = miniature({"a.yaml": OPS}, {"chip": sources})
    assert [finding.split(": ")[:2] for finding in found(project)] == [
        ["vendors/chip/convert_config.yaml:1:3", "rule-never-applies"],
        ["vendors/chip/functions/add.cpp:2:25", "c-linkage"],
    ]
    folder = written(project, "chip")
    assert sorted(path.name for path in (folder / "adaptor").iterdir()) == ["abi_record.cpp", "primitives.cpp"]
    assert "diopiAdd" not in (folder / "declarations/chip/impl_functions.hpp").read_text(encoding="utf-8")


def test_a_primitive_with_c_linkage_serves_conversions(miniature: Make) -> None:
    ops = OPS.replace("add:", "cast_dtype:").replace(", other: Tensor<T>", "")
    text = f'#include <diopi/functions.h>\nextern "C" diopiError_t diopiCastDtype({RELU}) {{ return diopiSuccess; }}\n'
    project = miniature({"a.yaml": ops}, {"chip": {"vendor.yaml": "doc: A chip.\n", "functions/cast.cpp": text}})
    primitives = written(project, "chip") / "adaptor" / "primitives.cpp"
    assert "return ::diopiCastDtype(ctx, out, input);" in primitives.read_text(encoding="utf-8")
    assert compiles(project, str(primitives), project.runtime) == ""


FAULTS = {
    "parameters": (f"{ADD}, double alpha", "diopiError_t", "5 parameters here and 4 in the contract"),
    "result": (ADD, "int", "returns 'int' here and 'diopiError_t' in the contract"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_definition_unlike_its_declaration_is_still_told(miniature: Make, fault: str) -> None:
    params, result, says = FAULTS[fault]
    text = f'#include "common.hpp"\nnamespace impl::chip {{\n{result} diopiAdd({params}) {{ return {{}}; }}\n}}\n'
    findings = found(miniature({"a.yaml": OPS}, {"chip": SOURCES | {"functions/add.cpp": text}}))
    assert any(f.startswith("vendors/chip/functions/add.cpp:3:") and "signature" in f and says in f for f in findings)

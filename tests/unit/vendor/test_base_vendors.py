"""Bases: whose functions fill the gaps, what their configuration says for them, what is compiled of them."""

from pathlib import Path

import pytest

from diopigen.diagnostics import Diagnostics, render_human
from diopigen.model.program import Program
from diopigen.model.vendor import Origin
from diopigen.targets.output import renderer
from diopigen.targets.sources import sources
from tests.unit.vendor.conftest import Folders
from tests.unit.vendor.small_project import ROOT

CTX = "diopiContextHandle_t ctx, "
UNARY = CTX + "diopiTensorHandle_t out, diopiConstTensorHandle_t input"
PARAMS = {
    "diopiAdd": UNARY + ", diopiConstTensorHandle_t other, const diopiScalar_t* alpha",
    "diopiAddInp": CTX + "diopiTensorHandle_t input, diopiConstTensorHandle_t other, const diopiScalar_t* alpha",
    "diopiArgmax": UNARY + ", const int64_t* dim, bool keepdim",
    "diopiCastDtype": UNARY,
    "diopiCopyInp": CTX + "diopiConstTensorHandle_t src, diopiTensorHandle_t input",
}


def defined(namespace: str, *symbols: str) -> str:
    """A source with these functions."""
    bodies = "".join(f"diopiError_t {s}({PARAMS[s]}) {{ return diopiSuccess; }}\n" for s in symbols)
    return f"#include <diopi/diopirt.h>\nnamespace {namespace} {{\n{bodies}}}\n"


def vendor(name: str, *symbols: str, base: str = "", config: str = "", yaml: str = "") -> dict[str, str]:
    """The files of a vendor that implements `symbols`."""
    files = {
        f"{name}/vendor.yaml": f"doc: A chip.\n{f'base: {base}' if base else ''}\n{yaml}",
        f"{name}/functions/all.cpp": defined(f"impl::{name}", *symbols),
    }
    return {**files, f"{name}/convert_config.yaml": config} if config else files


def served(program: Program) -> dict[str, str]:
    return {plan.symbol: plan.implementation.name for plan in program.plans}


def printed(diagnostics: Diagnostics) -> list[str]:
    return list(render_human(diagnostics, Path("/nowhere")))


def casts(program: Program, symbol: str, param: str) -> list[str]:
    plan = next(p for p in program.plans if p.symbol == symbol)
    found = plan.conversion(param)
    return (
        [] if found is None else [f"{c.source.word} {c.target.word} {c.span.path}:{c.span.line}" for c in found.casts]
    )


def test_a_base_fills_the_gaps(folders: Folders) -> None:
    files = vendor("a", "diopiAdd", "diopiAddInp") | vendor("b", "diopiAdd", base="a")
    program, diagnostics = folders("b", files)
    assert diagnostics.found == []
    assert served(program) == {"diopiAdd": "b", "diopiAddInp": "a"}
    plan = next(p for p in program.plans if p.symbol == "diopiAddInp")
    assert plan.implementation.namespace == "impl::a" and plan.implementation.origin.value == "base"
    assert plan.implementation.source == "vendors/a/functions/all.cpp"


ORDERS = [
    ("[a, c]", {"a": "", "c": ""}, ("a", "c")),
    ("[a, c]", {"a": "d", "c": "d", "d": ""}, ("a", "c", "d")),  # what they share comes after both
    ("[a, d]", {"a": "c", "c": "", "d": ""}, ("a", "c", "d")),
    ("[d, a]", {"a": "d", "d": ""}, ("d", "a")),  # the vendor's own list decides
    ("a", {"a": "[c, d]", "c": "", "d": "c"}, ("a", "c", "d")),
]


@pytest.mark.parametrize(("base", "others", "order"), ORDERS)
def test_the_order_of_bases(folders: Folders, base: str, others: dict[str, str], order: tuple[str, ...]) -> None:
    files = vendor("b", base=base)
    for name, bases in others.items():
        files |= vendor(name, base=bases)
    program, diagnostics = folders("b", files)
    assert diagnostics.found == [] and program.vendor is not None
    assert program.vendor.base == order and tuple(b.name for b in program.vendor.bases) == order


def test_the_first_base_that_has_a_function_serves_it(folders: Folders) -> None:
    files = vendor("a", "diopiAdd", base="c") | vendor("c", "diopiAdd", "diopiAddInp", "diopiArgmax")
    files |= vendor("d", "diopiAddInp") | vendor("b", base="[a, d]")
    program, _ = folders("b", files)
    assert served(program) == {"diopiAdd": "a", "diopiAddInp": "c", "diopiArgmax": "c"}


WRONG = [
    (
        vendor("b", base="portabel"),
        [
            "vendors/b/vendor.yaml:2:7: error[unknown-base]: there is no base 'portabel'",
            "      did you mean 'portable'?",
        ],
    ),
    (
        vendor("b", base="[ascent]") | vendor("ascend"),
        [
            "vendors/b/vendor.yaml:2:8: error[unknown-base]: there is no base 'ascent'",
            "      did you mean 'ascend'?",
        ],
    ),
    (
        vendor("b", base="xx") | vendor("ascend"),
        [
            "vendors/b/vendor.yaml:2:7: error[unknown-base]: there is no base 'xx'",
            "      the bases are portable, ascend",
        ],
    ),
    (
        vendor("b", base="b"),
        [
            "vendors/b/vendor.yaml:2:7: error[circular-base]: 'b' is a base of itself: b -> b",
            "      remove one of the names",
        ],
    ),
    (
        vendor("b", base="[a]") | vendor("a", base="c") | vendor("c", base="b"),
        [
            "vendors/b/vendor.yaml:2:8: error[circular-base]: 'b' is a base of itself: b -> a -> c -> b",
            "      remove one of the names",
            "vendors/a/vendor.yaml:2:7: note: 'c' is named here",
            "vendors/c/vendor.yaml:2:7: note: 'b' is named here",
        ],
    ),
    (
        vendor("b", base="a") | vendor("a", base="c") | vendor("c", base="a"),
        [
            "vendors/b/vendor.yaml:2:7: error[broken-base]: the base 'a' has errors",
            "      run 'diopigen lint --vendor a'",
            "vendors/a/vendor.yaml:2:7: note: the base 'c' has errors",
        ],
    ),
    (
        vendor("b", base="[a, a]") | vendor("a"),
        [
            "vendors/b/vendor.yaml:2:11: error[duplicate-base]: 'a' is named twice",
            "      remove one of them",
        ],
    ),
    (
        vendor("b", base="a") | vendor("a", yaml="colour: red\n"),
        [
            "vendors/b/vendor.yaml:2:7: error[broken-base]: the base 'a' has errors",
            "      run 'diopigen lint --vendor a'",
            "vendors/a/vendor.yaml:3:1: note: 'vendor.yaml' has no property 'colour'",
        ],
    ),
    (
        vendor("b", base="a") | vendor("a", config="- diopiAdd: {dtype: (float64)->float31}\n"),
        [
            "vendors/b/vendor.yaml:2:7: error[broken-base]: the base 'a' has errors",
            "      run 'diopigen lint --vendor a'",
            "vendors/a/convert_config.yaml:1:32: note: there is no dtype 'float31'",
        ],
    ),
    (
        vendor("b", base="{a: 1}"),
        ["vendors/b/vendor.yaml:2:7: error[wrong-kind]: 'base' needs a list here"],
    ),
]


@pytest.mark.parametrize(("files", "text"), WRONG, ids=[str(n) for n in range(len(WRONG))])
def test_what_is_wrong_with_a_base(folders: Folders, files: dict[str, str], text: list[str]) -> None:
    _, diagnostics = folders("b", files)
    assert printed(diagnostics) == text


def test_findings_of_a_base_that_are_no_errors_are_not_shown(folders: Folders) -> None:
    config = "- diopiArgmax: {tensor_dtype: {out: (int8)->int32}}\n"
    files = vendor("a", "diopiArgmax", config=config) | vendor("b", "diopiCastDtype", base="a")
    files["a/functions/more.cpp"] = '#include "no_such_sdk.h"\n' + defined("impl::a", "diopiAdd").replace(
        "diopiAdd", "diopiNoOp"
    )
    assert [d.code for d in folders("a", files)[1].ordered()] == [
        "rule-never-applies",
        "missing-header",
        "unknown-function",
    ]
    assert folders("b", files)[1].found == []


def test_the_base_s_configuration_holds_for_its_functions(folders: Folders) -> None:
    common = "- common_config: {{dtype: ({0})->float32}}\n"
    entry = "- {0}: {{dtype: ({1})->float32}}\n"
    files = vendor(
        "a", "diopiAdd", "diopiAddInp", "diopiArgmax",
        config=common.format("float64") + entry.format("diopiAdd", "float16") + entry.format("diopiAddInp", "float16"),
    )  # fmt: skip
    files |= vendor(
        "b", "diopiCastDtype", base="a",
        config="- common_config: {contiguous: false}\n" + entry.format("diopiAdd", "bfloat16"),
    )  # fmt: skip
    program, diagnostics = folders("b", files)
    assert not diagnostics.failed
    assert casts(program, "diopiAdd", "input") == ["bfloat16 float32 vendors/b/convert_config.yaml:2"]
    assert casts(program, "diopiAddInp", "input") == ["float16 float32 vendors/a/convert_config.yaml:3"]
    assert casts(program, "diopiArgmax", "input") == ["float64 float32 vendors/a/convert_config.yaml:1"]
    files["b/convert_config.yaml"] = common.format("bfloat16")
    program, _ = folders("b", files)
    assert casts(program, "diopiArgmax", "input") == ["bfloat16 float32 vendors/b/convert_config.yaml:1"]
    assert casts(program, "diopiAddInp", "input") == ["float16 float32 vendors/a/convert_config.yaml:3"]


def test_layouts_are_decided_apart_from_dtypes(folders: Folders) -> None:
    files = vendor("a", "diopiAdd", config="- diopiAdd: {dtype: (float64)->float32, contiguous: true}\n")
    files |= vendor("b", "diopiCastDtype", "diopiCopyInp", base="a", config="- diopiAdd: {contiguous: false}\n")
    program, _ = folders("b", files)
    plan = next(p for p in program.plans if p.symbol == "diopiAdd")
    found = plan.conversion("input")
    assert found is not None and not found.contiguous
    assert casts(program, "diopiAdd", "input") == ["float64 float32 vendors/a/convert_config.yaml:1"]


def test_a_base_s_configuration_is_for_its_functions_only(folders: Folders) -> None:
    files = vendor("a", "diopiAdd", config="- common_config: {dtype: (float64)->float32}\n")
    files |= vendor("b", "diopiAddInp", "diopiCastDtype", base="a")
    program, _ = folders("b", files)
    assert casts(program, "diopiAddInp", "input") == []
    assert len(casts(program, "diopiAdd", "input")) == 1


def test_a_base_between_speaks_before_the_one_that_serves(folders: Folders) -> None:
    entry = "- diopiAdd: {{dtype: ({0})->float32}}\n"
    files = vendor("c", "diopiAdd", config=entry.format("float64"))
    files |= vendor("a", base="c", config=entry.format("float16")) | vendor("b", "diopiCastDtype", base="a")
    program, _ = folders("b", files)
    assert casts(program, "diopiAdd", "input") == ["float16 float32 vendors/a/convert_config.yaml:1"]


def listed(program: Program) -> str:
    return sources(program, [], renderer(ROOT / "templates")).text.partition("set(DIOPI_BASES")[2]


def test_what_is_compiled_of_a_base(folders: Folders) -> None:
    """Every source but the device's, only if one of its functions serves."""
    device = '#include <diopi/diopirt.h>\nextern "C" int initLibrary() { return 0; }\n'
    more = {"a/device.cpp": device, "a/common/words.cpp": "int words() { return 1; }\n", "a/tests/main.cpp": ""}
    yaml = "include_dirs: [sdk]\ndefines: [FAST=2, 'NAME=\"a\"']\n"
    files = vendor("a", "diopiAdd", yaml=yaml) | more | vendor("b", "diopiArgmax", base="a")
    program, diagnostics = folders("b", files)
    assert diagnostics.found == []
    assert listed(program) == """ a)
set(DIOPI_BASE_a_SOURCES
    "${DIOPI_ROOT}/vendors/a/common/words.cpp"
    "${DIOPI_ROOT}/vendors/a/functions/all.cpp"
)
set(DIOPI_BASE_a_INCLUDE_DIRS
    "${DIOPI_ROOT}/vendors/a"
    "${DIOPI_ROOT}/vendors/a/sdk"
    "${CMAKE_CURRENT_LIST_DIR}/declarations/a"
)
set(DIOPI_BASE_a_DEFINES
    [==[FAST=2]==]
    [==[NAME="a"]==]
)
"""
    program, _ = folders("b", files | vendor("b", "diopiAdd", base="a"))
    assert listed(program) == " )\n"


def test_a_function_in_the_base_s_device_code_is_not_offered(folders: Folders) -> None:
    device = 'extern "C" int initLibrary() { return 0; }\n' + defined("impl::a", "diopiAdd")
    files = vendor("a") | {"a/device.cpp": device} | vendor("b", base="a")
    assert served(folders("a", files)[0]) == {"diopiAdd": "a"}
    assert served(folders("b", files)[0]) == {}


def exported(symbol: str) -> dict[str, str]:
    """A further source of the vendor a, with a function of C linkage."""
    text = (
        f'#include <diopi/diopirt.h>\nextern "C" diopiError_t {symbol}({PARAMS[symbol]}) {{ return diopiSuccess; }}\n'
    )
    return {"a/exported.cpp": text}


@pytest.mark.parametrize("where", ["{}", "namespace impl::a {{ {} }}"])
def test_a_base_s_function_with_c_linkage_is_exported_as_it_is(folders: Folders, where: str) -> None:
    head, _, body = exported("diopiAdd")["a/exported.cpp"].partition("\n")
    files = vendor("a") | {"a/exported.cpp": f"{head}\n{where.format(body.strip())}\n"} | vendor("b", base="a")
    program, diagnostics = folders("b", files)
    assert diagnostics.found == []
    (plan,) = program.plans
    found = plan.implementation
    assert (found.symbol, found.origin, found.name, plan.conversions) == ("diopiAdd", Origin.EXPORTED, "a", ())
    assert "vendors/a/exported.cpp" in listed(program)
    assert "vendors/a" not in sources(program, [], renderer(ROOT / "templates")).text.partition("set(DIOPI_BASES")[0]


def test_the_vendor_s_own_function_comes_before_a_base_s_with_c_linkage(folders: Folders) -> None:
    files = vendor("a", "diopiArgmax") | exported("diopiAdd") | vendor("b", "diopiAdd", base="a")
    program, _ = folders("b", files)
    assert served(program) == {"diopiAdd": "b", "diopiArgmax": "a"}
    assert {p.symbol: p.implementation.origin for p in program.plans}["diopiAdd"] is Origin.VENDOR


def test_a_base_s_function_with_c_linkage_comes_before_its_own_in_the_namespace(folders: Folders) -> None:
    """As in the base itself: the symbol is taken."""
    files = vendor("a", "diopiAdd") | exported("diopiAdd") | vendor("b", base="a")
    for name in ("a", "b"):
        program, _ = folders(name, files)
        assert [p.implementation.source for p in program.plans] == ["vendors/a/exported.cpp"]


def test_device_functions_with_c_linkage_inside_the_namespace_stay_out(folders: Folders) -> None:
    device = """#include <diopi/diopirt.h>
namespace impl { namespace a {
extern "C" {
void* device_malloc(uint64_t) { return nullptr; }
}
} }
"""
    files = vendor("a", "diopiAdd") | {"a/test_device.cpp": device} | vendor("b", base="a")
    program, _ = folders("b", files)
    assert "test_device.cpp" not in listed(program) and "functions/all.cpp" in listed(program)

"""Discovery by libclang: what counts as an implementation, what is reported, what the cache remembers."""

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.model.vendor import Origin, Vendor
from diopigen.passes.vendor.bind import bind_vendor
from diopigen.project import Project
from diopigen.source.cpp import clang, clang_functions
from tests.unit.vendor.small_project import contract_headers, small_contract

Bound = Callable[..., tuple[Vendor, Diagnostics]]

RELU = "diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input"
ADD = f"{RELU}, diopiConstTensorHandle_t other, const diopiScalar_t* alpha"
SGD = "diopiContextHandle_t, diopiTensorHandle_t, diopiTensorHandle_t, diopiTensorHandle_t, double"

ARGMAX = "diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, const int64_t*, bool"
OK = "{ return diopiSuccess; }"


@pytest.fixture(scope="module")
def program() -> Program:
    return small_contract()


@pytest.fixture
def bound(program: Program, tmp_path: Path) -> Bound:
    """`bound({"functions/a.cpp": text})`: the vendor `chip` with these files; call it again to change them."""
    contract_headers(tmp_path / "generated")

    def bind(files: dict[str, str], yaml: str = "doc: A chip.\n") -> tuple[Vendor, Diagnostics]:
        for name, text in {"vendor.yaml": yaml, **files}.items():
            path = tmp_path / "vendors" / "chip" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        diagnostics = Diagnostics()
        vendor = bind_vendor(Project(root=tmp_path), "chip", program, list, diagnostics)
        assert vendor is not None
        return vendor, diagnostics

    return bind


def source(body: str) -> dict[str, str]:
    return {"functions/all.cpp": f"#include <diopi/diopirt.h>\n{body}\n"}


def symbols(vendor: Vendor) -> list[str]:
    return [implementation.symbol for implementation in vendor.implementations]


DEFINITIONS = {
    "nested namespaces": (f"namespace impl {{ namespace chip {{\ndiopiError_t diopiAdd({ADD}) {OK}\n}} }}"),
    "one line of namespaces": f"namespace impl::chip {{\ndiopiError_t diopiAdd({ADD}) {OK}\n}}",
    "an inline namespace": (
        f"namespace impl {{ inline namespace v2 {{ namespace chip {{ inline namespace a {{\n"
        f"diopiError_t diopiAdd({ADD}) {OK}\n}} }} }} }}"
    ),
    "a macro": (f"#define BINARY(name) diopiError_t name({ADD}) {OK}\n" "namespace impl::chip { BINARY(diopiAdd) }"),
    "a name made by a macro": (
        f"#define BINARY(name) diopiError_t diopi##name({ADD}) {OK}\n" "namespace impl::chip { BINARY(Add) }"
    ),
    "a body that is a template": (
        "template <typename Op> diopiError_t binary(diopiTensorHandle_t) { return diopiSuccess; }\n"
        f"namespace impl::chip {{ diopiError_t diopiAdd({ADD}) {{ return binary<int>(out); }} }}"
    ),
    "a definition outside of its namespace": (
        f"namespace impl::chip {{ diopiError_t diopiAdd({ADD}); }}\n" f"diopiError_t impl::chip::diopiAdd({ADD}) {OK}"
    ),
    "types by other names": (
        "using Tensor = diopiTensorHandle_t; typedef const diopiTensor* Input;\n"
        "namespace impl::chip { auto diopiAdd(diopiContext* ctx, Tensor out, const Input a, Input b,\n"
        "diopiScalar_t const* s) -> diopiError_t { return diopiSuccess; } }"
    ),
    "an overload beside it": (
        f"namespace impl::chip {{ diopiError_t diopiAdd(int, int) {OK}\n" f"diopiError_t diopiAdd({ADD}) {OK} }}"
    ),
    "a macro in a macro": (
        "#define PASTE(a, b) a##b\n#define NAME(n) PASTE(diopi, n)\n"
        f"#define OPEN namespace impl {{ namespace chip {{\n#define CLOSE }} }}\n"
        f"#define BINARY(n) OPEN diopiError_t NAME(n)({ADD}) {OK} CLOSE\nBINARY(Add)"
    ),
    "a list of macros": (
        f"#define EACH(X) X(Add)\n#define BINARY(n) diopiError_t diopi##n({ADD}) {OK}\n"
        "namespace impl::chip { EACH(BINARY) }"
    ),
    "a definition through an alias of its namespace": (
        f"namespace impl::chip {{ diopiError_t diopiAdd({ADD}); }}\nnamespace ours = impl::chip;\n"
        f"diopiError_t ours::diopiAdd({ADD}) {OK}"
    ),
    "an instantiated template behind it": (
        f"template <int N> diopiError_t add({ADD}) {OK}\ntemplate diopiError_t add<1>({ADD});\n"
        f"namespace impl::chip {{ diopiError_t diopiAdd({ADD}) {{ return add<1>(ctx, out, input, other, alpha); }} }}"
    ),
    "a macro that calls a template": (
        f"template <class Op> diopiError_t run({ADD}) {{ return Op()(); }}\n"
        "struct AddOp { diopiError_t operator()() const { return diopiSuccess; } };\n"
        f"#define WRAP(n) diopiError_t diopi##n({ADD}) {{ return run<n##Op>(ctx, out, input, other, alpha); }}\n"
        "namespace impl::chip { WRAP(Add) }"
    ),
    "a template beside it": (
        f"namespace impl::chip {{ template <class T> diopiError_t diopiAdd(T) {OK}\n"
        f"diopiError_t diopiAdd({ADD}) {OK} }}"
    ),
    "attributes": (
        f'namespace impl::chip {{ [[nodiscard]] __attribute__((visibility("default"))) diopiError_t diopiAdd({ADD})\n'
        f"noexcept {OK} }}"
    ),
    "C++ linkage said aloud": f'namespace impl::chip {{ extern "C++" {{ diopiError_t diopiAdd({ADD}) {OK} }} }}',
    "a deduced result": f"namespace impl::chip {{ auto diopiAdd({ADD}) {OK} }}",
    "default arguments": f"namespace impl::chip {{ diopiError_t diopiAdd({ADD} = nullptr) {OK} }}",
    "constant parameters": (
        "namespace impl::chip { diopiError_t diopiAdd(const diopiContextHandle_t ctx, const diopiTensorHandle_t out,\n"
        "const diopiConstTensorHandle_t input, const diopiConstTensorHandle_t other,\n"
        f"const diopiScalar_t* const alpha) {OK} }}"
    ),
    "one branch of a condition": (
        f"#if defined(FAST)\n#error no\n#else\nnamespace impl::chip {{ diopiError_t diopiAdd({ADD}) {OK} }}\n#endif"
    ),
    "words of other sorts around it": (
        f"/* namespace impl::chip {{ diopiError_t diopiSgd() {{}} }} */ // }} }} }}\n"
        'const char* raw = R"x(namespace impl::chip { diopiError_t diopiCat() {} )x";\n'
        f"namespace impl::chip {{ diopiError_t\n/* name */ diopiAdd // (\n({ADD}) {OK} }}"
    ),
    "a lambda and a class in the body": (
        f"namespace impl::chip {{ diopiError_t diopiAdd({ADD}) {{\n"
        "struct Local { static int diopiCat() { return 0; } }; return [] { return diopiSuccess; }(); } }"
    ),
    "a function with a try block": (
        f"namespace impl::chip {{ diopiError_t diopiAdd({ADD}) try {{ throw 1; }}\n"
        "catch (int) { return diopiErrorOccurred; } }"
    ),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_found(bound: Bound, name: str) -> None:
    vendor, diagnostics = bound(source(DEFINITIONS[name]))
    assert diagnostics.found == []
    assert symbols(vendor) == ["diopiAdd"]
    assert vendor.implementations[0].source == "vendors/chip/functions/all.cpp"
    assert vendor.implementations[0].span.line >= 2


NO_DEFINITIONS = {
    "a declaration": f"namespace impl::chip {{ diopiError_t diopiAdd({ADD}); }}",
    "a comment": f"// namespace impl::chip {{ diopiError_t diopiAdd({ADD}) {OK} }}",
    "a string": 'const char* text = "diopiError_t diopiAdd() {}";',
    "code that is switched off": (f"#if 0\nnamespace impl::chip {{ diopiError_t diopiAdd({ADD}) {OK} }}\n#endif"),
    "another namespace": f"namespace impl::chips {{ diopiError_t diopiAdd({ADD}) {OK} }}",
    "an unnamed namespace": (
        f"namespace impl::chip {{ namespace {{ [[maybe_unused]] diopiError_t diopiAdd({ADD}) {OK} }} }}"
    ),
    "a static function": f"namespace impl::chip {{ static diopiError_t diopiAdd({ADD}) {OK} }}",
    "a method": f"namespace impl::chip {{ struct S {{ diopiError_t diopiAdd({ADD}) {OK} }}; }}",
    "a call": (
        f"diopiError_t diopiAdd({ADD});\n" "namespace impl::chip { int f() { return diopiAdd(0, 0, 0, 0, 0); } }"
    ),
    "a template": f"namespace impl::chip {{ template <int> diopiError_t diopiAdd({ADD}) {OK} }}",
    "an instantiated template": (
        f"namespace impl::chip {{ template <int> diopiError_t diopiAdd({ADD}) {OK}\n"
        f"template diopiError_t diopiAdd<1>({ADD}); }}"
    ),
    "a specialized template": (
        f"namespace impl::chip {{ template <int> diopiError_t diopiAdd({ADD}) {OK}\n"
        f"template <> diopiError_t diopiAdd<1>({ADD}) {OK} }}"
    ),
    "a variable": "namespace impl::chip { auto diopiAdd = [] { return diopiSuccess; }; }",
    "a macro that nothing uses": f"#define ADD namespace impl::chip {{ diopiError_t diopiAdd({ADD}) {OK} }}",
    "a deleted function": f"namespace impl::chip {{ diopiError_t diopiAdd({ADD}) = delete; }}",
    "a re-exported declaration": (
        f"namespace other {{ diopiError_t diopiAdd({ADD}); }}\nnamespace impl::chip {{ using other::diopiAdd; }}"
    ),
    "a re-exported unnamed namespace": (
        f"namespace other {{ namespace {{ diopiError_t diopiAdd({ADD}) {OK} }} }}\n"
        "namespace impl::chip { using other::diopiAdd; }"
    ),
    "a whole namespace let in": (
        f"namespace other {{ diopiError_t diopiAdd({ADD}) {OK} }}\nnamespace impl::chip {{ using namespace other; }}"
    ),
}


@pytest.mark.parametrize("name", NO_DEFINITIONS)
def test_not_found(bound: Bound, name: str) -> None:
    vendor, diagnostics = bound(source(NO_DEFINITIONS[name]))
    assert diagnostics.found == [] and symbols(vendor) == []


CALLED = {
    "impl::chip": f"namespace impl::chip {{ diopiError_t diopiAdd({ADD}) {OK} }}",
    "impl::v2::chip::a": (
        "namespace impl { inline namespace v2 { namespace chip { inline namespace a {\n"
        f"diopiError_t diopiAdd({ADD}) {OK} }} }} }} }}"
    ),
    "common::binary": (
        f"namespace common::binary {{ diopiError_t diopiAdd({ADD}) {OK}\ndiopiError_t diopiAdd(int); }}\n"
        "namespace impl::chip { using common::binary::diopiAdd; }"
    ),
}


@pytest.mark.parametrize("namespace", CALLED)
def test_the_namespace_that_the_symbol_carries(bound: Bound, namespace: str) -> None:
    """The adaptor calls what the linker knows: inline namespaces and where `using` takes a function from count."""
    vendor, diagnostics = bound(source(CALLED[namespace]))
    assert diagnostics.found == []
    (found,) = vendor.implementations
    assert (found.symbol, found.name, found.namespace) == ("diopiAdd", "chip", namespace)


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_the_linker_finds_what_is_found(bound: Bound, tmp_path: Path) -> None:
    """What is taken for an implementation has a symbol that the adaptor's call links to; g++ is the judge."""
    path, unit = tmp_path / "vendors/chip/functions/all.cpp", tmp_path / "all.o"
    compiled = ["g++", "-std=c++17", "-w", "-c", f"-I{tmp_path}/generated/include", "-o", str(unit), str(path)]
    lost = []
    for name, text in {**DEFINITIONS, **CALLED}.items():
        (found,) = bound(source(text))[0].implementations
        subprocess.run(compiled, check=True)
        listed = subprocess.run(["nm", "-C", "--defined-only", unit], capture_output=True, text=True, check=True).stdout
        if f" {found.namespace}::diopiAdd(diopiContext*, diopiTensor*, diopiTensor const*, " not in listed:
            lost.append((name, listed))
    assert lost == []


def test_sources_lie_where_the_vendor_likes(bound: Bound) -> None:
    """Without a word in vendor.yaml all of its folder counts, but tests and what was built there."""
    one = f"#include <diopi/diopirt.h>\nnamespace impl::chip {{ diopiError_t NAME({ADD}) {OK} }}"
    sgd = f"#include <diopi/diopirt.h>\nnamespace impl::chip {{ diopiError_t diopiSgd({SGD}) {OK} }}"
    argmax = f"#include <diopi/diopirt.h>\nnamespace impl::chip {{ diopiError_t diopiArgmax({ARGMAX}) {OK} }}"
    files = {
        "functions_ext/serving/add.cc": one.replace("NAME", "diopiAdd"),
        "functions_mmcv/sgd.cu": sgd,
        "argmax.cxx": argmax,
        "test/add.cpp": one.replace("NAME", "diopiAdd"),
        "build-debug/add.cpp": one.replace("NAME", "diopiAdd"),
        ".backup/add.cpp": one.replace("NAME", "diopiAdd"),
        "device.cpp": '#include "chip_rt.h"\nextern "C" int initLibrary() { return chipInit(); }\n',
    }
    vendor, diagnostics = bound(files)
    assert diagnostics.found == []
    assert sorted(symbols(vendor)) == ["diopiAdd", "diopiArgmax", "diopiSgd"]


def test_a_source_that_only_a_missing_header_could_explain(bound: Bound) -> None:
    """Whether it defines anything nobody knows, so the missing header is told."""
    _, diagnostics = bound({"ops.cpp": '#include "chip_macros.h"\nnamespace impl::chip { DEFINE_ALL }\n'})
    assert [(d.code, str(d.span)) for d in diagnostics.found] == [("missing-header", "vendors/chip/ops.cpp:1:10")]
    _, diagnostics = bound({"ops.cpp": '#include "chip_macros.h"\nint helper() { return CHIP_ONE; }\n'})
    assert diagnostics.found == []


@pytest.mark.parametrize(("defines", "found"), [("[]", ["diopiAdd"]), ("[FAST]", ["diopiAddInp"])])
def test_conditions_by_the_defines_of_the_vendor(bound: Bound, defines: str, found: list[str]) -> None:
    inplace = "diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, const diopiScalar_t*"
    text = (
        f"namespace impl::chip {{\n#ifdef FAST\ndiopiError_t diopiAddInp({inplace}) {OK}\n"
        f"#else\ndiopiError_t diopiAdd({ADD}) {OK}\n#endif\n}}"
    )
    vendor, diagnostics = bound(source(text), f"doc: A chip.\ndefines: {defines}\n")
    assert diagnostics.found == [] and symbols(vendor) == found


def test_bytes_that_are_no_utf_8(bound: Bound, tmp_path: Path) -> None:
    text = '#include <diopi/diopirt.h>\n// gr\xfc\xdfe\nconst char* word = "\xe4";\nint broken = \xf6;\n'
    text += f"namespace impl::chip {{ diopiError_t diopiAdd({ADD}) {OK} }}\n"
    path = tmp_path / "vendors/chip/functions/old.cpp"
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("latin-1"))
    vendor, diagnostics = bound({})
    assert symbols(vendor) == ["diopiAdd"]
    assert [d.code for d in diagnostics.found] == ["vendor-source"]


def test_a_kernel_that_is_launched(bound: Bound) -> None:
    """The words of CUDA cost no definition and raise no warning."""
    text = (
        "#include <diopi/diopirt.h>\n__global__ void twice(float* x) { x[threadIdx.x] *= 2; }\n"
        "template <class T> __device__ __forceinline__ T one() { return T(1); }\n"
        f"namespace impl::chip {{ diopiError_t diopiAdd({ADD}) {{\n"
        "twice<<<dim3(1), 2, 0, nullptr>>>(nullptr);\nreturn diopiSuccess; } }\n"
        f"namespace impl::chip {{ diopiError_t diopiSgd({SGD}) {OK} }}\n"
    )
    vendor, diagnostics = bound({"functions/all.cu": text})
    assert sorted(symbols(vendor)) == ["diopiAdd", "diopiSgd"]
    assert diagnostics.found == []


def test_folders_of_any_depth_and_cuda(bound: Bound) -> None:
    body = f"namespace impl::chip {{ diopiError_t NAME({ADD}) {OK} }}"
    head = "#include <diopi/diopirt.h>\n"
    kernel = "__global__ void twice(float* x) { x[0] = 2; }\n"
    files = {
        "functions/a.cc": head + body.replace("NAME", "diopiAdd"),
        "functions/nn/deep/sgd.cu": (f"{head}{kernel}namespace impl::chip {{ diopiError_t diopiSgd({SGD}) {OK} }}"),
        "functions/notes.txt": body.replace("NAME", "diopiArgmax"),
    }
    vendor, diagnostics = bound(files)
    assert diagnostics.found == [] and symbols(vendor) == ["diopiAdd", "diopiSgd"]
    assert vendor.sources == ("vendors/chip/functions/a.cc", "vendors/chip/functions/nn/deep/sgd.cu")


def test_other_parameters_are_an_error_at_their_place(bound: Bound) -> None:
    params = ADD.replace("diopiConstTensorHandle_t other", "diopiTensorHandle_t other")
    text = f"namespace impl::chip {{\ndiopiError_t diopiAdd({params}) {OK}\n}}"
    vendor, diagnostics = bound(source(text))
    (finding,) = diagnostics.found
    assert finding.code == "signature" and str(finding.span) == "vendors/chip/functions/all.cpp:3:14"
    assert finding.message == (
        "parameter 4 ('other') of 'diopiAdd' is 'diopiTensorHandle_t' here "
        "and 'diopiConstTensorHandle_t' in the contract"
    )
    assert finding.hint is not None and finding.hint.endswith(
        "diopiError_t diopiAdd(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input, "
        "diopiConstTensorHandle_t other, const diopiScalar_t* alpha)"
    )
    assert symbols(vendor) == []


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        (
            f"diopiError_t diopiAdd({RELU}) {OK}",
            "'diopiAdd' takes 3 parameters here and 5 in the contract",
        ),
        (f"int diopiAdd({ADD}) {{ return 0; }}", "'diopiAdd' returns 'int' here and 'diopiError_t' in the contract"),
        (
            f"diopiError_t diopiSgd({SGD.replace('double', 'float')}) {OK}",
            "parameter 5 ('lr') of 'diopiSgd' is 'float' here and 'double' in the contract",
        ),
    ],
)
def test_signature(bound: Bound, definition: str, message: str) -> None:
    _, diagnostics = bound(source(f"namespace impl::chip {{ {definition} }}"))
    assert [(d.code, d.message) for d in diagnostics.found] == [("signature", message)]


def test_bool_is_never_int(bound: Bound) -> None:
    params = "diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, const int64_t*, int"
    _, diagnostics = bound(source(f"namespace impl::chip {{ diopiError_t diopiArgmax({params}) {OK} }}"))
    assert [d.message for d in diagnostics.found] == [
        "parameter 5 ('keepdim') of 'diopiArgmax' is 'int' here and 'bool' in the contract"
    ]


def test_a_missing_header_is_told_once(bound: Bound) -> None:
    files = {
        f"functions/{name}.cpp": f'#include "common.h"\nnamespace impl::chip {{ diopiError_t {name}({params}) {OK} }}'
        for name, params in {"diopiAdd": ADD, "diopiSgd": SGD, "diopiArgmax": ARGMAX}.items()
    }
    files["functions/common.h"] = "#include <diopi/diopirt.h>\n#include <chip_sdk.h>\n"
    vendor, diagnostics = bound(files)
    assert [f"{d.span}: {d.message}" for d in diagnostics.found] == [
        "vendors/chip/functions/common.h:2:10: 'chip_sdk.h' is not found, so only names and parameter counts are "
        "checked in vendors/chip/functions/diopiAdd.cpp and 2 more"
    ]
    assert len(symbols(vendor)) == 3


def test_a_common_header_without_its_sdk_is_read_once(
    bound: Bound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in any file: names and numbers of parameters count where it is included, all of the signature elsewhere."""
    made: list[str] = []
    original = clang.precompile

    def precompile(text: str, flags: Sequence[str], target: Path) -> clang.Parsed | None:
        parsed = original(text, flags, target)
        made.append(text if parsed is not None else "")
        return parsed

    monkeypatch.setattr(clang_functions, "precompile", precompile)
    chip = ADD.replace("diopiTensorHandle_t out", "chipTensor_t out")
    body = '#include "{0}"\nnamespace impl::chip {{ diopiError_t {1}({2}) {{ return CHIP_CALL(chipRun()); }} }}\n'
    files = {
        "functions/common.h": '#pragma once\n#include "chip_sdk.h"\n#include <diopi/diopirt.h>\nchipType_t given();\n',
        "functions/add.cpp": body.format("common.h", "diopiAdd", chip),
        "functions/sgd.cpp": body.format("common.h", "diopiSgd", SGD),
        "functions/argmax.cpp": body.format("common.h", "diopiArgmax", "diopiContextHandle_t"),
        "functions/nested/helper.cpp": '#include "../common.h"\nnamespace impl::chip { int helper() { return 1; } }\n',
        "functions/inplace.cpp": body.format("diopi/diopirt.h", "diopiAddInp", "int, int, int, int"),
    }
    yaml = "doc: A chip.\ninclude_dirs: [functions]\n"
    vendor, diagnostics = bound(files, yaml)
    header = f'"{tmp_path}/vendors/chip/functions/common.h"'
    assert made == [f"#if __has_include({header})\n#include {header}\n#endif\n"]
    assert symbols(vendor) == ["diopiAdd", "diopiSgd"]
    assert [f"{d.span.path}:{d.span.line}: {d.code}" for d in diagnostics.ordered()] == [
        "vendors/chip/functions/argmax.cpp:2: signature",
        "vendors/chip/functions/common.h:2: missing-header",
        "vendors/chip/functions/inplace.cpp:2: signature",
        "vendors/chip/functions/inplace.cpp:2: vendor-source",
    ]
    sdk = tmp_path / "vendors/chip/functions/chip_sdk.h"
    sdk.write_text("#define CHIP_CALL(x) diopiSuccess\nusing chipType_t = int;\n", encoding="utf-8")
    vendor, diagnostics = bound(files, yaml)
    assert symbols(vendor) == ["diopiSgd"]
    assert "missing-header" not in [d.code for d in diagnostics.found]


@pytest.mark.parametrize("shared", [True, False])
def test_what_files_include_is_read_once_wherever_they_are(
    bound: Bound, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    """By relative paths and by others, with the SDK behind a header or in each file, but not under a condition."""
    made: list[str] = []
    original = clang.precompile

    def precompile(text: str, flags: Sequence[str], target: Path) -> clang.Parsed | None:
        made.append(text)
        return original(text, flags, target)

    monkeypatch.setattr(clang_functions, "precompile", precompile)
    head = "#include <chip_sdk.h>\n#include <diopi/diopirt.h>\n\n#include <cmath>\n"
    include = {f"{n}": f'#include "{"../" * n}helper.hpp"\n' if shared else head for n in (1, 2)}
    names = {"diopiAdd": ADD, "diopiSgd": SGD, "diopiArgmax": ARGMAX}
    files = {
        f"functions/{name}.cpp": f"{include['1']}namespace impl::chip {{ diopiError_t {name}({params}) {OK} }}"
        for name, params in names.items()
    }
    more = "#ifdef MORE\n#include <more.h>\n#endif\n"
    files["functions/nested/more.cpp"] = f"{more}{include['2']}namespace impl::chip {{}}"
    files["helper.hpp"] = f"#pragma once\n{head}"
    vendor, diagnostics = bound(files)
    assert sorted(symbols(vendor)) == sorted(names)
    (finding,) = diagnostics.found
    place = "helper.hpp:2:10" if shared else "functions/diopiAdd.cpp:1:10"
    assert f"{finding.span}: {finding.message}" == (
        f"vendors/chip/{place}: 'chip_sdk.h' is not found, so only names and parameter counts are checked in "
        "vendors/chip/functions/diopiAdd.cpp and 3 more"
    )
    (text,) = made
    assert text.count("#include") == (1 if shared else 3) and "more.h" not in text


@pytest.mark.parametrize(
    "text",
    [
        "int diopiAddSize(int n) { return n; }",
        "diopiError_t diopiGetTensorNumel(diopiConstTensorHandle_t, int64_t*) {}",
    ],
)
def test_helpers_and_run_time_functions_are_not_unknown(bound: Bound, text: str) -> None:
    _, diagnostics = bound(source(f"namespace impl::chip {{ {text} }}"))
    assert diagnostics.found == []


def test_an_unknown_name_is_a_warning_with_a_suggestion(bound: Bound) -> None:
    _, diagnostics = bound(source(f"namespace impl::chip {{ diopiError_t diopiAdddd({ADD}) {OK} }}"))
    (finding,) = diagnostics.found
    assert finding.code == "unknown-function" and finding.hint == "did you mean 'diopiAdd'?"
    assert not diagnostics.failed


def test_a_missing_sdk_header_leaves_names_and_arity(bound: Bound) -> None:
    body = (
        '#include "chip_sdk.h"\n'
        "namespace impl::chip {\n"
        "diopiError_t diopiSgd(diopiContextHandle_t, chipTensor_t, diopiTensorHandle_t, diopiTensorHandle_t,\n"
        "                      double) {\n"
        "    return chipCall();\n}\n"
        f"diopiError_t diopiAdd({RELU}) {OK}\n}}"
    )
    vendor, diagnostics = bound(source(body))
    assert [d.code for d in diagnostics.ordered()] == ["missing-header", "signature"]
    assert "'chip_sdk.h' is not found" in diagnostics.ordered()[0].message
    assert symbols(vendor) == ["diopiSgd"]


def test_any_number_of_words_of_a_missing_sdk(bound: Bound) -> None:
    calls = "\n".join(f"    chipCall{n}(chip{n}, CHIP_{n});" for n in range(60))
    text = (
        f'#include "chip_sdk.h"\nstatic void run() {{\n{calls}\n}}\n'
        f"namespace impl::chip {{ diopiError_t diopiAdd({ADD}) {OK} }}"
    )
    vendor, diagnostics = bound(source(text))
    assert [d.code for d in diagnostics.found] == ["missing-header"]
    assert symbols(vendor) == ["diopiAdd"]


def test_a_missing_header_that_comes(bound: Bound, tmp_path: Path) -> None:
    files = source(f'#include "chip_sdk.h"\nnamespace impl::chip {{ diopiError_t diopiAdd({ADD}) {OK} }}')
    yaml = "doc: A chip.\ninclude_dirs: [../../sdk]\n"
    assert [d.code for d in bound(files, yaml)[1].found] == ["missing-header"]
    (tmp_path / "sdk").mkdir()
    (tmp_path / "sdk" / "chip_sdk.h").write_text("struct Chip {};\n", encoding="utf-8")
    assert bound(files, yaml)[1].found == []


def test_an_sdk_header_by_include_dirs(bound: Bound) -> None:
    files = source('#include "chip_sdk.h"\nnamespace impl::chip { diopiError_t diopiAdd(' + ADD + ") { return kOk; } }")
    files["sdk/chip_sdk.h"] = "#define kOk diopiSuccess\n"
    vendor, diagnostics = bound(files, "doc: A chip.\ninclude_dirs: [sdk]\n")
    assert diagnostics.found == [] and symbols(vendor) == ["diopiAdd"]


def test_two_definitions(bound: Bound) -> None:
    text = f"#include <diopi/diopirt.h>\nnamespace impl::chip {{ diopiError_t diopiAdd({ADD}) {OK} }}"
    _, diagnostics = bound({"functions/a.cpp": text, "functions/b.cpp": text})
    (finding,) = diagnostics.found
    assert finding.code == "duplicate-definition" and finding.span.path.endswith("b.cpp")
    assert finding.related[0][1].path.endswith("a.cpp")


C_LINKAGE = {
    "in the namespace": f'namespace impl::chip {{ extern "C" diopiError_t diopiAdd({ADD}) {OK} }}',
    "in no namespace": f'extern "C" diopiError_t diopiAdd({ADD}) {OK}',
    "in a block": f'extern "C" {{\ndiopiError_t diopiAdd({ADD}) {OK}\n}}',
    "as the header declares it": f'extern "C" diopiError_t diopiAdd({ADD});\ndiopiError_t diopiAdd({ADD}) {OK}',
}


@pytest.mark.parametrize("name", C_LINKAGE)
def test_c_linkage_is_exported_as_it_is(bound: Bound, name: str) -> None:
    vendor, diagnostics = bound(source(C_LINKAGE[name]))
    assert [(i.symbol, i.origin, i.name, i.nested) for i in vendor.implementations] == [
        ("diopiAdd", Origin.EXPORTED, "chip", False)
    ]
    assert [(d.code, d.severity.value) for d in diagnostics.found] == [("c-linkage", "note")]


def test_functions_outside_that_are_no_operators(bound: Bound) -> None:
    """Names of the vendor, and C++ functions that only share a name with the contract."""
    text = 'extern "C" const char* diopiGetVendorName() { return ""; }\nint diopiAdd(int a) { return a; }'
    vendor, diagnostics = bound(source(text))
    assert (symbols(vendor), diagnostics.found) == ([], [])


def test_unknown_key_and_base_in_vendor_yaml(bound: Bound) -> None:
    _, diagnostics = bound({}, "doc: A chip.\nbase: portabel\nsources: [functions, kernels]\n")
    assert [d.code for d in diagnostics.ordered()] == ["unknown-base", "missing-folder", "missing-folder"]
    assert diagnostics.ordered()[0].hint == "did you mean 'portable'?"


GOOD = source(f"namespace impl::chip {{ diopiError_t diopiAdd({ADD}) {OK} }}")


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were parsed."""
    seen: list[str] = []
    parse = clang_functions.parse

    def counted(path: Path, *rest: object) -> object:
        seen.append(path.name)
        return parse(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(clang_functions, "parse", counted)
    return seen


def test_nothing_is_parsed_twice(bound: Bound, parses: list[str]) -> None:
    first, _ = bound(GOOD)
    assert sorted(parses) == ["all.cpp", "contract_types.cpp"]
    parses.clear()
    again, _ = bound(GOOD)
    assert parses == [] and again == first


def test_headers_that_many_files_include(bound: Bound, parses: list[str]) -> None:
    """They are read once for the files that include them; a change of one is seen by all of these."""
    head = "#include <diopi/diopirt.h>\n"
    name = ("diopiAdd", "diopiSgd", "diopiAddInp")
    params = (ADD, SGD, "diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, const diopiScalar_t*")
    files = {
        f"functions/{n}.cpp": f'{head}#include "common.h"\nnamespace impl::chip {{ diopiError_t {n}({p}) {OK} }}'
        for n, p in zip(name, params, strict=True)
    }
    files["functions/wide.cpp"] = f'#define WIDE\n{head}#include "common.h"\nnamespace impl::chip {{ Wide wide; }}'
    files["functions/own.cpp"] = "struct Common {};\nnamespace impl::chip { int own; }"
    text = "#pragma once\nstruct Common { int size; };\n#ifdef WIDE\nstruct Wide {};\n#endif\n"
    vendor, diagnostics = bound({**files, "common.h": text})
    assert diagnostics.found == [] and sorted(symbols(vendor)) == sorted(name)
    counts = {file: parses.count(file) for file in ("diopiAdd.cpp", "own.cpp", "wide.cpp")}
    assert counts == {"diopiAdd.cpp": 1, "own.cpp": 1, "wide.cpp": 2}  # which says something before it reads a header
    parses.clear()
    body = f"namespace impl::chip {{ inline diopiError_t diopiArgmax({ARGMAX}) {OK} }}"
    files["functions/wide.cpp"] = head
    vendor, diagnostics = bound({**files, "common.h": f"#pragma once\n{head}{body}\n"})
    assert [d.code for d in diagnostics.found] == ["inline-definition"]
    assert diagnostics.found[0].message == (
        "'diopiArgmax' is inline, so there is no code for it that the adaptor could call"
    )
    assert sorted(symbols(vendor)) == sorted(name)


def test_only_what_changed_is_parsed(bound: Bound, parses: list[str]) -> None:
    files = {**GOOD, "functions/b.cpp": '#include "b.h"\n', "functions/b.h": "#pragma once\n"}
    bound(files)
    parses.clear()
    vendor, _ = bound({**files, "functions/b.h": "#pragma once\n// changed\n"})
    assert parses == ["b.cpp"] and symbols(vendor) == ["diopiAdd"]
    parses.clear()
    bound(files, "doc: A chip.\ndefines: [FAST]\n")
    assert sorted(parses) == ["all.cpp", "b.cpp"]


@pytest.mark.parametrize("damage", ["", "{", '{"version": 3, "checksum": "0"}\n{}', "\x00\xff"])
def test_a_damaged_cache_is_made_anew(bound: Bound, parses: list[str], tmp_path: Path, damage: str) -> None:
    first, _ = bound(GOOD)
    parses.clear()
    (tmp_path / ".cache/diopigen/sources-impl-chip.json").write_text(damage, encoding="latin-1")
    again, diagnostics = bound(GOOD)
    assert again == first and parses == ["all.cpp"]
    assert [d.code for d in diagnostics.found] == ["damaged-cache"]
    _, diagnostics = bound(GOOD)
    assert diagnostics.found == []


def test_a_definition_that_goes_is_forgotten(bound: Bound, tmp_path: Path) -> None:
    bound(GOOD)
    (tmp_path / "vendors/chip/functions/all.cpp").unlink()
    vendor, _ = bound({})
    assert symbols(vendor) == []


def test_contract_that_clang_cannot_read(bound: Bound, tmp_path: Path) -> None:
    header = tmp_path / "generated/include/diopi/diopirt.h"
    header.write_text("#include <no/such/header.h>\n", encoding="utf-8")
    vendor, diagnostics = bound(GOOD)
    assert "broken-contract" in [d.code for d in diagnostics.found] and symbols(vendor) == []
    assert replace(vendor, implementations=()) == vendor


def test_no_contract_to_compare_with(bound: Bound, tmp_path: Path) -> None:
    (tmp_path / "generated/include/diopi/diopirt.h").unlink()
    vendor, diagnostics = bound(GOOD)
    assert [(d.code, d.hint) for d in diagnostics.found] == [("missing-contract", "run 'diopigen header'")]
    assert symbols(vendor) == []


def test_what_clang_cannot_read_is_told_once_a_file(bound: Bound) -> None:
    body = f"namespace impl::chip {{ diopiError_t diopiAdd({ADD}) {OK} }}"
    vendor, diagnostics = bound(source(f"int broken = nothing;\n{body}\nint again = none;"))
    assert [(d.code, d.message) for d in diagnostics.found] == [
        ("vendor-source", "clang says: use of undeclared identifier 'nothing'")
    ]
    assert symbols(vendor) == ["diopiAdd"]


def test_without_libclang(bound: Bound, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise ImportError("No module named 'clang'")

    monkeypatch.setattr(clang, "require_clang", absent)
    _, diagnostics = bound(GOOD)
    assert [(d.code, d.message) for d in diagnostics.found] == [
        ("missing-libclang", "the sources cannot be parsed: No module named 'clang'")
    ]


def test_a_file_that_cannot_be_read(bound: Bound, tmp_path: Path) -> None:
    bound(GOOD)
    report, _ = clang_functions.report(tmp_path / "gone.cpp", [], clang_functions.Common(), "impl::chip", "diopi")
    assert report["definitions"] == [] and report["errors"][0]["message"] == "this file cannot be read"
    vendor, diagnostics = bound({"functions/zeros.cpp": "\x00\x01 binary", **GOOD})
    assert symbols(vendor) == ["diopiAdd"] and not diagnostics.failed


def test_headers_that_are_named_foreign_are_not_missed(bound: Bound) -> None:
    text = {
        "functions/all.cpp": "#include <ATen/ops/relu.h>\n#include <diopi/diopirt.h>\n"
        f"namespace impl::chip {{ diopiError_t diopiAdd({ADD}) {{ at::relu_(out); {'at::f(); ' * 30}{OK[1:]} }}\n"
    }
    vendor, diagnostics = bound(text, "doc: A chip.\nforeign: [ATen]\n")
    assert diagnostics.found == [] and symbols(vendor) == ["diopiAdd"]
    wrong = {"functions/all.cpp": text["functions/all.cpp"].replace("diopiTensorHandle_t out", "int out")}
    _, diagnostics = bound(wrong, "doc: A chip.\nforeign: [ATen]\n")
    assert [d.code for d in diagnostics.found] == ["signature"]  # types are compared all the same
    _, diagnostics = bound(text)
    assert [d.code for d in diagnostics.found] == ["missing-header"]

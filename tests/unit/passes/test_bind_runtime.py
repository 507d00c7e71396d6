"""What runtime.yaml and dtypes.yaml name, and what they give values to, is C and C++; else its place is told."""

from collections.abc import Callable

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project

RUNTIME, DTYPES = "runtime.yaml", "dtypes.yaml"
MALLOC = 'malloc_func_t: {c: "void* (uint64_t bytes)"'
DATA = 'extern DIOPI_RT_API, c: "diopiError_t (diopiTensorHandle_t th, void**)"'


@pytest.mark.parametrize(
    "file, old, new, code, message",
    [
        (RUNTIME, "ReductionNone:", "class:", "reserved-name", "'class' is a keyword of C++98"),
        (DTYPES, "digits: 24, ", "", "missing-key", "'f32' has no 'digits'"),
        (DTYPES, "exponent: 11, ", "", "missing-key", "'f64' has no 'exponent'"),
        (RUNTIME, "ReductionNone:", '"a b":', "bad-name", "'a b' is not a name"),
        (RUNTIME, "ReductionEND: [3,", "ReductionEND: [2147483648,", "out-of-range", "'ReductionEND' is an int in C"),
        (RUNTIME, 'ReductionEND: [3, "the number of reductions"]', "ReductionEND: []", "wrong-kind", "'ReductionEND'"),
        (RUNTIME, "ReductionEND: [3,", "ReductionEND: [three,", "wrong-kind", "'ReductionEND' needs a number and"),
        (RUNTIME, "RoundModeNone:", "ReductionNone:", "not-in-c", "'ReductionNone' cannot be declared in C11"),
        (RUNTIME, "ReductionNone:", "tanh:", "reserved-name", "'tanh' is declared by mathcalls.h"),
        (RUNTIME, "diopiReduction_t:", "close:", "reserved-name", "'close' is declared by unistd.h"),
        (RUNTIME, "diopiReduction_t:", "int:", "reserved-name", "'int' is a keyword of C89"),
        (RUNTIME, MALLOC, MALLOC.replace("void*", "voyd*"), "not-in-c", "'malloc_func_t' cannot be declared in C11"),
        (RUNTIME, MALLOC, MALLOC.replace("bytes", "new"), "not-in-c", "'malloc_func_t' cannot be declared in C++11"),
        (RUNTIME, MALLOC, MALLOC.replace("uint64_t", "foo_t"), "not-in-c", "'malloc_func_t' cannot be declared in C11"),
        (RUNTIME, "  diopiGetTensorShape:", "  register:", "reserved-name", "'register' is a keyword of C89"),
        (RUNTIME, "  diopiGetTensorShape:", "  diopiSuccess:", "not-in-c", "'diopiSuccess' cannot be declared in C11"),
        (RUNTIME, DATA, DATA.replace("extern", "externe"), "not-in-c", "'diopiGetTensorData' cannot be declared in"),
        (
            RUNTIME,
            "extern DIOPI_RT_API",
            '"\\u2028"',
            "not-in-c",
            "'diopiGetTensorData' is declared with U+2028, which",
        ),
        (
            DTYPES,
            "  f32: {word",
            "  f33: {word",
            "missing-key",
            "there is no 'f32', the float that plain numbers become",
        ),
        (RUNTIME, "    record_event:", "    signed:", "reserved-name", "'signed' is a keyword of C89"),
        (DTYPES, "word: int8", 'word: "int 8"', "bad-name", "'diopi_dtype_int 8' is not a name"),
        (DTYPES, "word: uint8", "word: int8", "duplicate-value", "'u8' has the word of 'i8'"),
        (DTYPES, "cpp: float,", "cpp: double,", "duplicate-value", "'f64' has the cpp of 'f32'"),
        (DTYPES, "torch: int16", "torch: int8", "duplicate-value", "'i16' has the torch of 'i8'"),
        (
            DTYPES,
            "cpp: float,",
            "cpp: long double,",
            "not-in-c",
            "an element of 'f32' cannot be a 'long double' of C++",
        ),
        (DTYPES, "cpp: uint16_t,", "cpp: char16,", "not-in-c", "an element of 'u16' cannot be a 'char16' of C++"),
        (DTYPES, "cpp: uint16_t,", "cpp: ') (',", "not-in-c", "an element of 'u16' cannot be a ') (' of C++"),
        (DTYPES, "cpp: uint16_t,", "cpp: short,", "not-in-c", "an element of 'u16' cannot be a 'short' of C++"),
        (
            DTYPES,
            "word: uint64",
            "word: u64",
            "missing-name",
            "'diopi_dtype_uint64' no longer exists, but runtime_",
        ),
        (
            DTYPES,
            "  index: [",
            "  indices: [",
            "missing-name",
            "'DIOPI_INDEX_TYPES' no longer exists, but runtime_",
        ),
        (
            RUNTIME,
            "diopiRoundMode_t:",
            "round_t:",
            "missing-name",
            "'diopiRoundMode_t' no longer exists, but run",
        ),
        (RUNTIME, "ReductionMean:", "ReductionAverage:", "missing-name", "'ReductionMean' no longer exists, but"),
        (
            RUNTIME,
            "  diopiGetTensorElemSize:",
            "  diopiElemSize:",
            "missing-name",
            "'diopiGetTensorElemSize' no longer exists, but",
        ),
        (RUNTIME, "    record_event:", "    note_event:", "missing-name", "'record_event' no longer exists, but"),
        (DTYPES, "word: uint8, value: 1", "word: uint8, value: 0", "duplicate-value", "'u8' has the value of 'i8'"),
        (DTYPES, "value: 1, size: 1", "value: 1, size: -3", "wrong-kind", "'size' needs a larger number here"),
    ],
)
def test_what_is_no_c_is_told(
    file: str, old: str, new: str, code: str, message: str, miniature: Callable[..., Project], checkout: Project
) -> None:
    project = miniature({})
    project.generated.symlink_to(checkout.generated)
    path = project.schemas / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    diagnostics = Diagnostics()
    pipeline.run(project, diagnostics)
    found = diagnostics.ordered()[0]
    assert (found.code, found.message[: len(message)]) == (code, message)
    assert found.span.path in ("schemas/runtime.yaml", "schemas/dtypes.yaml") and found.span.line > 1


def test_a_doc_may_say_anything(miniature: Callable[..., Project]) -> None:
    project = miniature({})
    path = project.schemas / RUNTIME
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"not at all"', '"not */ at /* all"'), encoding="utf-8")
    diagnostics = Diagnostics()
    assert pipeline.run(project, diagnostics) is not None and not diagnostics.found


def test_an_element_type_that_torch_lacks_is_told(miniature: Callable[..., Project]) -> None:
    pytest.importorskip("torch")
    project = miniature({})
    path = project.schemas / DTYPES
    path.write_text(
        path.read_text(encoding="utf-8").replace("scalar_type: Char", "scalar_type: Chat"), encoding="utf-8"
    )
    diagnostics = Diagnostics()
    pipeline.run(project, diagnostics, pipeline.Stage.ATEN)
    (found,) = diagnostics.ordered()
    assert (found.code, found.message) == ("not-in-torch", "c10::ScalarType has no 'Chat'")
    assert found.hint == "did you mean 'Char'?" and found.span.path == "schemas/dtypes.yaml" and found.span.line == 8

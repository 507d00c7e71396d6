"""Files as vendors have them: every form is read, and plans what docs/adaptor.md says of it."""

from pathlib import Path

import pytest

from diopigen.diagnostics import Diagnostics, Severity
from diopigen.model.program import Program
from diopigen.model.vendor import Conversion
from tests.unit.vendor.conftest import Planned
from tests.unit.vendor.small_project import with_vendor


def told(program: Program, symbol: str, param: str) -> str:
    """What is converted of one tensor, e.g. "float64>float32 NHWC contiguous"."""
    found = next(p for p in program.plans if p.symbol == symbol).conversion(param)
    return "" if found is None else " ".join(_told(found))


def _told(conversion: Conversion) -> list[str]:
    casts = [f"{cast.source.word}>{cast.target.word}" for cast in conversion.casts]
    return [*casts, *conversion.layouts, *(["contiguous"] if conversion.contiguous else [])]


def codes(diagnostics: Diagnostics) -> list[str]:
    return [d.code for d in diagnostics.found if d.severity is not Severity.NOTE]


# A file, what is found in it, and what it plans: of a function's tensor.
FORMS: dict[str, tuple[str, list[str], dict[tuple[str, str], str]]] = {
    "properties beside the name": (
        "- common_config:\n  dtype: (int64)->int32, (float64)->float32\n  layout: NHWC\n",
        [],
        {
            ("diopiAdd", "input"): "int64>int32 float64>float32 NHWC",
            ("diopiConvolution2d", "weight"): "float64>float32 NHWC",
        },
    ),
    "properties beside a function": (
        "- diopiConvolution2d:\n  dtype: (float16)->float32\n  layout: NCHW\n",
        [],
        {("diopiConvolution2d", "input"): "float16>float32 NCHW", ("diopiSgd", "w"): ""},
    ),
    "several entries in one item": (
        "- diopiAdd:\n    dtype: (int64)->int32\n  diopiSgd:\n    contiguous: true\n",
        [],
        {("diopiAdd", "other"): "int64>int32", ("diopiSgd", "w"): "contiguous"},
    ),
    "a common layout alone": (
        "- common_config:\n    layout: NCHW\n",
        [],
        {("diopiConvolution2d", "bias"): "NCHW", ("diopiAdd", "input"): "NCHW", ("diopiMaskedSelect", "out"): ""},
    ),
    "entries that are comments": (
        "- diopiAdd:\n    # dtype: (float64)->float32\n- diopiSgd:\n    contiguous: dw\n",
        ["empty-entry"],
        {("diopiAdd", "input"): "", ("diopiSgd", "dw"): "contiguous", ("diopiSgd", "w"): ""},
    ),
    "contiguous taken back": (
        "- common_config:\n    contiguous: True\n- diopiSgd:\n    contiguous: False\n",
        [],
        {("diopiSgd", "w"): "", ("diopiAdd", "input"): "contiguous"},
    ),
    "contiguous arguments": (
        "- diopiMaskedSelect:\n    contiguous: input, out, mask\n",
        ["rule-never-applies"],  # the function allocates out
        {("diopiMaskedSelect", "mask"): "contiguous", ("diopiMaskedSelect", "out"): ""},
    ),
    "both orders, one for an argument": (
        "- diopiConvolution2d:\n    layout: NCHW, NHWC, input(NHWC)\n",
        [],
        {("diopiConvolution2d", "input"): "NHWC", ("diopiConvolution2d", "weight"): "NCHW NHWC"},
    ),
    "orders of ranks that the op's schema does not name": (
        "- common_config:\n    layout: NLC, NHWC, NDHWC\n",
        [],
        {("diopiConvolution2d", "input"): "NLC NHWC NDHWC"},
    ),
    "a layout of an op whose schema has none": (
        "- diopiAdd:\n    layout: NCHW\n",
        [],
        {("diopiAdd", "input"): "NCHW"},
    ),
    "ND takes a common layout back": (
        "- common_config:\n    layout: NCHW\n- diopiAdd:\n    layout: ND\n",
        [],
        {("diopiAdd", "input"): "", ("diopiAddInp", "input"): "NCHW"},
    ),
    "ND beside contiguous": (
        "- diopiAdd:\n    layout: ND, NCHW\n",
        ["rule-never-applies"],
        {("diopiAdd", "input"): "NCHW"},
    ),
    "a rank beside ND": (
        "- common_config:\n    layout: NHWC, ND\n",
        [],
        {("diopiConvolution2d", "input"): "NHWC"},
    ),
    "arguments in a mapping": (
        "- diopiConvolution2d:\n    tensor_dtype:\n      bias: (float16, float64)->float32\n",
        [],
        {("diopiConvolution2d", "bias"): "float16>float32 float64>float32", ("diopiConvolution2d", "input"): ""},
    ),
    "dtypes that no schema has": (
        "- common_config:\n    dtype: (uint8, int16, uint16, uint32)->int64, (complex32)->complex64,\n",
        ["rule-never-applies"] * 3,
        {("diopiAdd", "input"): "uint8>int64 int16>int64", ("diopiConvolution2d", "input"): ""},
    ),
    "widening": ("- diopiSgd:\n    dtype: (float32)->float64\n", [], {("diopiSgd", "w"): "float32>float64"}),
    "a primitive that takes everything": (
        "- diopiCopyInp:\n    layout: ND\n",
        [],
        {("diopiCopyInp", "src"): ""},
    ),
    "functions of another contract": (
        "- ops: [diopiAdd, diopiOfTomorrow]\n  dtype: (float64)->float32\n"
        "- diopiOld:\n    tensor_dtype: {x: (int64)->int32}\n",
        ["absent-function", "absent-function"],
        {("diopiAdd", "input"): "float64>float32", ("diopiSgd", "w"): ""},
    ),
    "no casts for one function": (
        "- common_config:\n    dtype: (float64)->float32\n- diopiAdd:\n    dtype: none\n"
        "- diopiSgd:\n    tensor_dtype: {buf: none}\n",
        [],
        {("diopiAdd", "input"): "", ("diopiSgd", "w"): "float64>float32", ("diopiSgd", "buf"): ""},
    ),
    "composition allowed": ("- diopiSgd:\n    supportComposite: true\n", [], {("diopiSgd", "w"): ""}),
    "carriage returns": (
        "- diopiAdd:\r\n    dtype: (float64)->float32\r\n",
        [],
        {("diopiAdd", "input"): "float64>float32"},
    ),
    "a byte order mark": (
        "\ufeff- diopiAdd:\n    dtype: (float64)->float32\n",
        [],
        {("diopiAdd", "input"): "float64>float32"},
    ),
    "a tab behind a colon": (
        "- diopiAdd:\n    dtype:\t(float64)->float32\n",
        [],
        {("diopiAdd", "input"): "float64>float32"},
    ),
    "comments in another language": (
        "# \uff08\u6ce8\u91ca\uff09\uff1a\uff0c\n- diopiAdd:  # \uff0c\n    dtype: (float64)->float32\n",
        [],
        {("diopiAdd", "input"): "float64>float32"},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_form(planned: Planned, form: str) -> None:
    text, found, plans = FORMS[form]
    program, diagnostics = planned(text)
    assert codes(diagnostics) == found and not diagnostics.failed
    assert {key: told(program, *key) for key in plans} == plans


def test_places_are_those_of_the_file(contract: Program, tmp_path: Path) -> None:
    text = "\ufeff- common_config:\r\n    dtype: (int64)->int32,\r\n           (flot)->int8\r\n"
    _, diagnostics = with_vendor(contract, text, tmp_path)
    assert [(d.code, d.span.line, d.span.column) for d in diagnostics.found] == [("unknown-dtype", 3, 13)]

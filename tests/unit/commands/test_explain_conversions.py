"""What is said of each tensor's conversions: every way in which a rule can act, come to nothing or be overridden."""

from pathlib import Path

import pytest

from diopigen.commands.explain_conversions import conversion_lines
from diopigen.model.program import Program
from tests.unit.vendor.small_project import small_contract, with_vendor


@pytest.fixture(scope="module")
def contract() -> Program:
    return small_contract()


def explained(contract: Program, folder: Path, config: str, symbol: str) -> list[str]:
    program, _ = with_vendor(contract, config, folder)
    function = program.function(symbol)
    assert function is not None
    op = program.op(function.op)
    plan = next(p for p in program.plans if p.symbol == symbol)
    assert op is not None
    return [" ".join(line.split()) for line in conversion_lines(program, function, plan)]


AT = "convert_config.yaml"
SAID = {
    ("diopiAdd", ""): ["nothing is converted: no rule speaks of its tensors"],
    ("diopiCastDtype", "- common_config: {contiguous: true}"): [
        "nothing is converted: conversions are made of it, so it takes every tensor as it is"
    ],
    ("diopiMaskedSelect", "- common_config: {dtype: (float64)->float32, layout: NHWC, contiguous: true}"): [
        "before the call:",
        f"input in float64 -> float32 {AT}:1:27",
        f"NHWC if it has 4 dimensions {AT}:1:54",
        f"else any order {AT}:1:54",
        f"contiguous where no order is asked for {AT}:1:60",
        f"mask in any dtype: it is never float64 {AT}:1:27",
        f"NHWC if it has 4 dimensions {AT}:1:54",
        f"else any order {AT}:1:54",
        f"contiguous where no order is asked for {AT}:1:60",
        f"out new float64 -> float32 {AT}:1:27",
        f"any order: the function allocates it {AT}:1:54",
        f"any strides: the function allocates it {AT}:1:60",
        "after a success:",
        "out new made anew if the caller expects the other dtype: float32 -> float64",
    ],
    (
        "diopiSgd",
        "- common_config: {contiguous: true, dtype: (float64)->float32}\n"
        "- diopiSgd: {contiguous: false, tensor_dtype: {w: none, dw: (float16)->float32}}",
    ): [
        "before the call:",
        f"w inout any dtype {AT}:2:48",
        f"instead of (float64)->float32 {AT}:1:45",
        f"any strides {AT}:2:14",
        f"instead of contiguous {AT}:1:19",
        f"dw in float16 -> float32 {AT}:2:62",
        f"instead of (float64)->float32 {AT}:1:45",
        f"any strides {AT}:2:14",
        f"instead of contiguous {AT}:1:19",
        f"buf inout float64 -> float32 {AT}:1:45",
        f"any strides {AT}:2:14",
        f"instead of contiguous {AT}:1:19",
        "after a success:",
        "buf inout written back if it was converted",
    ],
    (
        "diopiConvolution2d",
        "- common_config: {layout: 'NHWC, NCHW'}\n"
        "- diopiConvolution2d: {layout: 'weight(ND), bias(NDHWC), input(NCHW, NHWC)', contiguous: weight}",
    ): [
        "before the call:",
        f"out out NHWC if it has 4 dimensions, contiguous as it is {AT}:1:28",
        f"else contiguous {AT}:1:28",
        f"input in contiguous if it has 4 dimensions, NHWC as it is {AT}:2:58",
        f"else contiguous {AT}:2:58",
        f"instead of NHWC, NCHW {AT}:1:28",
        f"weight in any order {AT}:2:33",
        f"instead of NHWC, NCHW {AT}:1:28",
        f"contiguous where no order is asked for {AT}:2:90",
        f"bias in NDHWC if it has 5 dimensions {AT}:2:45",
        f"else any order {AT}:2:45",
        f"instead of NHWC, NCHW {AT}:1:28",
        "after a success:",
        "out out written back if it was converted",
    ],
    ("diopiArgmax", "- common_config: {layout: 'NLC, NDHWC, NHWC, NCDHW'}\n- diopiArgmax: {layout: NCL}"): [
        "before the call:",
        f"out out contiguous {AT}:2:25",
        f"instead of NLC, NDHWC, NHWC, NCDHW {AT}:1:28",
        f"input in contiguous {AT}:2:25",
        f"instead of NLC, NDHWC, NHWC, NCDHW {AT}:1:28",
        "after a success:",
        "out out written back if it was converted",
    ],
    ("diopiArgmax", "- diopiArgmax: {layout: 'NLC, NDHWC, NHWC, out(NDHWC, NCL, NLC, NCHW)'}"): [
        "before the call:",
        f"out out contiguous if it has 3 dimensions, NLC as it is {AT}:1:44",
        f"NDHWC if it has 5 dimensions, contiguous as it is {AT}:1:44",
        f"else contiguous {AT}:1:44",
        f"instead of NLC, NDHWC, NHWC {AT}:1:26",
        f"input in NLC if it has 3 dimensions {AT}:1:26",
        f"NHWC if it has 4 dimensions {AT}:1:26",
        f"NDHWC if it has 5 dimensions {AT}:1:26",
        f"else any order {AT}:1:26",
        "after a success:",
        "out out written back if it was converted",
    ],
    ("diopiArgmax", "- diopiArgmax: {tensor_dtype: {out: (int64)->int32}}"): [
        "before the call:",
        f"out out int64 -> int32 {AT}:1:38",
        "input in as it is: no rule speaks of it",
        "after a success:",
        "out out written back if it was converted",
    ],
}


@pytest.mark.parametrize(("symbol", "config"), SAID)
def test_said(contract: Program, tmp_path: Path, symbol: str, config: str) -> None:
    assert explained(contract, tmp_path, config + "\n", symbol) == SAID[symbol, config]


def test_columns_are_aligned(contract: Program, tmp_path: Path) -> None:
    program, _ = with_vendor(contract, "- diopiSgd: {dtype: '(float64)->float32, (float16)->float32'}\n", tmp_path)
    function, plan = program.function("diopiSgd"), next(p for p in program.plans if p.symbol == "diopiSgd")
    assert function is not None
    lines = list(conversion_lines(program, function, plan))
    assert lines[1:4] == [
        "    w    inout  float64 -> float32  convert_config.yaml:1:23",
        "                float16 -> float32  convert_config.yaml:1:43",
        "    dw   in     float64 -> float32  convert_config.yaml:1:23",
    ]
    assert lines[-1] == "    buf  inout  written back if it was converted"

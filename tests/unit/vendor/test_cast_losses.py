"""Casts that do not keep the values of a tensor: the exact text of every finding, and what is left alone."""

from pathlib import Path

import pytest

from diopigen.diagnostics import render_human
from diopigen.model.program import Program
from tests.unit.vendor.small_project import small_contract, with_vendor

OPS = Path(__file__).parent / "loss_ops"


@pytest.fixture(scope="module")
def program() -> Program:
    return small_contract(OPS)


def findings(program: Program, config: str, folder: Path) -> list[str]:
    """The first line and the caret line of each finding but the missing primitives."""
    _, diagnostics = with_vendor(program, config, folder)
    lines = list(render_human(diagnostics, folder))
    heads = [at for at, line in enumerate(lines) if line.startswith("convert_config.yaml") and "primitive]" not in line]
    return [f"{lines[at].split(': ', 1)[1]} | {lines[at + 2].split('|')[1].strip(' ^')}".rstrip(" |") for at in heads]


INDEX = "does not keep the positions or counts of"
CAST_INDEX = "cast to int32 or int64; use 'tensor_dtype' for single arguments"
WIDER = "cast to a wider dtype if large values occur"

LOSSES = {
    "- diopiGather: {tensor_dtype: {index: (int64)->float32}}": [
        f"error[index-cast]: 'float32' {INDEX} 'index' of 'diopiGather' | {CAST_INDEX}"
    ],
    "- diopiGather: {tensor_dtype: {index: (int64)->int16}}": [
        f"error[index-cast]: 'int16' {INDEX} 'index' of 'diopiGather' | {CAST_INDEX}"
    ],
    "- diopiGather: {tensor_dtype: {index: (int64)->uint32}}": [
        f"error[index-cast]: 'uint32' {INDEX} 'index' of 'diopiGather' | {CAST_INDEX}"
    ],
    "- diopiGather: {tensor_dtype: {index: (int64)->int32}}": [
        "note[narrowing-cast]: 'int32' holds fewer values than 'int64'"
    ],
    "- diopiLookup: {dtype: (int16)->uint8}": [
        f"error[index-cast]: 'uint8' {INDEX} 'rows' of 'diopiLookup' | {CAST_INDEX}"
    ],
    "- common_config: {dtype: (int64)->float32}": [
        f"error[index-cast]: 'float32' {INDEX} 'index' of 'diopiGather' and of 1 other tensor | {CAST_INDEX}",
        f"warning[inexact-cast]: 'float32' does not hold every 'int64' exactly | {WIDER}",
    ],
    "- diopiEq: {dtype: (int32)->float16}": [
        f"warning[inexact-cast]: 'float16' does not hold every 'int32' exactly | {WIDER}"
    ],
    "- diopiEq: {dtype: (int16)->bfloat16}": [
        f"warning[inexact-cast]: 'bfloat16' does not hold every 'int16' exactly | {WIDER}"
    ],
    "- diopiEq: {dtype: (int64)->complex128}": [
        f"warning[inexact-cast]: 'complex128' does not hold every 'int64' exactly | {WIDER}"
    ],
    "- diopiEq: {dtype: '(int32)->float64, (int8)->float16, (bool)->bfloat16, (uint8)->int16'}": [],
    "- diopiEq: {dtype: (float64)->float16}": ["note[narrowing-cast]: 'float16' holds fewer values than 'float64'"],
    "- diopiEq: {dtype: (float16)->bfloat16}": ["note[narrowing-cast]: 'bfloat16' holds fewer values than 'float16'"],
    "- diopiEq: {dtype: (bfloat16)->float16}": ["note[narrowing-cast]: 'float16' holds fewer values than 'bfloat16'"],
    "- diopiEq: {dtype: (int8)->uint8}": ["note[narrowing-cast]: 'uint8' holds fewer values than 'int8'"],
    "- diopiEq: {dtype: '(float16, bfloat16)->float32, (int8, int16)->int64'}": [],
    "- diopiReal: {dtype: (complex128)->complex64}": [
        "note[narrowing-cast]: 'complex64' holds fewer values than 'complex128'"
    ],
    "- diopiReal: {dtype: (complex64)->float32}": [
        "error[lossy-cast]: 'complex64' as 'float32' loses the imaginary parts of 'input' of 'diopiReal'"
        " | cast to a complex dtype"
    ],
    "- diopiEq: {dtype: (float32)->int32}": [
        "error[lossy-cast]: 'float32' as 'int32' loses the fractions of 'input' of 'diopiEq' and of 1 other tensor"
        " | cast to a float dtype",
    ],
    "- diopiEq: {tensor_dtype: {other: (int32)->bool}}": [
        "error[lossy-cast]: 'int32' as 'bool' loses everything but being zero of 'other' of 'diopiEq'"
        " | cast to an integer dtype"
    ],
    "- diopiAny: {dtype: '(float16, float32, int32)->bool'}": [],
    "- diopiLogicalNot: {dtype: '(float16, float32, int32)->bool'}": [],
    "- diopiAny: {dtype: (float32)->int32}": [
        "error[lossy-cast]: 'float32' as 'int32' loses the fractions of 'input' of 'diopiAny'"
        " | cast to a float dtype"
    ],
}


@pytest.mark.parametrize("config", LOSSES)
def test_loss(program: Program, tmp_path: Path, config: str) -> None:
    assert findings(program, config + "\n", tmp_path) == LOSSES[config]

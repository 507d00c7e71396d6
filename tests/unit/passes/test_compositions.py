"""What functions of the contract are composed of, and how C++ spells it."""

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.model.composition import Composition, Source
from diopigen.model.program import Program
from diopigen.passes.composition.derive import compositions
from diopigen.passes.composition.match_call import contract_of
from diopigen.project import Project
from diopigen.targets.composites.view import composites_view

ROOT = Path(__file__).resolve().parents[3]


@cache
def program() -> Program:
    diagnostics = Diagnostics()
    found = pipeline.run(Project(root=ROOT), diagnostics)
    assert found is not None and not diagnostics.failed
    return found


def ways(symbol: str) -> dict[Source, Composition]:
    function = program().function(symbol)
    assert function is not None
    contract = contract_of(program().functions)
    return {way.source: way for way in compositions(function, contract, program().dtypes)}


def body(symbol: str, source: Source) -> str:
    """The lines of the function, without their first indentation and as long as they are."""
    function = program().function(symbol)
    assert function is not None
    op = program().op(function.op)
    assert op is not None
    view = composites_view(replace(program(), compositions=(ways(symbol)[source],)), op.topic)
    lines = "\n".join(line[4:] for line in view.functions[0].lines)
    return re.sub(r",\n +", ", ", lines)


def test_each_way_leads_to_many_functions() -> None:
    contract = contract_of(program().functions)
    best = [next(compositions(f, contract, program().dtypes), None) for f in program().functions]
    counts = Counter(way.source for way in best if way is not None)
    assert counts[Source.WRITTEN] >= 76 and counts[Source.KERNEL] >= 58
    assert counts[Source.INPLACE] >= 46 and counts[Source.SCALAR] >= 23 and counts[Source.OUT] >= 11


def test_the_written_way_is_the_first() -> None:
    assert next(iter(ways("diopiSub"))) is Source.WRITTEN


def test_no_function_is_part_of_itself() -> None:
    contract = contract_of(program().functions)
    for function in program().functions:
        assert all(function.symbol not in way.parts for way in compositions(function, contract, program().dtypes))


def test_an_in_place_form_works_in_a_temporary() -> None:
    assert body("diopiAddInp", Source.INPLACE) == (
        "const diopiTensorHandle_t result = steps.temporary(promote(steps.dtype(input), steps.dtype(other)),"
        " steps.shape(input));\n"
        "steps.run([&] { return ::diopiAdd(ctx, result, input, other, alpha); });\n"
        "steps.run([&] { return ::diopiCopyInp(ctx, result, input); });"
    )


def test_a_form_with_an_output_changes_a_copy() -> None:
    assert body("diopiAdd", Source.OUT) == (
        "const diopiTensorHandle_t result = steps.temporary(steps.dtype(out), steps.shape(out));\n"
        "steps.run([&] { return ::diopiCopyInp(ctx, input, result); });\n"
        "steps.run([&] { return ::diopiAddInp(ctx, result, other, alpha); });\n"
        "steps.run([&] { return ::diopiCopyInp(ctx, result, out); });"
    )


def test_a_number_that_may_be_absent_is_asked_for() -> None:
    assert body("diopiClampScalar", Source.SCALAR) == (
        "if (min != nullptr) {\n"
        "    if (max != nullptr) {\n"
        "        const diopiTensorHandle_t number1 = steps.filled(Number(min), input);\n"
        "        const diopiTensorHandle_t number2 = steps.filled(Number(max), input);\n"
        "        steps.run([&] { return ::diopiClamp(ctx, out, input, number1, number2); });\n"
        "    } else {\n"
        "        const diopiTensorHandle_t number3 = steps.filled(Number(min), input);\n"
        "        steps.run([&] { return ::diopiClamp(ctx, out, input, number3, nullptr); });\n"
        "    }\n"
        "} else {\n"
        "    if (max != nullptr) {\n"
        "        const diopiTensorHandle_t number4 = steps.filled(Number(max), input);\n"
        "        steps.run([&] { return ::diopiClamp(ctx, out, input, nullptr, number4); });\n"
        "    } else {\n"
        "        steps.run([&] { return ::diopiClamp(ctx, out, input, nullptr, nullptr); });\n"
        "    }\n"
        "}"
    )


def test_a_kernel_computes_halves_in_float32() -> None:
    wide = "steps.temporary(promote(steps.dtype(out), diopi_dtype_float32), steps.shape(input));\n"
    assert body("diopiSilu", Source.KERNEL) == (
        f"const diopiTensorHandle_t input_wide = {wide}"
        "steps.run([&] { return ::diopiCastDtype(ctx, input_wide, input); });\n"
        f"const diopiTensorHandle_t mul1 = {wide}"
        f"const diopiTensorHandle_t sigmoid2 = {wide}"
        "steps.run([&] { return ::diopiSigmoid(ctx, sigmoid2, input_wide); });\n"
        "steps.run([&] { return ::diopiMul(ctx, mul1, input_wide, sigmoid2); });\n"
        "steps.run([&] { return ::diopiCastDtype(ctx, out, mul1); });"
    )


def test_lists_are_put_together() -> None:
    text = body("diopiMaxPool1d", Source.WRITTEN)
    assert "if (steps.length(stride) == Number(0)) {" in text
    assert "::diopiStack(ctx, plane, List<diopiConstTensorHandle_t, 1>{{input}}.get(), 1, -2); });" in text
    assert "steps.joined({1, kernel_size}).view()" in text and "steps.joined({0, padding}).view()" in text


def test_a_mutable_scalar_of_the_contract_is_only_read() -> None:
    assert "const_cast<diopiScalar_t*>(p)" in body("diopiNorm", Source.WRITTEN)


def test_enumerators_are_compared() -> None:
    assert "if (reduction == ReductionMean) {" in body("diopiMSELoss", Source.WRITTEN)

"""What is decided for a vendor: whose code, which conversions, by which rule."""

from dataclasses import replace
from pathlib import Path

import pytest

from diopigen.diagnostics import Diagnostics, Severity, render_human
from diopigen.model.expr import Name
from diopigen.model.program import Program
from diopigen.model.vendor import Conversion, Implementation, Origin
from diopigen.passes.vendor.plan import plan_vendor
from tests.unit.vendor.conftest import Planned
from tests.unit.vendor.small_project import NOWHERE


def conversion(program: Program, symbol: str, param: str) -> Conversion | None:
    plan = next(p for p in program.plans if p.symbol == symbol)
    return plan.conversion(param)


def casts(program: Program, symbol: str, param: str) -> list[str]:
    found = conversion(program, symbol, param)
    return [] if found is None else [f"{c.source.word} {c.target.word}" for c in found.casts]


def test_common_casts_reach_what_can_have_the_dtype(planned: Planned) -> None:
    program, diagnostics = planned("- common_config: {dtype: '(float64)->float32, (int64)->int32'}")
    assert [d.code for d in diagnostics.found] == ["narrowing-cast", "narrowing-cast"]
    assert casts(program, "diopiAdd", "input") == ["float64 float32", "int64 int32"]
    assert casts(program, "diopiConvolution2d", "input") == ["float64 float32"]
    assert casts(program, "diopiArgmax", "out") == ["int64 int32"]
    assert conversion(program, "diopiMaskedSelect", "mask") is None


def test_the_most_specific_rule_decides_alone(planned: Planned) -> None:
    program, _ = planned("""
- common_config: {dtype: '(float64)->float32, (int64)->int32'}
- diopiAdd:
    dtype: (int8)->int32
    tensor_dtype: {other: (bool)->int32}
""")
    assert casts(program, "diopiAdd", "input") == ["int8 int32"]
    assert casts(program, "diopiAdd", "other") == ["bool int32"]
    assert casts(program, "diopiAddInp", "input") == ["float64 float32", "int64 int32"]


def test_conversions_keep_the_place_of_their_rule(planned: Planned) -> None:
    program, _ = planned("""- common_config: {dtype: (float64)->float32}
- diopiConvolution2d: {layout: 'NHWC, weight(NCHW)'}
""")
    found = conversion(program, "diopiConvolution2d", "weight")
    assert found is not None and found.layouts == ("NCHW",)
    assert found.layout_span is not None and (found.layout_span.line, found.layout_span.column) == (2, 39)
    assert found.casts[0].span.line == 1


def test_common_layouts_reach_every_tensor_that_is_given(planned: Planned) -> None:
    program, diagnostics = planned("- common_config: {layout: NHWC}")
    assert diagnostics.found == []
    for symbol, param in (("diopiConvolution2d", "input"), ("diopiAddInp", "input"), ("diopiCat", "tensors")):
        found = conversion(program, symbol, param)
        assert found is not None and found.layouts == ("NHWC",)
    assert conversion(program, "diopiMaskedSelect", "out") is None


def test_nd_takes_a_common_layout_back(planned: Planned) -> None:
    program, _ = planned("- common_config: {layout: NHWC}\n- diopiConvolution2d: {layout: ND}")
    assert conversion(program, "diopiConvolution2d", "input") is None


def test_primitives_have_no_conversions(planned: Planned) -> None:
    program, _ = planned("- common_config: {dtype: (float64)->float32}")
    plan = next(p for p in program.plans if p.symbol == "diopiCastDtype")
    assert plan.conversions == ()


FINDINGS = [
    ("- diopiMaskedSelect: {layout: out(NHWC)}", "rule-never-applies", "the function allocates 'out'"),
    ("- diopiMaskedSelect: {contiguous: out}", "rule-never-applies", "the function allocates 'out'"),
    ("- diopiCat: {layout: 'NHWC, tensors(ND), out(NCHW)'}", "rule-never-applies", "more specific rules override it"),
    ("- diopiCat: {layout: 'NHWC, ND, NCL'}", "rule-never-applies", "'ND' has no effect next to 'NCL'"),
    ("- common_config: {layout: NCDHW}\n- diopiCat: {layout: NCL}", "redundant-rule", "this rule changes nothing"),
    ("- diopiConvolution2d: {dtype: (int64)->int32}", "rule-never-applies", "can be 'int64'"),
    ("- diopiArgmax: {tensor_dtype: {out: (int8)->int32}}", "rule-never-applies", "'out' can never be 'int8'"),
    ("- common_config: {dtype: (complex64)->complex128}", "rule-never-applies", "any function can be 'complex64'"),
    ("- diopiCastDtype: {dtype: (float64)->float32}", "primitive-converted", "'diopiCastDtype'"),
    ("- diopiCopyInp: {contiguous: src}", "primitive-converted", "'diopiCopyInp'"),
    (
        "- common_config: {dtype: (float64)->float32}\n- ops: [diopiSgd, diopiAdd, diopiAddInp]\n  dtype: none"
        "\n- ops: [diopiConvolution2d, diopiCat, diopiSplitWithSizes, diopiMaskedSelect, diopiArgmax, diopiAddScalar,"
        " diopiAddInpScalar]\n  dtype: none",
        "rule-never-applies",
        "this rule has no effect: more specific rules override it everywhere",
    ),
    (
        "- diopiMaskedSelect: {dtype: (int8)->int32, tensor_dtype: {out: (int16)->int32, input: none}}",
        "rule-never-applies",
        "more specific rules override it",
    ),
    (
        "- diopiAdd: {dtype: (int8)->int32, tensor_dtype: {other: (int8)->int32}}",
        "redundant-rule",
        "this rule changes nothing",
    ),
    (
        "- common_config: {contiguous: true}\n- diopiSgd: {contiguous: true}",
        "redundant-rule",
        "this rule changes nothing",
    ),
    ("- diopiAdd: {layout: ND, contiguous: false}", "redundant-rule", "this rule changes nothing"),
    ("- diopiAdd: {dtype: none}", "redundant-rule", "this rule changes nothing"),
]


@pytest.mark.parametrize(("config", "code", "words"), FINDINGS)
def test_finding(planned: Planned, config: str, code: str, words: str) -> None:
    _, diagnostics = planned(config)
    assert list(dict.fromkeys(d.code for d in diagnostics.found)) == [code]
    assert all(words in d.message for d in diagnostics.found)


def test_findings_show_what_decides_instead(planned: Planned) -> None:
    _, diagnostics = planned("- diopiCat: {layout: 'NHWC, tensors(NCHW), out(NCHW)'}")
    assert [(text, str(at)) for d in diagnostics.found for text, at in d.related] == [
        ("one of them is here", "convert_config.yaml:1:44")
    ]
    _, diagnostics = planned("- common_config: {contiguous: true}\n- diopiSgd: {contiguous: true}")
    assert [(text, str(at)) for d in diagnostics.found for text, at in d.related] == [
        ("the more general rule is here", "convert_config.yaml:1:19")
    ]


def test_a_rule_for_what_nobody_implements(planned: Planned) -> None:
    program, diagnostics = planned("- diopiAdd: {dtype: (float64)->float32}", absent=("diopiAdd",))
    assert [d.code for d in diagnostics.found] == ["rule-never-applies"]
    assert all(plan.symbol != "diopiAdd" for plan in program.plans)


@pytest.mark.parametrize(
    ("config", "absent"),
    [
        ("- diopiAdd: {dtype: (float64)->float32}", "diopiCastDtype"),
        ("- diopiConvolution2d: {layout: NHWC}", "diopiCopyInp"),
        ("- diopiSgd: {contiguous: true}", "diopiCopyInp"),
    ],
)
def test_a_conversion_without_its_primitive(planned: Planned, config: str, absent: str) -> None:
    _, diagnostics = planned(config, absent=(absent,))
    (finding,) = (d for d in diagnostics.found if d.severity is not Severity.NOTE)
    assert finding.code == "missing-primitive" and absent in finding.message and finding.span.line == 1


def test_the_vendor_s_own_code_comes_first(planned: Planned) -> None:
    program, _ = planned("")
    assert program.vendor is not None
    ours = next(i for i in program.vendor.implementations if i.symbol == "diopiAdd")
    portable = replace(ours, origin=Origin.PORTABLE, name="portable", namespace="impl::portable")
    vendor = replace(program.vendor, implementations=(*program.vendor.implementations, portable))
    chosen = plan_vendor(replace(program, vendor=vendor), Diagnostics())
    assert _implementation(chosen, "diopiAdd").origin is Origin.VENDOR
    vendor = replace(program.vendor, implementations=(portable,))
    chosen = plan_vendor(replace(program, vendor=vendor), Diagnostics())
    assert _implementation(chosen, "diopiAdd").namespace == "impl::portable"


@pytest.mark.parametrize(("base", "served"), [(("portable",), True), ((), False)])
def test_a_kernel_line_serves_vendors_with_the_base(planned: Planned, base: tuple[str, ...], served: bool) -> None:
    program, _ = planned("")
    assert program.vendor is not None
    functions = tuple(replace(f, kernel=Name(name="input")) if f.symbol == "diopiAdd" else f for f in program.functions)
    vendor = replace(program.vendor, implementations=(), base=base, span=NOWHERE)
    chosen = plan_vendor(replace(program, functions=functions, vendor=vendor), Diagnostics())
    assert [p.implementation.origin for p in chosen.plans] == ([Origin.GENERATED] if served else [])


def _implementation(program: Program, symbol: str) -> Implementation:
    return next(p for p in program.plans if p.symbol == symbol).implementation


RENDERED = {
    "- diopiArgmax: {dtype: (float64)->float32, layout: 'NCHW, ND'}": """\
convert_config.yaml:1:25: note[narrowing-cast]: 'float32' holds fewer values than 'float64'
     1 | - diopiArgmax: {dtype: (float64)->float32, layout: 'NCHW, ND'}
       |                         ^^^^^^^
convert_config.yaml:1:59: warning[rule-never-applies]: \
'ND' has no effect next to 'NCHW', which applies to tensors of any rank
     1 | - diopiArgmax: {dtype: (float64)->float32, layout: 'NCHW, ND'}
       |                                                           ^^ remove one of them""",
    "- diopiMaskedSelect: {layout: 'input(NHWC), out(NHWC)'}": """\
convert_config.yaml:1:45: warning[rule-never-applies]: this rule has no effect: the function allocates 'out'
     1 | - diopiMaskedSelect: {layout: 'input(NHWC), out(NHWC)'}
       |                                             ^^^ remove it""",
    "- ops: [diopiSgd, diopiCat]\n  dtype: (bool)->uint8\n- common_config: {contiguous: true}\n"
    "- diopiAdd: {contiguous: true}": """\
convert_config.yaml:4:14: note[redundant-rule]: this rule changes nothing
     4 | - diopiAdd: {contiguous: true}
       |              ^^^^^^^^^^ remove it
convert_config.yaml:3:19: note: the more general rule is here
     3 | - common_config: {contiguous: true}
       |                   ^^^^^^^^^^""",
    "- ops: [diopiSgd, diopiConvolution2d]\n  dtype: (bool)->uint8": """\
convert_config.yaml:2:11: warning[rule-never-applies]: this rule has no effect: \
no tensor of 'diopiSgd' or the others can be 'bool'
     2 |   dtype: (bool)->uint8
       |           ^^^^ remove it""",
    "- diopiCopyInp: {dtype: (bool)->uint8}": """\
convert_config.yaml:1:3: error[primitive-converted]: 'diopiCopyInp' performs conversions, so it \
takes every tensor unchanged
     1 | - diopiCopyInp: {dtype: (bool)->uint8}
       |   ^^^^^^^^^^^^ remove the entry""",
}


@pytest.mark.parametrize("config", RENDERED)
def test_rendered(planned: Planned, tmp_path: Path, config: str) -> None:
    _, diagnostics = planned(config + "\n")
    assert "\n".join(render_human(diagnostics, tmp_path)) == RENDERED[config]


def test_rendered_where_a_function_is_composed(planned: Planned, tmp_path: Path) -> None:
    config = "- diopiAddInp: {dtype: (bool)->uint8, supportComposite: true}\n"
    program, diagnostics = planned(config, absent=("diopiAddInp",))
    assert list(render_human(diagnostics, tmp_path)) == [
        "convert_config.yaml:1:3: warning[rule-never-applies]: "
        "'diopiAddInp' is composed of other functions, which do their own conversions, so this has no effect",
        f"     1 | {config.rstrip()}",
        "       |   ^^^^^^^^^^^ write entries for the functions that it is composed of",
    ]
    assert conversion(program, "diopiAddInp", "input") is None


def test_rendered_where_nothing_implements_a_function(planned: Planned, tmp_path: Path) -> None:
    _, diagnostics = planned("- diopiAdd: {dtype: (bool)->uint8}\n", absent=("diopiAdd",))
    assert list(render_human(diagnostics, tmp_path)) == [
        "convert_config.yaml:1:3: warning[rule-never-applies]: "
        "'diopiAdd' is not implemented, so its entry has no effect",
        "     1 | - diopiAdd: {dtype: (bool)->uint8}",
        "       |   ^^^^^^^^ implement it, or remove the entry",
    ]

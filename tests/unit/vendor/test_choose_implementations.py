"""Several implementations of one function, and the one that `implementation` of convert_config.yaml names."""

from pathlib import Path

import pytest

from diopigen.diagnostics import render_human
from tests.unit.vendor.conftest import Folders
from tests.unit.vendor.test_base_vendors import defined, served, vendor

CHIP = vendor("chip", "diopiAdd", "diopiAddInp") | {
    "chip/functions/fast.cpp": defined("impl::chip::fast", "diopiAdd", "diopiArgmax"),
    "chip/functions/slow.cpp": defined("impl::chip::old::slow", "diopiAdd"),
}


def test_a_namespace_inside_serves_only_where_it_is_named(folders: Folders) -> None:
    assert served(folders("chip", CHIP)[0]) == {"diopiAdd": "chip", "diopiAddInp": "chip"}
    config = "- diopiAdd: {implementation: fast}\n- diopiArgmax: {implementation: fast}\n"
    program, diagnostics = folders("chip", CHIP | {"chip/convert_config.yaml": config})
    assert diagnostics.found == []
    assert served(program) == {"diopiAdd": "fast", "diopiAddInp": "chip", "diopiArgmax": "fast"}
    assert {plan.implementation.namespace for plan in program.plans} == {"impl::chip", "impl::chip::fast"}


@pytest.mark.parametrize(
    ("name", "namespace"),
    [("chip", "impl::chip"), ("fast", "impl::chip::fast"), ("old::slow", "impl::chip::old::slow"), ("a", "impl::a"),
     ("a::quick", "impl::a::quick")],
)  # fmt: skip
def test_each_name(folders: Folders, name: str, namespace: str) -> None:
    files = CHIP | vendor("a", "diopiAdd") | {"a/functions/quick.cpp": defined("impl::a::quick", "diopiAdd")}
    files |= {"chip/vendor.yaml": "doc: A chip.\nbase: a\n"}
    files |= {"chip/convert_config.yaml": f"- diopiAdd: {{implementation: '{name}'}}\n"}
    program, diagnostics = folders("chip", files)
    assert diagnostics.found == []
    plan = next(p for p in program.plans if p.symbol == "diopiAdd")
    assert (plan.implementation.name, plan.implementation.namespace) == (name, namespace)


def test_one_name_for_several_functions(folders: Folders) -> None:
    config = "- ops: [diopiAdd, diopiArgmax]\n  implementation: fast\n"
    program, diagnostics = folders("chip", CHIP | {"chip/convert_config.yaml": config})
    assert diagnostics.found == []
    assert served(program)["diopiAdd"] == served(program)["diopiArgmax"] == "fast"


WRONG = [
    (
        "- diopiAdd: {implementation: fats}",
        "1:30: error[unknown-implementation]: there is no implementation 'fats'",
        "did you mean 'fast'? 'diopiAdd' is implemented by chip, fast, old::slow",
    ),
    (
        "- diopiAdd: {implementation: vulkan}",
        "1:30: error[unknown-implementation]: there is no implementation 'vulkan'",
        "'diopiAdd' is implemented by chip, fast, old::slow",
    ),
    (
        "- diopiAddInp: {implementation: fast}",
        "1:33: error[missing-implementation]: 'fast' does not implement 'diopiAddInp'",
        "'diopiAddInp' is implemented by chip",
    ),
    (
        "- diopiCat: {implementation: portable}",
        "1:30: error[missing-implementation]: 'portable' does not implement 'diopiCat'",
        "nothing implements 'diopiCat'",
    ),
    (
        "- common_config: {implementation: fast}",
        "1:35: error[common-implementation]: 'common_config' cannot choose an implementation",
        "name the functions with 'ops', or reorder the bases in vendor.yaml",
    ),
]


@pytest.mark.parametrize(("config", "message", "hint"), WRONG)
def test_what_is_wrong_with_a_choice(folders: Folders, config: str, message: str, hint: str) -> None:
    _, diagnostics = folders("chip", CHIP | {"chip/convert_config.yaml": config + "\n"})
    found = list(render_human(diagnostics, Path("/nowhere")))
    assert found[-2:] == [f"vendors/chip/convert_config.yaml:{message}", f"      {hint}"]


BROKEN = {
    "signature": defined("impl::chip::fast", "diopiAdd").replace("const diopiScalar_t*", "float"),
    "inline-definition": defined("impl::chip::fast", "diopiAdd").replace("diopiError_t d", "inline diopiError_t d"),
    "duplicate-definition": defined("impl::chip::fast", "diopiAdd"),
}


@pytest.mark.parametrize("code", BROKEN)
def test_mistakes_inside_count_where_they_are_named(folders: Folders, code: str) -> None:
    files = vendor("chip", "diopiAdd") | {"chip/functions/fast.cpp": BROKEN[code]}
    if code == "duplicate-definition":
        files["chip/functions/again.cpp"] = BROKEN[code]
    program, diagnostics = folders("chip", files)
    assert diagnostics.found == [] and served(program) == {"diopiAdd": "chip"}
    config = {"chip/convert_config.yaml": "- diopiAdd: {implementation: fast}\n"}
    _, diagnostics = folders("chip", files | config)
    assert code in [d.code for d in diagnostics.found]


def test_a_base_keeps_its_own_choice(folders: Folders) -> None:
    files = vendor("a", "diopiAdd", "diopiAddInp", config="- diopiAdd: {implementation: quick}\n")
    files |= {"a/functions/quick.cpp": defined("impl::a::quick", "diopiAdd")} | vendor("chip", base="a")
    assert served(folders("chip", files)[0]) == {"diopiAdd": "a::quick", "diopiAddInp": "a"}
    files |= {"chip/convert_config.yaml": "- diopiAdd: {implementation: a}\n"}
    assert served(folders("chip", files)[0])["diopiAdd"] == "a"
    files |= vendor("chip", "diopiAdd", base="a") | {"chip/convert_config.yaml": "[]\n"}
    assert served(folders("chip", files)[0])["diopiAdd"] == "chip"

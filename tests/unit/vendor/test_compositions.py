"""Which functions a vendor has by calls of others, and what it is told where parts are missing."""

from pathlib import Path

from diopigen.diagnostics import Diagnostics, render_human
from diopigen.model.program import Program
from diopigen.model.vendor import Origin
from tests.unit.vendor.conftest import Planned


def origins(program: Program) -> dict[str, Origin]:
    return {plan.symbol: plan.implementation.origin for plan in program.plans}


def texts(diagnostics: Diagnostics, folder: Path) -> str:
    return "\n".join(render_human(diagnostics, folder))


def test_without_a_word_nothing_is_composed(planned: Planned) -> None:
    program, diagnostics = planned("", absent=("diopiAddInp",))
    assert diagnostics.found == []
    assert "diopiAddInp" not in origins(program) and program.compositions == ()


def test_an_in_place_form_follows_from_the_form_with_an_output(planned: Planned) -> None:
    program, diagnostics = planned("- diopiAddInp: {supportComposite: true}", absent=("diopiAddInp",))
    assert diagnostics.found == []
    assert origins(program)["diopiAddInp"] is Origin.COMPOSITE
    assert [c.parts for c in program.compositions] == [("diopiAdd", "diopiCopyInp")]


def test_a_form_with_an_output_follows_from_the_in_place_form(planned: Planned) -> None:
    program, _ = planned("- common_config: {supportComposite: true}", absent=("diopiAdd",))
    assert [(c.symbol, c.parts) for c in program.compositions] == [("diopiAdd", ("diopiCopyInp", "diopiAddInp"))]


def test_forms_do_not_follow_from_each_other_in_a_circle(planned: Planned) -> None:
    program, diagnostics = planned("- common_config: {supportComposite: true}", absent=("diopiAdd", "diopiAddInp"))
    assert program.compositions == ()
    assert [(d.severity.value, d.code) for d in diagnostics.found] == [("note", "missing-part")]


def test_an_entry_excludes_what_the_common_entry_lets_in(planned: Planned) -> None:
    config = "- common_config: {supportComposite: true}\n- diopiAddInp: {supportComposite: false}\n"
    program, _ = planned(config, absent=("diopiAddInp",))
    assert "diopiAddInp" not in origins(program)


def test_what_somebody_implements_stays(planned: Planned) -> None:
    program, _ = planned("- common_config: {supportComposite: true}\n- diopiAddInp: {supportComposite: true}")
    assert origins(program)["diopiAddInp"] is Origin.VENDOR


def test_a_composition_may_be_preferred(planned: Planned) -> None:
    program, diagnostics = planned("- diopiAddInp: {implementation: composite}")
    assert not diagnostics.failed
    assert origins(program)["diopiAddInp"] is Origin.COMPOSITE


def test_the_parts_of_a_composition_convert_for_themselves(planned: Planned) -> None:
    config = "- common_config: {dtype: (float64)->float32, supportComposite: true}"
    program, _ = planned(config, absent=("diopiAddInp",))
    plans = {plan.symbol: plan for plan in program.plans}
    assert plans["diopiAddInp"].conversions == () and plans["diopiAdd"].conversions != ()


def test_a_missing_part_is_named(planned: Planned, tmp_path: Path) -> None:
    config = "- diopiAddInp: {supportComposite: true}"
    _, diagnostics = planned(config, absent=("diopiAddInp", "diopiAdd", "diopiCopyInp"))
    assert texts(diagnostics, tmp_path) == (
        "convert_config.yaml:1:3: error[missing-part]: 'diopiAddInp' cannot be composed: 'recorder' does not implement"
        " 'diopiAdd' or 'diopiCopyInp'\n"
        "     1 | - diopiAddInp: {supportComposite: true}\n"
        "       |   ^^^^^^^^^^^ implement what is missing, or allow composing it"
    )


def test_what_nothing_composes_is_named(planned: Planned, tmp_path: Path) -> None:
    _, diagnostics = planned("- diopiCat: {supportComposite: true}", absent=("diopiCat",))
    assert texts(diagnostics, tmp_path) == (
        "convert_config.yaml:1:3: error[no-composition]: 'diopiCat' has no composition\n"
        "     1 | - diopiCat: {supportComposite: true}\n"
        "       |   ^^^^^^^^ write 'compose:' in its schema, or implement it"
    )


def test_the_common_entry_notes_what_lacks_parts(planned: Planned, tmp_path: Path) -> None:
    config = "- common_config: {supportComposite: true}"
    _, diagnostics = planned(config, absent=("diopiAddInp", "diopiCopyInp"))
    assert texts(diagnostics, tmp_path) == (
        "convert_config.yaml:1:3: note[missing-part]: 'diopiAddInp' could be composed if no part were missing:"
        " it lacks 'diopiCopyInp'\n"
        "     1 | - common_config: {supportComposite: true}\n"
        "       |   ^^^^^^^^^^^^^"
    )

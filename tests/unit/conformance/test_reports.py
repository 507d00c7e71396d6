"""What is told of a run: counts by family, failures by cause, and the file that keeps it all."""

import io
import json
import re
from dataclasses import replace

import pytest
from rich.console import Console

from diopi_conformance.cases.plan import PlanError, read_plan
from diopi_conformance.cases.variants import Variant
from diopi_conformance.outcome import Verdict
from diopi_conformance.report import Report, read_report, show, summary, write_report
from diopi_conformance.report.groups import failures, families
from diopi_conformance.report.wording import repro_command
from diopigen.atomic import MALFORMED
from tests.unit.conformance.report_samples import AXES, OUTCOMES, REPORT, outcome


def shown(report: Report, limit: int = 40) -> str:
    stream = io.StringIO()
    show(report, Console(file=stream, width=200), limit)
    return stream.getvalue()


def test_families_are_counted() -> None:
    found = {
        t.name: (t.functions, t.cases, t.passed, t.bad, t.lacking, t.known, t.error, t.ulp) for t in families(REPORT)
    }
    assert found == {
        "activation": (1, 3, 0, 3, 0, 0, None, None),
        "arithmetic": (1, 2, 2, 0, 0, 0, 1e-3, 1.0),
        "convolution": (1, 2, 0, 0, 1, 1, None, None),
    }


def test_failures_of_one_cause_are_one_group() -> None:
    groups = failures(REPORT)
    assert [(g.first.id, len(g.outcomes), g.elements, g.words) for g in groups] == [
        ("relu/f32/0", 2, ("f32", "f16"), ("zero",)),
        ("relu/f64/0", 1, ("f64",), ()),
    ]


def test_messages_that_differ_in_numbers_only_are_one_cause() -> None:
    texts = ("out has shape (3, 4), expected (3, 5)", "out has shape (7, 1), expected (2, 5)", "out was not allocated")
    outcomes = tuple(outcome(f"a/f32/{i}", Verdict.FAIL, message=text) for i, text in enumerate(texts))
    groups = failures(Report(vendor="chip", planned=3, outcomes=outcomes))
    assert [[o.id for o in group.outcomes] for group in groups] == [["a/f32/0", "a/f32/1"], ["a/f32/2"]]


def test_the_terminal_shows_families_and_groups() -> None:
    lines = [" ".join(line.split()) for line in shown(REPORT).splitlines()]
    assert lines == [
        "family functions cases pass bad lacks known max error max ULP",
        "activation 1 3 0 3",
        "arithmetic 1 2 2 0 1.0e-03 1",
        "convolution 1 2 0 0 1 1",
        "all 3 7 2 3 1 1 1.0e-03 1",
        "fail diopirelu in 2 cases of f32, f16 (zero), the first relu/f32/0: out[3] is 1.0, expected 0.0, max error 1",
        "crash diopirelu relu/f64/0: killed by SIGSEGV",
        "2 of 8 passed (0 of them trivial), 2 fail, 1 not-implemented, 1 crash, 1 known to fail, 1 did not run; 1.5 s",
    ]


def test_sentences_are_not_broken_at_the_width_of_a_terminal() -> None:
    stream = io.StringIO()
    show(REPORT, Console(file=stream, width=40))
    assert summary(REPORT) in stream.getvalue()


def test_the_terminal_says_what_it_leaves_out() -> None:
    assert "... and 1 more in 1 groups; the JSON report has them all" in shown(REPORT, limit=1)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"outcomes": OUTCOMES[:2], "planned": 2}, 0),
        ({"outcomes": (*OUTCOMES[:2], OUTCOMES[6]), "planned": 3}, 0),  # as expected
        ({"outcomes": (*OUTCOMES[:2], outcome("a/f32/0", Verdict.LEAK)), "planned": 3}, 1),
        ({"outcomes": OUTCOMES[:2], "planned": 2, "leaks": ("4 bytes",)}, 1),
        ({"outcomes": OUTCOMES[6:], "planned": 1}, 1),  # nothing passes
    ],
)
def test_what_the_vendor_expects_does_not_fail_the_run(changed: dict, code: int) -> None:
    assert Report(**{"vendor": "chip", **changed}).exit_code == code


def test_a_report_survives_being_written(tmp_path) -> None:
    write_report(REPORT, tmp_path / "report.json")
    back = read_report(tmp_path / "report.json")
    assert {o.id: o for o in back.outcomes} == {o.id: o for o in OUTCOMES}
    assert back.axes == AXES
    assert summary(back) == summary(REPORT)


def test_a_report_keeps_how_its_cases_were_varied(tmp_path) -> None:
    varied = replace(REPORT, variant=Variant(seed=3, nhwc=True, four_bytes=True))
    write_report(varied, tmp_path / "report.json")
    back = read_report(tmp_path / "report.json")
    assert back.variant == varied.variant
    assert repro_command("a b/f32/0", back) == (
        "diopi-conformance repro 'a b/f32/0' --vendor chip --seed 3 --nhwc --four-bytes"
    )
    assert repro_command("a/f32/0", REPORT) == "diopi-conformance repro a/f32/0 --vendor chip"


def test_the_file_is_strict_json_with_the_words_of_each_case(tmp_path) -> None:
    write_report(REPORT, tmp_path / "report.json")

    def refused(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    document = json.loads((tmp_path / "report.json").read_text(), parse_constant=refused)
    entries = {entry["id"]: entry for entry in document["outcomes"]}
    assert (document["version"], document["known"], document["counts"]["fail"]) == (2, 1, 3)
    assert entries["conv/f32/1"]["ulp"] == {"float": "inf"}
    words = ("family", "elements", "layout", "view", "fill", "change", "models")
    assert [entries["conv/f32/0"][word] for word in words] == [
        "convolution", "f32", "", "contiguous", "", "", ["resnet18", "unet"],
    ]  # fmt: skip


@pytest.mark.parametrize("changed", [{"error": "x"}, {"index": 3}, {"verdict": "good"}, {"id": None}, {"ulp": []}])
def test_an_outcome_of_another_form_is_no_report(tmp_path, changed):
    write_report(REPORT, tmp_path / "report.json")
    document = json.loads((tmp_path / "report.json").read_text())
    document["outcomes"][0].update(changed)
    (tmp_path / "report.json").write_text(json.dumps(document))
    with pytest.raises(MALFORMED):
        read_report(tmp_path / "report.json")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"planned": {}}, "'planned': Input should be a valid integer"),
        ({"seconds": []}, "'seconds': Input should be a valid number"),
        ({"vendor": None}, "'vendor': Input should be a valid string"),
        ({"strict": "perhaps"}, "'strict': Input should be a valid boolean"),
        ({"leaks": 4}, "'leaks': Input should be a valid tuple"),
        ({"outdated": [[]]}, "'outdated.0': Input should be a valid string"),
        ({"variant": {"seed": "x"}}, "'variant.seed': Input should be a valid integer"),
        ({"outcomes": [{"id": 1, "error": None, "ulp": None}]}, "'outcomes.0.id': Input should be a valid string"),
    ],
)
def test_a_report_with_a_value_of_another_type_is_none(tmp_path, changed, says):
    path = tmp_path / "report.json"
    write_report(REPORT, path)
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    with pytest.raises(ValueError, match=f"^{re.escape(says)}"):
        read_report(path)


@pytest.mark.parametrize("word", ["family", "elements", "layout", "view", "fill", "change", "models"])
def test_the_words_of_a_case_in_a_report_are_words(tmp_path, word):
    path = tmp_path / "report.json"
    write_report(REPORT, path)
    document = json.loads(path.read_text())
    document["outcomes"][0][word] = 7
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=rf"^'axes\..*\.{word}': Input should be a valid "):
        read_report(path)


_CASE = {"id": "a/f32/0", "function": "diopiA", "dtypes": {}, "values": {}}


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"version": 2}',
        "[" * 100_000,
        json.dumps({"version": 2, "vendor": "v", "dtypes": {}, "functions": {}, "cases": [_CASE]}),
    ],
)
def test_a_plan_of_another_form_is_damaged(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(
        PlanError, match=r"plan.json is damaged \(.*\); write it again with 'diopigen all --only conformance'"
    ):
        read_plan(tmp_path / "plan.json")

"""The command line: what it prints, writes and exits with."""

import json

import pytest
from click.testing import CliRunner
from diopi_conformance.cli import cli
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.report import Report, read_report, write_report


def invoke(*args: object):
    return CliRunner().invoke(cli, [str(a) for a in args])


def outcome(verdict: Verdict, case_id: str = "a/diopiA/f32/contiguous/0") -> Outcome:
    return Outcome(id=case_id, function="diopiA", op="a", verdict=verdict)


def report(*verdicts: Verdict, planned: int | None = None, strict: bool = False) -> Report:
    outcomes = tuple(outcome(v, f"a/{i}") for i, v in enumerate(verdicts))
    return Report(vendor="v", planned=planned or len(outcomes), outcomes=outcomes, strict=strict)


def test_plan_lists_what_the_filters_leave(plan_path):
    found = invoke("plan", "--vendor", "v", "--plan", plan_path, "--op", "neg", "--view", "strided")
    assert found.exit_code == 0
    assert found.stdout.split() == ["neg/diopiNeg/f32/strided/0", "neg/diopiNeg/f32/strided/1"]
    lines = invoke("plan", "--vendor", "v", "--plan", plan_path, "--id", "exp/*", "--format", "json").stdout
    assert {json.loads(line)["function"] for line in lines.splitlines()} == {"diopiExp"}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--op", "nothing"], "the filters leave no case"),
        (["--libraries", "/nowhere"], "build it with 'make build IMPL=v'"),
    ],
)
def test_wrong_usage_ends_in_a_sentence(plan_path, args, says):
    found = invoke("run", "--vendor", "v", "--plan", plan_path, *args)
    assert found.exit_code == 2
    assert says in " ".join(found.output.split())


def test_a_missing_or_damaged_plan_ends_in_a_sentence(tmp_path):
    missing = invoke("plan", "--vendor", "v", "--plan", tmp_path / "plan.json")
    assert (missing.exit_code, "diopigen conformance" in missing.output) == (2, True)
    (tmp_path / "plan.json").write_text("{")
    assert "is damaged" in invoke("plan", "--vendor", "v", "--plan", tmp_path / "plan.json").output


def test_a_run_writes_its_report_and_shows_it_again(plan_path, runtime, faulty, tmp_path):
    vendor = faulty("drops_tail")
    out = tmp_path / "report.json"
    args = ("--vendor", "v", "--plan", plan_path, "--libraries", vendor.parent, "--runtime", runtime, "--out", out)
    found = invoke("run", *args, "--op", "neg", "--dtype", "f32", "--view", "contiguous")
    assert found.exit_code == 1
    assert "neg/diopiNeg/f32/contiguous/0" in found.output
    again = invoke("report", out, "--format", "summary")
    assert again.exit_code == 1
    assert again.output.startswith("0 of 2 passed (0 of them trivial), 2 fail")


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (report(Verdict.PASS, Verdict.NOT_IMPLEMENTED), 0),
        (report(Verdict.PASS, Verdict.NOT_IMPLEMENTED, strict=True), 1),
        (report(Verdict.PASS, Verdict.FAIL), 1),
        (report(Verdict.PASS, Verdict.UNSOUND), 1),
        (report(Verdict.PASS, planned=2), 1),
        (report(Verdict.NOT_IMPLEMENTED), 1),
    ],
)
def test_exit_codes(found, code):
    assert found.exit_code == code


def test_reports_survive_being_written(tmp_path):
    original = report(Verdict.PASS, Verdict.CRASH)
    write_report(original, tmp_path / "report.json")
    assert read_report(tmp_path / "report.json") == original

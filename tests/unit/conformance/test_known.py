"""Known failures: what they excuse, what they do not, and what is said of a wrong file."""

import json
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopi_conformance.cases.plan import Case
from diopi_conformance.cli import cli
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.running.known_failures import KnownError, explained, outdated, read_known

TODAY = date(2026, 6, 1)
CASES = [Case(id=f"neg/{d}/{n}", function="diopiNeg", dtypes={}, values={}) for d in ("f32", "f16") for n in (0, 1)]
GOOD = """\
- id: neg/f32/0
  reason: the chip cannot negate
  expires: 2026-06-01
"""


def known(tmp_path: Path, text: str, cases=CASES):
    path = tmp_path / "known_failures.yaml"
    path.write_text(text)
    return read_known(path, cases, TODAY)


def outcome(name: str, verdict: Verdict = Verdict.FAIL) -> Outcome:
    return Outcome(id=name, function="diopiNeg", op="neg", verdict=verdict)


def test_an_entry_excuses_its_cases_only(tmp_path):
    entries = known(tmp_path, GOOD)
    found = explained([outcome("neg/f32/0"), outcome("neg/f32/1"), outcome("neg/f32/0", Verdict.PASS)], entries)
    assert [o.known for o in found] == ["the chip cannot negate", "", ""]


def test_a_glob_excuses_all_that_it_means(tmp_path):
    entries = known(tmp_path, GOOD.replace("neg/f32/0", "'neg/f1?/*'"))
    assert entries[0].cases == {"neg/f16/0", "neg/f16/1"}


def test_a_verdict_narrows_an_entry(tmp_path):
    entries = known(tmp_path, GOOD + "  verdict: crash\n")
    found = explained([outcome("neg/f32/0", v) for v in (Verdict.FAIL, Verdict.CRASH)], entries)
    assert [bool(o.known) for o in found] == [False, True]


def test_what_a_library_lacks_is_known_only_where_the_entry_says_so(tmp_path):
    lacking = outcome("neg/f32/0", Verdict.NOT_IMPLEMENTED)
    assert [o.known for o in explained([lacking], known(tmp_path, GOOD))] == [""]
    named = known(tmp_path, GOOD + "  verdict: not-implemented\n")
    assert [o.known for o in explained([lacking], named)] == ["the chip cannot negate"]


def test_a_wrong_case_is_never_excused(tmp_path):
    found = explained([outcome("neg/f32/0", v) for v in (Verdict.UNSOUND, Verdict.SKIPPED)], known(tmp_path, GOOD))
    assert [o.known for o in found] == ["", ""]


def test_an_entry_is_outdated_when_all_its_cases_pass(tmp_path):
    entries = known(tmp_path, GOOD.replace("neg/f32/0", "neg/f32/*"))
    one, two = outcome("neg/f32/0", Verdict.PASS), outcome("neg/f32/1", Verdict.PASS)
    assert outdated([one], entries) == ()  # the other did not run
    assert outdated([one, outcome("neg/f32/1")], entries) == ()
    assert outdated([one, two], entries) == (
        f"{tmp_path}/known_failures.yaml:1:3: 'neg/f32/*' now passes in all its 2 cases: remove the entry",
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id: x\n", ":1:1: a list is expected here, e.g. '- id: add/f32/0'"),
        ("- x\n", ":1:3: an entry has keys, e.g. 'id: add/f32/0'"),
        ("- id: [a]\n", ":1:7: a single value is expected here"),
        ("- id: a\n  id: b\n", ":2:3: 'id' stands twice in this entry"),
        ("- id: 'a\n", ":2:1: found unexpected end of stream"),
        ("- !!python/object:os.system {id: a}\n", ":1:3: the entry lacks its 'reason'"),
        (GOOD.replace("reason", "reson"), ":2:3: a known failure has no 'reson'; did you mean 'reason'?"),
        (GOOD.replace("reason", "colour"), ":2:3: a known failure has no 'colour'; keys are id, verdict, reason"),
        (GOOD.replace("the chip cannot negate", "''"), ":2:11: the entry lacks its 'reason'; say why"),
        ("- id: neg/f32/0\n  reason: no\n", ":1:3: the entry lacks its 'expires'; say when to look again"),
        (GOOD.replace("2026-06-01", "soon"), ":3:12: 'soon' is no date; write it like 2027-03-31"),
        (GOOD.replace("2026-06-01", "2026-05-31"), ":3:12: the entry expired on 2026-05-31; fix what fails"),
        (GOOD.replace("neg/f32/0", "neg/f32/7"), ":1:7: no case is called 'neg/f32/7'; did you mean 'neg/f32/"),
        (GOOD.replace("neg/f32/0", "neg/f64/*"), ":1:7: no case is called 'neg/f64/*'"),
        (GOOD + "  verdict: crashed\n", ":4:12: 'crashed' is no way to fail; did you mean 'crash'?"),
        (GOOD + "  verdict: pass\n", ":4:12: 'pass' is no way to fail; it is one of fail, not-implemented, crash"),
    ],
)
def test_a_wrong_file_is_told_with_its_place(tmp_path, text, says):
    with pytest.raises(KnownError) as error:
        known(tmp_path, text)
    assert f"{tmp_path}/known_failures.yaml{says}" in str(error.value)


def test_all_mistakes_are_told_at_once(tmp_path):
    with pytest.raises(KnownError) as error:
        known(tmp_path, GOOD.replace("2026-06-01", "soon") + GOOD.replace("reason", "reson"))
    assert [line.split(": ")[0].rsplit(":", 2)[1:] for line in str(error.value).splitlines()] == [
        ["3", "12"],
        ["5", "3"],
        ["4", "3"],
    ]


def test_no_file_and_an_empty_one_are_no_entries(tmp_path):
    assert read_known(tmp_path / "none.yaml", CASES, TODAY) == known(tmp_path, "# nothing\n") == ()


def run(plan_path: Path, runtime: Path, vendor: Path, tmp_path: Path, text: str) -> tuple[int, str, dict]:
    path, out = tmp_path / "known_failures.yaml", tmp_path / "report.json"
    path.write_text(text)
    args = ["run", "--vendor", "v", "--plan", plan_path, "--libraries", vendor.parent, "--runtime", runtime]
    args += ["--jobs", 1, "--op", "neg", "--dtype", "f32", "--known", path, "--out", out]
    found = CliRunner().invoke(cli, [str(a) for a in args])
    return found.exit_code, found.output, json.loads(out.read_text()) if out.exists() else {}


def test_known_failures_do_not_fail_a_run_and_count_apart(plan_path, runtime, faulty, tmp_path):
    entry = "- id: neg/f32/*\n  reason: the tail is lost\n  expires: 2999-01-01\n"
    code, output, report = run(plan_path, runtime, faulty("ignores_strides"), tmp_path, entry)
    failed = [o for o in report["outcomes"] if o["verdict"] == "fail"]
    assert code == 0 and failed and {o["known"] for o in failed} == {"the tail is lost"}
    assert report["planned"] == len(report["outcomes"]) and report["known"] == len(failed)
    assert f"{len(failed)} known to fail" in output


def test_what_passes_again_fails_the_run_until_it_is_removed(plan_path, runtime, faulty, tmp_path):
    entry = "- id: neg/f32/*\n  reason: the tail is lost\n  expires: 2999-01-01\n"
    code, output, report = run(plan_path, runtime, faulty("none"), tmp_path, entry)
    assert code == 1
    assert "known_failures.yaml:1:3: 'neg/f32/*' now passes in all its" in output
    assert report["outdated"] and "remove the entry" in report["outdated"][0]


def test_a_wrong_file_ends_a_run_before_it_begins(plan_path, runtime, faulty, tmp_path):
    code, output, report = run(plan_path, runtime, faulty("none"), tmp_path, "- id: nothing\n")
    assert (code, report) == (2, {})
    assert "known_failures.yaml:1:3: the entry lacks its 'reason'" in output

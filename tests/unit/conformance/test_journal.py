"""Runs that end early go on where they were, and only where that is the same run."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopi_conformance.cli import cli
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.running.journal import Identity, Journal, JournalError, digest_of, journal_path, resumed
from diopigen.atomic import Unwritable

RUN = Identity(vendor="v", plan="p", library="l", variant={"seed": 0})


def outcome(number: int, error: float | None = None) -> Outcome:
    return Outcome(id=f"a/f32/{number}", function="diopiA", op="a", verdict=Verdict.PASS, error=error, index=(1, 2))


def interrupted(path: Path, count: int) -> None:
    journal = Journal(path, RUN, {})
    for number in range(count):
        journal.write(outcome(number, error=float("inf")))
    journal.close(complete=False)


def test_what_was_written_is_there_again(tmp_path):
    interrupted(tmp_path / "a.journal", 3)
    found = resumed(tmp_path / "a.journal", RUN)
    assert list(found.values()) == [outcome(n, float("inf")) for n in range(3)]


def test_a_journal_that_cannot_be_written_says_why(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Unwritable, match=r"file/a.journal cannot be written: Not a directory"):
        Journal(tmp_path / "file" / "a.journal", RUN, {})
    journal = Journal(tmp_path / "a.journal", RUN, {})
    (tmp_path / "a.journal").unlink()
    (tmp_path / "a.journal").symlink_to("/dev/full")
    with pytest.raises(Unwritable, match=r"a.journal cannot be written: No space left on device"):
        journal.write(outcome(0))


def test_the_journal_of_a_report_that_is_printed_lies_among_the_results():
    assert journal_path(Path("/dev/stdout")) == Path("conformance_results/stdout.journal")
    assert journal_path(Path("/tmp/a.json")) == Path("/tmp/a.journal")


def test_an_outcome_is_on_disk_before_the_next_one(tmp_path):
    journal = Journal(tmp_path / "a.journal", RUN, {})
    journal.write(outcome(0))
    assert list(resumed(tmp_path / "a.journal", RUN)) == ["a/f32/0"]
    journal.close(complete=False)


def test_a_torn_last_line_is_left_out(tmp_path):
    path = tmp_path / "a.journal"
    interrupted(path, 2)
    path.write_bytes(path.read_bytes()[:-20])
    assert list(resumed(path, RUN)) == ["a/f32/0"]


def test_a_complete_run_leaves_no_journal(tmp_path):
    journal = Journal(tmp_path / "a.journal", RUN, {})
    journal.close(complete=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"vendor": "w"}, "it is of another vendor"),
        ({"plan": "q"}, "the plan has changed since"),
        ({"library": "m"}, "the library has changed since"),
        ({"variant": {"seed": 1}}, r"it was run with other options \(--seed"),
    ],
)
def test_another_run_does_not_go_on(tmp_path, change, says):
    interrupted(tmp_path / "a.journal", 1)
    with pytest.raises(JournalError, match=f"cannot go on: {says}"):
        resumed(tmp_path / "a.journal", replace(RUN, **change))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is damaged"),
        ("[]\n", "is no journal of this version"),
        ('{"version": 1}\n{"id": 1}\n', "is damaged"),
    ],
)
def test_what_is_no_journal_is_told(tmp_path, text, says):
    (tmp_path / "a.journal").write_text(text)
    with pytest.raises(JournalError, match=says):
        resumed(tmp_path / "a.journal", RUN)


def test_without_a_journal_there_is_nothing_to_resume(tmp_path):
    with pytest.raises(JournalError, match="there is nothing to resume"):
        resumed(tmp_path / "a.journal", RUN)


def test_a_run_goes_on_and_runs_nothing_twice(plan, plan_path, runtime, faulty, tmp_path):
    vendor, out = faulty("none"), tmp_path / "report.json"
    chosen = [case for case in plan.cases if case.function == "diopiExp" and case.elements == "f32"]
    identity = Identity(
        vendor="v", plan=plan.digest, library=digest_of(vendor), variant={"seed": 0, "nhwc": False, "four_bytes": False}
    )
    journal = Journal(journal_path(out), identity, {})
    for case in chosen[:2]:
        outcome = Outcome(id=case.id, function="diopiExp", op="exp", verdict=Verdict.PASS, message="from before")
        journal.write(outcome)
    journal.close(complete=False)
    args = ["run", "--vendor", "v", "--plan", str(plan_path), "--runtime", str(runtime), "--out", str(out)]
    args += ["--libraries", str(vendor.parent), "--jobs", "1", "--dtype", "f32", "--function", "diopiExp", "--resume"]
    found = CliRunner().invoke(cli, args)
    assert found.exit_code == 0, found.output
    messages = {o["id"]: o["message"] for o in json.loads(out.read_text())["outcomes"]}
    assert messages == {case.id: "from before" if case in chosen[:2] else "" for case in chosen}
    assert not journal_path(out).exists()


def test_resuming_nothing_is_wrong_usage(plan_path, runtime, faulty, tmp_path):
    vendor = faulty("none").parent
    args = ["run", "--vendor", "v", "--plan", str(plan_path), "--libraries", str(vendor), "--runtime", str(runtime)]
    found = CliRunner().invoke(cli, [*args, "--out", str(tmp_path / "r.json"), "--resume"])
    assert found.exit_code == 2
    assert "there is nothing to resume" in found.output

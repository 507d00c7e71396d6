"""Runs that end early go on where they were, and only where that is the same run."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopi_conformance.cli import cli
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.running.journal import (
    Identity,
    Journal,
    JournalError,
    digest_of,
    journal_path,
    resumed,
    suite_digest,
)
from diopi_conformance.running.signing import Chain
from diopigen.atomic import Unwritable

RUN = Identity(vendor="v", plan="p", suite="s", library="l", variant={"seed": 0})


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder of its own, which has no key yet."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


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


def test_the_journal_of_a_report_that_is_printed_lies_among_the_results(tmp_path):
    assert journal_path(Path("/dev/stdout")) == Path("conformance_results/stdout.journal")
    assert journal_path(tmp_path / "a.json") == tmp_path / "a.journal"


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
        ({"suite": "t"}, "the conformance suite has changed since"),
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
        (b"", "a.journal is no journal of version 2"),
        (b'{"version": 1}\n{"id": 1}\n', "a.journal is no journal of version 2"),
        (b"[]\n", "a.journal:1: no run of this user has written this line"),
        (b"\xff\xfe\n", "a.journal:1: no run of this user has written this line"),
        (b"00 {}\n", "a.journal:1: no run of this user has written this line"),
    ],
)
def test_what_is_no_journal_is_told(tmp_path: Path, text: bytes, says: str) -> None:
    (tmp_path / "a.journal").write_bytes(text)
    with pytest.raises(JournalError, match=f"{says}; run without --resume"):
        resumed(tmp_path / "a.journal", RUN)


def signed_by_another(lines: list[bytes]) -> list[bytes]:
    chain = Chain(b"k" * 32)
    return [chain.signed(line.partition(b" ")[2]) for line in lines]


FORGERIES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], int]] = {
    "a changed outcome": (lambda lines: [*lines[:2], lines[2].replace(b"pass", b"fail"), *lines[3:]], 3),
    "a new line": (lambda lines: [*lines, lines[-1].replace(b"f32/3", b"f32/4")], 6),
    "a line without a signature": (lambda lines: [*lines, lines[-1].partition(b" ")[2]], 6),
    "a line twice": (lambda lines: [*lines, lines[-1]], 6),
    "a missing line": (lambda lines: [*lines[:2], *lines[3:]], 3),
    "lines in another order": (lambda lines: [*lines[:2], lines[3], lines[2], lines[4]], 3),
    "another run": (lambda lines: [lines[0].replace(b'"l"', b'"m"'), *lines[1:]], 1),
    "no run": (lambda lines: lines[1:], 1),
    "an empty line": (lambda lines: [*lines[:2], b"", *lines[2:]], 3),
    "half a line": (lambda lines: [*lines[:2], lines[2][:80], *lines[3:]], 3),
    "signed by another user": (signed_by_another, 1),
    "a signature of another length": (lambda lines: [lines[0][2:], *lines[1:]], 1),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_line_that_no_run_has_written_is_not_believed(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.journal"
    interrupted(path, 4)
    change, line = FORGERIES[name]
    path.write_bytes(b"".join(one + b"\n" for one in change(path.read_bytes().splitlines())))
    with pytest.raises(JournalError) as error:
        resumed(path, RUN)
    assert str(error.value) == f"{path}:{line}: no run of this user has written this line; run without --resume"


def test_a_line_of_another_journal_is_not_believed(tmp_path: Path) -> None:
    interrupted(tmp_path / "a.journal", 2)
    other = Journal(tmp_path / "b.journal", replace(RUN, library="m"), {})
    other.write(outcome(7))
    other.close(complete=False)
    line = (tmp_path / "b.journal").read_bytes().splitlines()[1]
    with (tmp_path / "a.journal").open("ab") as stream:
        stream.write(line + b"\n")
    with pytest.raises(JournalError, match=r"a\.journal:4: no run of this user"):
        resumed(tmp_path / "a.journal", RUN)


def test_the_key_is_the_users_alone(tmp_path: Path, state: Path) -> None:
    interrupted(tmp_path / "a.journal", 1)
    (key,) = (state / "diopi-conformance").iterdir()
    assert (key.stat().st_mode & 0o777, key.parent.stat().st_mode & 0o777, key.stat().st_size) == (0o600, 0o700, 32)
    assert list(resumed(tmp_path / "a.journal", RUN)) == ["a/f32/0"]


@pytest.mark.parametrize(
    "harm", [lambda key: key.chmod(0o644), lambda key: key.write_bytes(b""), lambda key: key.unlink()]
)
def test_a_key_that_others_may_know_is_replaced(tmp_path: Path, state: Path, harm: Callable[[Path], object]) -> None:
    interrupted(tmp_path / "a.journal", 1)
    key = state / "diopi-conformance" / "key"
    harm(key)
    with pytest.raises(JournalError, match=":1: no run of this user"):
        resumed(tmp_path / "a.journal", RUN)
    interrupted(tmp_path / "a.journal", 1)
    assert list(resumed(tmp_path / "a.journal", RUN)) == ["a/f32/0"] and key.stat().st_mode & 0o777 == 0o600


def test_a_run_needs_no_key_that_is_kept(tmp_path: Path, state: Path) -> None:
    (state / "diopi-conformance").write_text("")
    interrupted(tmp_path / "a.journal", 1)
    with pytest.raises(JournalError, match=":1: no run of this user"):
        resumed(tmp_path / "a.journal", RUN)


def test_without_a_journal_there_is_nothing_to_resume(tmp_path):
    with pytest.raises(JournalError, match="there is nothing to resume"):
        resumed(tmp_path / "a.journal", RUN)


def test_a_run_goes_on_and_runs_nothing_twice(plan, plan_path, runtime, faulty, tmp_path):
    vendor, out = faulty("none"), tmp_path / "report.json"
    chosen = [case for case in plan.cases if case.function == "diopiExp" and case.elements == "f32"]
    identity = Identity(
        vendor="v",
        plan=plan.digest,
        suite=suite_digest(),
        library=digest_of(vendor),
        variant={"seed": 0, "nhwc": False, "four_bytes": False},
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

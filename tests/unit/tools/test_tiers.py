"""Tiers of tests, the store of what they build, and the steps of deep tests."""

import subprocess
import sys
from argparse import Namespace
from datetime import date
from pathlib import Path

import pytest

from tests import built
from tests.tiers import FOLDERS, KINDS, TESTS, TURNS, folder_of, of_other_turns, turn_of
from tools import deep_tests, test_tiers
from tools.deep_tests import STEPS, Step

ROOT = Path(__file__).resolve().parents[3]
SUITE = """
import time
import pytest

def test_usual(): pass

@pytest.mark.deep("fuzz", "the usual one")
def test_drawn(): pass

@pytest.mark.deep("races", "the usual one")
def test_threads(): pass

def test_slow(): time.sleep(0.5)

def test_late(): pass
"""


def pytest_says(folder: Path, text: str, *options: str) -> str:
    """What pytest prints of a suite in tests/<folder>, with the plugin."""
    (folder / "suite.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "tests.tiers", "-p", "no:cacheprovider", "-rs", "--noconftest"]
    command += ["-o", "addopts=", f"--rootdir={folder}", str(folder / "suite.py"), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "counts"),
    [
        ((), "5 passed"),
        (("--tier", "test"), "3 passed, 2 deselected"),
        (("--tier", "deep"), "2 passed, 3 deselected"),
        (("--tier", "deep", "--kind", "races"), "1 passed, 4 deselected"),
        (("--limit", "0.3"), "4 passed, 1 skipped"),
    ],
)
def test_a_tier_has_its_tests(tmp_path: Path, options: tuple[str, ...], counts: str) -> None:
    assert counts in pytest_says(tmp_path, SUITE, *options)


@pytest.mark.parametrize("marker", ['deep("fuz", "x")', 'deep("fuzz")'])
def test_a_marker_without_a_kind_or_a_reason(tmp_path: Path, marker: str) -> None:
    found = pytest_says(tmp_path, f"import pytest\n@pytest.mark.{marker}\ndef test_x(): pass\n", "--tier", "test")
    assert "the marker is deep(kind, what `make test` has instead); kinds: sanitizers, races, matrix" in found


def test_each_file_has_its_turn_and_quick_ones_have_each() -> None:
    files = sorted(TESTS.rglob("test_*.py"))
    taken = [set(files) - of_other_turns(files, turn) for turn in range(1, TURNS + 1)]
    assert set.union(*taken) == set(files)
    assert {path for path in files if all(path in turn for turn in taken)} == {
        path for path in files if FOLDERS[folder_of(path)].quick
    }
    assert max(map(len, taken)) - min(map(len, taken)) <= 1


def test_turns_follow_the_date() -> None:
    assert turn_of("today") == date.today().toordinal() % TURNS + 1
    assert [turn_of("1"), turn_of("2")] == [1, 2]


def test_a_turn_without_its_tier(tmp_path: Path) -> None:
    assert "ERROR: --turn goes with --tier test" in pytest_says(tmp_path, SUITE, "--turn", "1")


def test_a_kind_without_its_tier(tmp_path: Path) -> None:
    assert "ERROR: --kind goes with --tier deep" in pytest_says(tmp_path, SUITE, "--kind", "fuzz")


def test_every_folder_is_listed() -> None:
    files = sorted(TESTS.rglob("test_*.py"))
    assert {folder_of(path) for path in files} == set(FOLDERS)
    assert folder_of(TESTS / "unit" / "conformance" / "test_x.py") == "unit/conformance"
    with pytest.raises(KeyError, match=r"is in no folder that tests/tiers\.py lists"):
        folder_of(TESTS / "other" / "test_x.py")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(built, "STORE", tmp_path / "store")
    built.content.cache_clear()
    return tmp_path / "store"


def test_the_same_is_built_once(store: Path, tmp_path: Path) -> None:
    calls: list[Path] = []

    def make(folder: Path) -> None:
        calls.append(folder)
        (folder / "result").write_text("made", encoding="utf-8")

    source = tmp_path / "source.h"
    source.write_text("int x;", encoding="utf-8")
    places = {built.stored("thing", ["-O1", tmp_path], make) for _ in range(3)}
    assert len(calls) == 1 and [(place / "result").read_text() for place in places] == ["made"]
    built.content.cache_clear()
    source.write_text("int y;", encoding="utf-8")
    assert built.stored("thing", ["-O1", tmp_path], make) not in places
    assert built.stored("thing", ["-O2", tmp_path], make) not in places
    assert len(calls) == 3


def test_nothing_is_kept_of_what_fails(store: Path, tmp_path: Path) -> None:
    source = tmp_path / "wrong.cpp"
    source.write_text("int f() { return g(); }", encoding="utf-8")
    with pytest.raises(AssertionError, match="was not declared"):
        built.compiled(["g++", "-c", source], "wrong.o")
    assert [path for path in store.iterdir() if path.is_dir()] == []


def test_a_header_makes_another_object(store: Path, tmp_path: Path) -> None:
    folder, source = tmp_path / "include", tmp_path / "unit.cpp"
    folder.mkdir()
    source.write_text('#include "part.h"\n', encoding="utf-8")
    objects = []
    for text in ("int part;", "int other;"):
        (folder / "part.h").write_text(text, encoding="utf-8")
        built.content.cache_clear()
        objects.append(built.compiled(["g++", f"-I{folder}", "-c", source], "unit.o"))
    assert objects[0] != objects[1] and all(path.is_file() for path in objects)


def test_entries_that_nobody_used_are_removed(store: Path) -> None:
    place = built.stored("thing", ["x"], lambda folder: None)
    built.forget(days=1)
    assert place.is_dir()
    built.forget(days=-1)
    assert list(store.iterdir()) == []


def test_the_list_is_of_the_tests_as_they_are() -> None:
    assert "| sanitizers | e2e/test_asan.py |" in test_tiers.listed()
    part = test_tiers.PART
    page = f"before\n{part.begin}old\n{part.end}after\n"
    assert part.replaced(page, "new") == f"before\n{part.begin}\nnew\n{part.end}after\n"


def test_each_kind_has_steps() -> None:
    assert {step.kind for step in STEPS} == set(KINDS)


def test_today_turns_with_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    firsts = []
    for day in range(1, len(STEPS) + 1):
        monkeypatch.setattr(deep_tests, "date", Namespace(today=lambda day=day: date(2025, 1, day)))
        steps = deep_tests._chosen("today", None)
        assert sorted(map(id, steps)) == sorted(map(id, STEPS))
        firsts.append(steps[0])
    assert set(firsts) == set(STEPS)


def test_what_does_not_fit_is_left_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    steps = (
        Step("fuzz", "long", 9, ("false",)),
        Step("fuzz", "short", 1, ("true",)),
        Step("fuzz", "bad", 1, ("false",)),
    )
    code = deep_tests._run(steps, Namespace(limit=120, jobs=1, more=[]))
    printed = capsys.readouterr().out
    assert code == 1 and "left out for want of time: fuzz long\nFAILED: fuzz bad\n" in printed
    assert deep_tests._run(steps[1:2], Namespace(limit=None, jobs=1, more=[])) == 0


def test_options_go_to_the_last_command() -> None:
    step = Step("mutants", "kernels", 5, ("build {jobs}", "plant {part}"))
    assert list(step.lines(2, None, "--only x")) == ["build 2", "plant  --only x"]
    assert list(step.lines(2, 60.0, ""))[1].startswith("plant --part ")

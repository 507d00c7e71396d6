"""What `make times` prints and keeps, and the plugin that measures tests: tools/times, tests/times.py."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.times.__main__ import main
from tools.times.kept import keep_builds, keep_tests
from tools.times.records import Build, recorded_builds, recorded_tests
from tools.times.table import shortened, table, text_of_build, text_of_tests

ROOT = Path(__file__).resolve().parents[3]

BUILD = {
    "began": 2000,
    "wall": 90.2,
    "processor": 171.4,
    "units": {
        "generated/droplet/adaptor/adaptor_synchronized_norm.cpp": 450,
        "lib/libdiopi_impl.so": 800,
        "runtime_cpp/kernels/softmax.cpp": 20100,
        "runtime_cpp/kernels/sort.cpp": 3000,
    },
}
BUILD_BEFORE = {
    "began": 1000,
    "wall": 61.0,
    "processor": 120.0,
    "units": {"runtime_cpp/kernels/softmax.cpp": 25000, "runtime_cpp/kernels/sort.cpp": 3000, "gone.cpp": 100},
}
TESTS = {
    "began": 3000,
    "wall": 125.0,
    "tests": {
        "tests/e2e/test_asan.py::test_cases": [60.5, 118.0],
        "tests/unit/test_cli.py::test_help[a::b]": [1.25, 1.0],
        "tests/unit/test_cli.py::test_version": [0.5, 0.25],
        "tests/unit/test_rules.py::test_all": [0.125, 0.125],
    },
    "fixtures": {"tests/e2e::sanitized": [41.0, 80.0, 1], "tests::libraries": [0.1, 0.1, 4]},
}
TESTS_BEFORE = {**TESTS, "wall": 3725.0, "tests": {"tests/unit/test_cli.py::test_version": [2.0, 2.0]}}

BUILD_TEXT = """\
build of droplet: 1:30, 2:51 of processors, 4 units
before: 1:01, 2:00 of processors, 3 units

unit                                                 seconds    before    change
runtime_cpp/kernels/softmax.cpp                         20.1      25.0      -4.9
runtime_cpp/kernels/sort.cpp                             3.0       3.0      +0.0
lib/libdiopi_impl.so                                     0.8         -         -
...d/droplet/adaptor/adaptor_synchronized_norm.cpp       0.5         -         -

folder                                               seconds    before    change
runtime_cpp/kernels                                     23.1      28.0      -4.9
lib                                                      0.8         -         -
generated/droplet/adaptor                                0.5         -         -
"""
TESTS_TEXT = """\
tests: 2:05
before: 1:02:05

test folder                                          seconds    before    change
tests/e2e                                               60.5         -         -
tests/unit                                               1.9       2.0      -0.1

test file                                            seconds    before    change
tests/e2e/test_asan.py                                  60.5         -         -
tests/unit/test_cli.py                                   1.8       2.0      -0.2
tests/unit/test_rules.py                                 0.1         -         -

fixture                                              seconds    before    change
tests/e2e::sanitized                                    41.0      41.0      +0.0
tests::libraries                                         0.1       0.1      +0.0
"""
FACTS = {"python": "3.11.7"}
KEPT_TESTS = """\
{
 "benchmark": "test_times",
 "about": "test files: seconds and processor seconds; fixtures: these, and how often they were made",
 "facts": {
  "python": "3.11.7"
 },
 "wall": 125.0,
 "files": {
  "tests/e2e/test_asan.py": [60.5, 118.0],
  "tests/unit/test_cli.py": [1.8, 1.2]
 },
 "fixtures": {
  "tests/e2e::sanitized": [41.0, 80.0, 1]
 }
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """build/times, as a build and a test run leave it."""
    made = tmp_path / "times"
    made.mkdir()
    for name, record in (
        ("build-droplet.json", BUILD),
        ("build-droplet.previous.json", BUILD_BEFORE),
        ("tests.json", TESTS),
        ("tests.previous.json", TESTS_BEFORE),
    ):
        (made / name).write_text(json.dumps(record), encoding="utf-8")
    return made


def test_the_text_of_a_build(folder: Path) -> None:
    found = recorded_builds(folder)
    assert list(found) == ["droplet"]
    assert text_of_build("droplet", found["droplet"]) == BUILD_TEXT


def test_the_text_of_tests(folder: Path) -> None:
    found = recorded_tests(folder)
    assert found is not None
    assert text_of_tests(found) == TESTS_TEXT


def test_without_a_run_before_there_is_nothing_to_compare_with(folder: Path) -> None:
    (folder / "build-droplet.previous.json").unlink()
    lines = text_of_build("droplet", recorded_builds(folder)["droplet"]).splitlines()
    assert lines[1:4] == [
        "",
        "unit                                                 seconds    before    change",
        "runtime_cpp/kernels/softmax.cpp                         20.1         -         -",
    ]


def test_the_longest_are_listed_and_the_others_summed_up() -> None:
    lines = table("unit", {f"{index:02}.cpp": 1.0 + index for index in range(18)}, None)
    assert len(lines) == 2 + 15 + 1
    assert lines[2].startswith("17.cpp") and lines[16].startswith("03.cpp")
    assert lines[17] == f"{'3 others':50}       6.0"


def test_every_line_fits_eighty_columns(folder: Path) -> None:
    found = recorded_tests(folder)
    assert found is not None
    assert all(len(line) <= 80 for line in (*BUILD_TEXT.splitlines(), *text_of_tests(found).splitlines()))
    assert shortened("a/b.cpp", 7) == "a/b.cpp"
    assert shortened("aaa/b.cpp", 8) == "...b.cpp"


def test_kept_tests_are_sorted_rounded_and_without_short_ones(folder: Path, tmp_path: Path) -> None:
    found = recorded_tests(folder)
    assert found is not None
    keep_tests(found.last, FACTS, tmp_path)
    assert (tmp_path / "test_times.json").read_text(encoding="utf-8") == KEPT_TESTS


def test_a_build_of_a_few_units_leaves_the_others_figures(tmp_path: Path) -> None:
    keep_builds({"droplet": Build(90.0, 170.0, {"b.cpp": 2.04, "a.cpp": 1.0})}, FACTS, tmp_path)
    keep_builds({"droplet": Build(5.0, 5.0, {"b.cpp": 4.0}), "other": Build(1.0, 1.0, {"c.cpp": 1.0})}, FACTS, tmp_path)
    assert json.loads((tmp_path / "build_times.json").read_text(encoding="utf-8"))["builds"] == {
        "droplet": {"wall": 90.0, "processor": 170.0, "units": {"a.cpp": 1.0, "b.cpp": 4.0}},
        "other": {"wall": 1.0, "processor": 1.0, "units": {"c.cpp": 1.0}},
    }


def test_a_whole_build_takes_the_place_of_the_earlier_one(tmp_path: Path) -> None:
    keep_builds({"droplet": Build(90.0, 170.0, {"a.cpp": 1.0, "gone.cpp": 2.0})}, FACTS, tmp_path)
    keep_builds({"droplet": Build(80.0, 150.0, {"a.cpp": 1.0, "new.cpp": 2.0})}, FACTS, tmp_path)
    kept = json.loads((tmp_path / "build_times.json").read_text(encoding="utf-8"))["builds"]
    assert kept["droplet"] == {"wall": 80.0, "processor": 150.0, "units": {"a.cpp": 1.0, "new.cpp": 2.0}}


def test_where_nothing_is_recorded_the_command_says_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["times", "--records", str(tmp_path), "--results", str(tmp_path)])
    assert main() == 1
    assert capsys.readouterr().err == "nothing is recorded yet; run 'make build' or 'make test' first\n"
    assert not (tmp_path / "build_times.json").exists()


MEASURED = """
import time
import pytest

@pytest.fixture(scope="module")
def slow():
    time.sleep(0.2)

def test_one(slow):
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass

def test_two(slow): ...
"""


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_the_plugin_measures_tests_and_fixtures(tmp_path: Path, workers: tuple[str, ...]) -> None:
    (tmp_path / "test_measured.py").write_text(MEASURED, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "times.py").symlink_to(ROOT / "tests" / "times.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.times", "--times", "build/tests.json", *workers]
    for _ in range(2):
        subprocess.run([*command, "test_measured.py"], cwd=tmp_path, check=True, capture_output=True)
    record = json.loads((tmp_path / "build" / "tests.json").read_text(encoding="utf-8"))
    assert list(record["tests"]) == ["test_measured.py::test_one", "test_measured.py::test_two"]
    wall, processor = record["tests"]["test_measured.py::test_one"]
    assert wall >= 0.3 and 0.05 <= processor <= wall
    seconds, _, count = record["fixtures"]["test_measured.py::slow"]
    assert seconds >= 0.2 and count == 1
    assert (tmp_path / "build" / "tests.previous.json").exists()

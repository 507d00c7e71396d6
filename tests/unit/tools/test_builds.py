"""The time left of a build, what is passed through, what is recorded: tools/builds."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil
import pytest

from tools.builds import ninja
from tools.builds.display import Plain
from tools.builds.durations import TABLE, expected, recorded
from tools.builds.record import Record, write
from tools.builds.remaining import Remaining, clock, weights
from tools.builds.steps import Build, run

ROOT = Path(__file__).resolve().parents[3]

LOG = """# ninja log v7
1\t12\t100\tCMakeFiles/cmake.verify_globs\tf0
5\t3005\t101\tCMakeFiles/one.dir/src/one.cpp.o\ta1
5\t1005\t102\t{root}/generated/first.cpp\tb2
5\t1005\t102\t{root}/generated/second.cpp\tb2
3005\t3505\t103\tlib/libone.so\tc3
"""
NINJA_FILE = """rule CXX_COMPILER__one_Release
build CMakeFiles/one.dir/src/one.cpp.o: CXX_COMPILER__one_Release {root}/src/one.cpp || order
build CMakeFiles/one.dir/a$ b.cpp.o: CXX_COMPILER__one_Release /else$:where/a$ b.cpp
build lib/libone.so: CXX_SHARED_LIBRARY_LINKER__one_Release CMakeFiles/one.dir/src/one.cpp.o
"""
ONE = "CMakeFiles/one.dir/src/one.cpp.o"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A build folder as ninja leaves it, below a root."""
    made = tmp_path / "build" / "chip"
    made.mkdir(parents=True)
    (made / ".ninja_log").write_text(LOG.format(root=tmp_path), encoding="utf-8")
    (made / "build.ninja").write_text(NINJA_FILE.format(root=tmp_path), encoding="utf-8")
    return made


def test_sources_are_those_of_the_objects(folder: Path, tmp_path: Path) -> None:
    assert ninja.sources(folder, tmp_path) == {
        ONE: "src/one.cpp",
        "CMakeFiles/one.dir/a b.cpp.o": "/else:where/a b.cpp",
    }


def test_of_several_outputs_of_one_command_one_is_kept(folder: Path, tmp_path: Path) -> None:
    found = {output: entry.milliseconds for output, entry in ninja.log(folder).items()}
    assert found == {
        "CMakeFiles/cmake.verify_globs": 11,
        ONE: 3000,
        f"{tmp_path}/generated/first.cpp": 1000,
        "lib/libone.so": 500,
    }


def test_a_line_of_ninja_is_told_from_one_of_a_compiler() -> None:
    assert ninja.finished("\x1e3/9\x1eBuilding CXX object a/b.cpp.o\n") == ninja.Finished("a/b.cpp.o", 3, 9)
    assert ninja.finished("[3/9] Building CXX object a/b.cpp.o\n") is None


def test_the_record_holds_what_this_build_made(folder: Path, tmp_path: Path) -> None:
    before = {name: entry for name, entry in ninja.log(folder).items() if name == "lib/libone.so"}
    record = Record.of(folder, tmp_path, before, 1000.4, 12.34, 20.06)
    assert record == Record("chip", 1000, 12.3, 20.1, {"generated/first.cpp": 1000, "src/one.cpp": 3000})


def test_the_record_of_the_build_before_is_kept(tmp_path: Path) -> None:
    for wall in (1.0, 2.0):
        write(Record("chip", 1000, wall, 3.0, {"src/one.cpp": 3000}), tmp_path)
    write(Record("chip", 1001, 0.1, 0.1, {}), tmp_path)  # nothing was made
    kept = tmp_path / "build" / "times"
    assert json.loads((kept / "build-chip.json").read_text())["wall"] == 2.0
    assert json.loads((kept / "build-chip.previous.json").read_text())["wall"] == 1.0


def test_a_folder_that_was_never_configured_takes_what_is_recorded(tmp_path: Path) -> None:
    assert recorded(tmp_path) == {}
    (tmp_path / TABLE).parent.mkdir(parents=True)
    (tmp_path / TABLE).write_text(json.dumps({"builds": {"chip": {"units": {"src/one.cpp": 3.0}}}}))
    assert expected(tmp_path / "build" / "chip", tmp_path) == {"src/one.cpp": 3.0}
    assert expected(tmp_path / "build" / "other", tmp_path) == {}


def test_an_unknown_unit_takes_what_the_known_ones_take_on_average() -> None:
    assert weights(("a", "b", "c"), {"a": 1.0, "b": 3.0}.get) == {"a": 1.0, "b": 3.0, "c": 2.0}
    assert weights(("a",), {}.get) == {"a": 2.0}


@pytest.mark.parametrize("slower", [0.5, 1.0, 3.0])
def test_halfway_the_time_left_is_right_whatever_the_machine(slower: float) -> None:
    """Two compilers at a time; a machine that takes `slower` times what was recorded."""
    units = {f"{index}.cpp": 1.0 + index % 7 for index in range(80)}
    remaining = Remaining(2)
    remaining.begin(units, 0.0, 0.0)
    free = [0.0, 0.0]
    ends = []
    for unit, seconds in units.items():
        first = free.index(min(free))
        free[first] += slower * seconds
        ends.append((free[first], unit))
    ends.sort()
    whole = ends[-1][0]
    for index, (now, unit) in enumerate(ends):
        remaining.finish(unit, len(ends) - index - 1, now)
        if now >= whole / 2:
            assert remaining.left(now) == pytest.approx(whole - now, rel=0.2)
            return


def test_builds_that_come_later_count_and_the_pace_is_kept() -> None:
    remaining = Remaining(1)
    remaining.begin({"a": 40.0}, 100.0, 0.0)
    assert remaining.left(0.0) == pytest.approx(140.0)
    remaining.finish("a", 0, 90.0)  # slow: 2 seconds for one, all but the ten on trust
    assert remaining.left(90.0) == pytest.approx(200.0)
    remaining.begin({"b": 100.0}, 0.0, 95.0)
    assert remaining.left(95.0) == pytest.approx(200.0)
    assert remaining.left(105.0) == pytest.approx(190.0)  # it counts down


def test_units_that_ninja_found_up_to_date_no_longer_count() -> None:
    remaining = Remaining(1)
    remaining.begin(dict.fromkeys("abcde", 10.0), 0.0, 0.0)
    assert not remaining.finish("CMakeFiles/cmake.verify_globs", 0, 1.0)
    assert remaining.left(0.0) == pytest.approx(50.0)
    assert remaining.finish("a", 2, 10.0)
    assert remaining.left(10.0) == pytest.approx(20.0)


def test_the_plain_line() -> None:
    remaining = Remaining(1)
    remaining.begin({"a": 40.0, "softmax": 190.0}, 0.0, 0.0)
    remaining.finish("a", 1, 40.0)
    display = Plain("droplet", remaining)
    display.show(57, 211, "runtime_cpp/kernels/softmax.cpp")
    assert display.line(40.0) == "[ 57/211] 3:10 left, droplet: runtime_cpp/kernels/softmax.cpp"


def test_seconds_as_minutes() -> None:
    assert [clock(seconds) for seconds in (0, 9.6, 61, 3661)] == ["0:00", "0:10", "1:01", "1:01:01"]


RUN = """import os, sys
sys.path.insert(0, {tools!r})
from pathlib import Path
import builds.display
from builds.steps import Build, run
builds.display._PAUSE = 0
root = Path({root!r})
folder = root / "build" / "chip"
prepare = [["cmake", "-S", str(root), "-B", str(folder), "-G", {generator!r}]]
beside = [["cmake", "-S", str(root), "-B", str(folder) + "-beside", "-G", {generator!r}]]
builds = [Build(folder, prepare, 2), Build(root / "build" / "chip-beside", beside, 2)][:{at_once}]
sys.exit(run(builds, root, dict(os.environ), at_once={at_once}))
"""
PROJECT = """cmake_minimum_required(VERSION 3.21)
project(chip LANGUAGES CXX)
file(GLOB sources CONFIGURE_DEPENDS src/*.cpp)
add_library(chip SHARED ${sources})
target_compile_options(chip PRIVATE -Wall)
"""
WARNS = "int f() { int unused; return 0; }\n"
SLOW = """template <unsigned n> struct Sum { static constexpr unsigned of(unsigned x) {
  unsigned sum = 0; for (unsigned i = 0; i < 30000000; ++i) sum += i ^ x; return sum + Sum<n - 1>::of(x); } };
template <> struct Sum<0> { static constexpr unsigned of(unsigned) { return 0; } };
constexpr unsigned slow = Sum<40>::of(1);
"""


def _project(root: Path, sources: dict[str, str], generator: str = "Ninja", at_once: int = 1) -> list[str]:
    """A project with these sources; the command that builds it, in one folder or in two at once."""
    if shutil.which("cmake") is None or (generator == "Ninja" and shutil.which("ninja") is None):
        pytest.skip(f"there is no cmake, or no {generator}")
    (root / "CMakeLists.txt").write_text(PROJECT)
    (root / "src").mkdir()
    for name, text in sources.items():
        (root / "src" / name).write_text(text)
    program = RUN.format(tools=str(ROOT / "tools"), root=str(root), generator=generator, at_once=at_once)
    return [sys.executable, "-c", program]


def test_warnings_pass_through_and_units_are_recorded(tmp_path: Path) -> None:
    command = _project(tmp_path, {"a.cpp": WARNS, "b.cpp": "int b;\n"})
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert f"{tmp_path}/src/a.cpp:1:15: warning: unused variable" in ran.stdout
    assert WARNS in ran.stdout  # the line that the compiler shows
    assert "Building" not in ran.stdout and "\x1e" not in ran.stdout
    assert re.search(r"^\[[12]/3\] 0:0\d left, chip: src/[ab]\.cpp$", ran.stdout, re.MULTILINE), ran.stdout
    record = json.loads((tmp_path / "build" / "times" / "build-chip.json").read_text())
    assert list(record) == ["began", "wall", "processor", "units"]
    assert list(record["units"]) == ["libchip.so", "src/a.cpp", "src/b.cpp"]
    assert record["processor"] > 0


def test_ninja_tells_what_it_would_make(tmp_path: Path) -> None:
    command = _project(tmp_path, {"a.cpp": "int a;\n", "b.cpp": "int b;\n"})
    subprocess.run(command, capture_output=True, check=True)
    folder = tmp_path / "build" / "chip"
    assert expected(folder, tmp_path) == {}
    (tmp_path / "src" / "a.cpp").write_text("int a2;\n")
    found = expected(folder, tmp_path)
    assert list(found) == ["CMakeFiles/chip.dir/src/a.cpp.o", "libchip.so"]
    assert all(seconds > 0 for seconds in found.values())


def test_an_error_ends_the_build_with_ninjas_exit_code(tmp_path: Path) -> None:
    command = _project(tmp_path, {"a.cpp": "int a = ;\n"})
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "expected primary-expression" in ran.stdout
    assert "ninja: build stopped: subcommand failed." in ran.stdout


def test_builds_at_the_same_time(tmp_path: Path) -> None:
    command = _project(tmp_path, {"a.cpp": "int a;\n"}, at_once=2)
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    for name in ("chip", "chip-beside"):
        assert (tmp_path / "build" / name / "libchip.so").is_file()
        assert f"0:00 left, {name}: src/a.cpp" in ran.stdout or f", {name}: libchip.so" in ran.stdout
        assert (tmp_path / "build" / "times" / f"build-{name}.json").is_file()
    (tmp_path / "src" / "a.cpp").write_text("int a = ;\n")
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and ran.stdout.count("expected primary-expression") == 2


# Ends once the other's mark is there; and what leaves its mark unless it is ended first.
MEETS = """import pathlib, sys, time
pathlib.Path(sys.argv[1]).touch()
while not pathlib.Path(sys.argv[2]).exists():
    time.sleep(0.01)
"""
SLEEPS = "import pathlib, sys, time; time.sleep(60); pathlib.Path(sys.argv[1]).touch()"


@pytest.mark.parametrize("at_once", [1, 2])
def test_what_prepares_a_build_runs_at_the_same_time(tmp_path: Path, at_once: int) -> None:
    marks = [str(tmp_path / name) for name in "ab"]
    meeting = [[sys.executable, "-c", MEETS, *marks], [sys.executable, "-c", MEETS, *reversed(marks)]]
    assert run([Build(tmp_path / "chip", meeting, 1)], tmp_path, os.environ) != 0  # nothing was configured
    assert all(Path(mark).exists() for mark in marks)
    began = time.monotonic()
    sleeping = [sys.executable, "-c", SLEEPS, str(tmp_path / "slept")]
    builds = [Build(tmp_path / "chip", [sleeping, ["sh", "-c", "exit 3"]], 1), Build(tmp_path / "other", [sleeping], 1)]
    assert run(builds, tmp_path, os.environ, at_once) == 3
    assert time.monotonic() - began < 50 and not (tmp_path / "slept").exists()


@pytest.mark.parametrize("at_once", [1, 2])
def test_an_interrupt_stops_the_compilers_and_the_next_build_goes_on(tmp_path: Path, at_once: int) -> None:
    command = _project(tmp_path, {"a.cpp": "int a;\n", "slow.cpp": SLOW}, at_once=at_once)
    with_limit = f"target_compile_options(chip PRIVATE -fconstexpr-ops-limit={10**12} -fconstexpr-loop-limit={10**9})\n"
    (tmp_path / "CMakeLists.txt").write_text(PROJECT + with_limit)
    heeded = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell ignores it for what runs in the background
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heeded)
    done = tmp_path / "build" / "chip" / "CMakeFiles" / "chip.dir" / "src" / "a.cpp.o"
    deadline = time.monotonic() + 60
    try:
        while not (done.exists() and _compilers(tmp_path)) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        left = _compilers(tmp_path)
        for compiler in left:
            compiler.kill()
    assert (process.returncode, left) == (130, [])
    assert said.endswith("interrupted; the next build goes on from here\n") and "Traceback" not in said
    assert done.exists() and not done.with_name("slow.cpp.o").exists()
    (tmp_path / "src" / "slow.cpp").write_text("int slow;\n")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def _compilers(root: Path) -> list[psutil.Process]:
    """The processes that compile a source below `root`."""
    return [process for process in psutil.process_iter(["cmdline"]) if _compiles(process, root)]


def _compiles(process: psutil.Process, root: Path) -> bool:
    line = " ".join(process.info["cmdline"] or ())
    return "cc1plus" in line and f"{root}/src/slow.cpp" in line


def test_other_generators_build_too(tmp_path: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    command = _project(tmp_path, {"a.cpp": WARNS}, "Unix Makefiles")
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "MAKEFLAGS": ""})
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "build" / "chip" / "libchip.so").exists()

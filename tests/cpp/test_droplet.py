"""Builds and runs the C++ tests of droplet's runtime, plainly and under each of the sanitizers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "vendors" / "droplet" / "runtime"
WARNINGS = ["-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
SANITIZERS = {
    "plain": [],
    "sanitized": ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"],
    "threads": ["-fsanitize=thread"],
}

# The settings that a test runs with, besides those that every test gets.
SETTINGS = {
    "full_memory_is_an_error_that_passes": {"DROPLET_MEMORY_MB": "16"},
    "poison_fills_fresh_memory": {"DROPLET_POISON": "1"},
    "an_allocation_fails_on_demand": {"DROPLET_FAULT": "malloc:2"},
}
MEMORY_TESTS = (
    "allocation_is_aligned_and_counted",
    "full_memory_is_an_error_that_passes",
    "copies_move_bytes",
    "bad_copies_are_refused",
    "devices_have_their_own_memory",
    "fork_is_reported",
    "poison_fills_fresh_memory",
    "threads_share_the_pool",
)
MEMORY_FAULTS = (
    "kernel_beyond_its_memory",
    "kernel_reads_before_all_memory",
    "kernel_reads_far_behind",
    "kernel_reads_freed_memory",
    "kernel_reads_behind_pinned_memory",
)
STREAM_TESTS = (
    "work_of_a_stream_is_in_order",
    "more_work_than_the_ring_holds",
    "arguments_are_copied",
    "events_order_streams",
    "events_measure_time",
    "priorities_have_a_range",
    "a_failed_launch_stays_until_reset",
    "a_throwing_kernel_is_a_failure",
    "an_allocation_fails_on_demand",
    "pinned_copies_do_not_wait",
    "bad_fault_plans_are_refused",
    "freeing_waits_for_the_work",
    "recorded_work_is_done_again",
    "what_cannot_be_done_again_ends_the_record",
)


THREAD_TESTS = (
    "each_index_runs_once",
    "long_loops_are_shared_and_short_ones_are_not",
    "loops_may_be_nested",
    "loops_of_many_callers_do_not_mix",
    "the_first_index_that_throws_is_reported",
    "a_fork_leaves_the_threads_to_the_parent",
)
FABRIC_TESTS = (
    "random_calls_give_what_is_computed_at_once",
    "groups_of_messages_have_no_order",
    "calls_on_several_streams_are_in_order",
    "multiplied_sums_have_a_factor",
    "an_abort_ends_what_waits",
    "a_rank_that_leaves_is_the_others_error",
    "different_calls_are_an_error",
    "a_corrupted_answer_is_an_error",
    "wrong_arguments_are_refused",
)
PROGRAMS = ("memory_tests", "stream_tests", "thread_tests", "fabric_tests")


def build(folder: Path, flags: list[str]) -> None:
    """Compiles droplet's runtime and the test programs into `folder`."""
    folders = (RUNTIME, RUNTIME.parent / "fabric")
    sources = [str(path) for at in folders for path in sorted(at.glob("*.cpp"))]
    headers = [
        f"-I{path}" for path in (*folders, RUNTIME.parent, ROOT / "runtime_cpp", ROOT / "runtime_cpp" / "kernels")
    ]
    library = folder / "libdroplet_rt.so"
    shared = ["-shared", "-fPIC", "-fvisibility=hidden", "-pthread", "-Wl,-z,nodelete"]
    subprocess.run(["g++", *WARNINGS, *flags, *shared, *headers, "-o", str(library), *sources], check=True)
    for name in PROGRAMS:
        source = ROOT / "tests" / "cpp" / "droplet" / f"{name}.cpp"
        program = [
            "-o",
            str(folder / name),
            str(source),
            *headers,
            str(library),
            f"-Wl,-rpath,{folder}",
        ]
        subprocess.run(["g++", *WARNINGS, *flags, "-pthread", *program], check=True)


def run(program: Path, test: str, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DROPLET_")}
    command = [str(program), test]
    return subprocess.run(command, env=environment | settings, capture_output=True, text=True, timeout=120)


MANY = pytest.mark.deep("sanitizers", "the same under ThreadSanitizer; test_standalone.py has AddressSanitizer")


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=() if name == "threads" else MANY) for name in SANITIZERS]
)
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(f"droplet-{request.param}")
    build(folder, SANITIZERS[request.param])
    return folder


@pytest.mark.parametrize("mode", ["0", "1"], ids=["sync", "async"])
@pytest.mark.parametrize(
    "test",
    [f"memory_tests:{test}" for test in MEMORY_TESTS] + [f"stream_tests:{test}" for test in STREAM_TESTS],
)
def test_runtime(programs: Path, test: str, mode: str) -> None:
    program, name = test.split(":")
    result = run(programs / program, name, {"DROPLET_ASYNC": mode} | SETTINGS.get(name, {}))
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("mode", ["0", "1"], ids=["sync", "async"])
@pytest.mark.parametrize("threads", ["1", "2", "3", "8"])
@pytest.mark.parametrize("test", THREAD_TESTS)
def test_threads(programs: Path, test: str, threads: str, mode: str) -> None:
    result = run(programs / "thread_tests", test, {"DROPLET_THREADS": threads, "DROPLET_ASYNC": mode})
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("mode", ["0", "1"], ids=["sync", "async"])
@pytest.mark.parametrize("test", FABRIC_TESTS)
def test_fabric(programs: Path, test: str, mode: str) -> None:
    result = run(programs / "fabric_tests", test, {"DROPLET_ASYNC": mode})
    assert result.returncode == 0, result.stderr


def test_every_test_of_the_programs_is_run(programs: Path) -> None:
    listed = {
        name
        for program in PROGRAMS
        for name in subprocess.run([programs / program], capture_output=True, text=True, check=True).stdout.split()
    }
    alone = {"host_read_of_device_memory", "bad_setting_is_reported"}
    assert listed == {*MEMORY_TESTS, *STREAM_TESTS, *THREAD_TESTS, *FABRIC_TESTS, *MEMORY_FAULTS, *alone}


def test_host_cannot_read_device_memory(programs: Path) -> None:
    result = run(programs / "memory_tests", "host_read_of_device_memory", {})
    # A plain process dies of the signal; AddressSanitizer reports it and exits.
    assert result.returncode == -11 or "SEGV" in result.stderr


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("DROPLET_DEVICES", "two", "DROPLET_DEVICES is 'two': set it to a whole number from 1 to 16"),
        ("DROPLET_DEVICES", "17", "from 1 to 16"),
        ("DROPLET_THREADS", "0", "DROPLET_THREADS is '0': set it to a whole number from 1 to 256"),
        ("DROPLET_MEMORY_MB", "4G", "DROPLET_MEMORY_MB is '4G'"),
        ("DROPLET_ASYNC", "yes", "DROPLET_ASYNC is 'yes'"),
        ("DROPLET_FAULT", "malloc:5;launch:1", "'malloc:5;launch:1' is not a fault"),
    ],
)
def test_bad_setting_says_what_to_do(programs: Path, name: str, value: str, words: str) -> None:
    result = run(programs / "memory_tests", "bad_setting_is_reported", {name: value})
    assert result.returncode == 0, result.stderr
    first, second = result.stdout.splitlines()
    assert words in first
    assert first == second


@pytest.mark.parametrize("fault", MEMORY_FAULTS)
def test_sanitizer_sees_a_kernel_beyond_its_memory(programs: Path, fault: str) -> None:
    result = run(programs / "memory_tests", fault, {})
    if "sanitized" in programs.name:
        assert "use-after-poison" in result.stderr
    elif fault != "kernel_reads_before_all_memory":  # nobody knows what lies there
        assert result.returncode == 0, result.stderr

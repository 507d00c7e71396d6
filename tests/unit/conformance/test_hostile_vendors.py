"""Libraries that do something to the process that calls them: each is a finding, in time, and the run goes on."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from diopi_conformance.cases.plan import CasePlan
from diopi_conformance.cases.selection import Selection
from diopi_conformance.commands.repro import _tried
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.process.worker_pool import Libraries, Unusable
from diopi_conformance.running.engine import Engine, RunRequest
from tests.unit.conformance.conftest import HERE, library

NEG, EXP = "neg/f32/0", "exp/f32/0"  # the function that does it, and the one after it
LIMIT = 2.0  # seconds for a case
ALSO = r"; 1 process that it had started was ended, too"
DESCRIPTORS = "the function closed the descriptors of its process"

FAULTS: dict[str, tuple[Verdict, str]] = {
    "leaves_process": (Verdict.LEAK, "each call leaves behind 1 process"),
    "leaves_process_and_crashes": (Verdict.CRASH, f"killed by SIGSEGV{ALSO}"),
    "leaves_process_and_hangs": (Verdict.TIMEOUT, f"no answer in 2 s{ALSO}"),
    "leaves_daemon": (Verdict.LEAK, "each call leaves behind 1 process"),
    "leaves_daemon_and_crashes": (Verdict.CRASH, f"killed by SIGSEGV{ALSO}"),
    "leaves_daemon_and_hangs": (Verdict.TIMEOUT, f"no answer in 2 s{ALSO}"),
    "returns_twice": (Verdict.LEAK, "each call leaves behind 1 process"),
    "kills_parent": (Verdict.CRASH, "the function ended the parent of its process: killed by SIGKILL"),
    "terminates_parent": (Verdict.CRASH, "the function ended the parent of its process: killed by SIGTERM"),
    "stops_parent": (Verdict.TIMEOUT, "no answer in 2 s"),
    "kills_group": (Verdict.CRASH, "killed by SIGKILL"),
    "stops_itself": (Verdict.TIMEOUT, "no answer in 2 s"),
    "floods_output": (Verdict.PASS, ""),
    "floods_pipes": (Verdict.CRASH, "its answer cannot be read: the function wrote to the pipe of the answers"),
    "closes_all": (Verdict.CRASH, DESCRIPTORS),
    "closes_all_and_hangs": (Verdict.CRASH, DESCRIPTORS),
    "closes_input": (Verdict.CRASH, DESCRIPTORS),
    "replaces_pipes": (Verdict.CRASH, DESCRIPTORS),
    "changes_folder": (Verdict.FAIL, "the call changes the working folder of its process"),
    "changes_mask": (Verdict.FAIL, "the call changes the file mode mask of its process"),
    "handles_signals": (Verdict.FAIL, "the call changes signal handlers of its process"),
    "ignores_signals": (Verdict.FAIL, "the call changes signal handlers of its process"),
    "ignores_signals_and_hangs": (Verdict.TIMEOUT, "no answer in 2 s"),
    "changes_environment": (Verdict.FAIL, "the call changes environment variables of its process"),
    "clears_environment": (Verdict.FAIL, "the call changes environment variables of its process"),
    "replaces_program": (Verdict.CRASH, "the process was ended with code 0"),
    "exits": (Verdict.CRASH, "the process was ended with code 0"),
    "throws_number": (Verdict.CRASH, "killed by SIGABRT: an int left the function"),
    "tells_much": (Verdict.FAIL, r"status 1: e{2000}\.\.\. \(1046576 more bytes\)"),
    "tells_bytes": (Verdict.FAIL, r"status 1: caf\ufffd \ufffd \\x1b\[31m red"),
    "ends_thread": (Verdict.CRASH, r"killed by SIGABRT|the process was ended with code \d+"),
}


@pytest.fixture
def hostile(runtime: Path, plan: CasePlan, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Outcome]]:
    """Runs the cases of a vendor that does something to its process; outcomes by case."""
    vendor = library("libhostile.so", [HERE / "hostile_vendor.cpp"])

    def outcomes(fault: str) -> dict[str, Outcome]:
        monkeypatch.setenv("HOSTILE", fault)
        found: dict[str, Outcome] = {}
        libraries = Libraries(runtime=runtime, vendor=vendor)
        run = RunRequest(plan=plan, cases=Selection(ids=(NEG, EXP)).of(plan), libraries=libraries, time_limit=LIMIT)
        Engine(run, lambda outcome: found.update({outcome.id: outcome})).execute()
        return found

    return outcomes


@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_function_does_to_its_process_is_its_own_finding(
    hostile: Callable[[str], dict[str, Outcome]], fault: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before, begun = set(psutil.pids()), time.monotonic()
    outcomes = hostile(fault)
    assert time.monotonic() - begun < 30
    verdict, message = FAULTS[fault]
    assert {case: outcome.verdict for case, outcome in outcomes.items()} == {NEG: verdict, EXP: Verdict.PASS}
    assert re.fullmatch(message, outcomes[NEG].message), outcomes[NEG].message
    assert [left for left in set(psutil.pids()) - before if _is_ours(left)] == []
    assert len(capfd.readouterr().err) < 3 << 20


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("dies_loading", "loading the library ended the worker: killed by SIGABRT"),
        ("exits_loading", "loading the library ended the worker: the process was ended with code 0"),
        ("is_killed_loading", "loading the library ended the worker: killed by SIGKILL"),
        ("closes_all_loading", "loading the library ended the worker: the process was ended with code 1"),
    ],
)
def test_a_library_that_ends_the_process_that_loads_it_is_unusable(
    hostile: Callable[[str], dict[str, Outcome]], fault: str, message: str
) -> None:
    with pytest.raises(Unusable) as error:
        hostile(fault)
    assert str(error.value) == message


def test_a_worker_that_others_kill_while_it_loads_is_replaced(
    hostile: Callable[[str], dict[str, Outcome]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTILE_ONCE", str(tmp_path / "killed"))
    assert [outcome.verdict for outcome in hostile("is_killed_once").values()] == [Verdict.PASS] * 2
    assert (tmp_path / "killed").is_dir()


DAMAGED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut off": (lambda content: content[: len(content) // 2], "loading the library ended the worker: killed by SIGBUS"),
    "empty": (lambda content: b"", ".*file too short"),
    "text": (lambda content: b"hello " * 100, ".*invalid ELF header"),
    "of another machine": (
        lambda content: content[:18] + b"\xff\xff" + content[20:],
        ".*cannot open shared object file.*",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_that_is_no_library_is_unusable(runtime: Path, plan: CasePlan, tmp_path: Path, name: str) -> None:
    change, message = DAMAGED[name]
    damaged = tmp_path / "libdamaged.so"
    damaged.write_bytes(change(library("libhostile.so", [HERE / "hostile_vendor.cpp"]).read_bytes()))
    cases = Selection(ids=(EXP,)).of(plan)
    run = RunRequest(plan=plan, cases=cases, libraries=Libraries(runtime=runtime, vendor=damaged), time_limit=LIMIT)
    with pytest.raises(Unusable) as error:
        Engine(run, lambda _: None).execute()
    assert re.fullmatch(message, str(error.value)), str(error.value)


def test_a_runtime_of_another_version_is_unusable(plan: CasePlan, tmp_path: Path) -> None:
    (tmp_path / "other.cpp").write_text("int nothing;\n")
    other = library("libother.so", [tmp_path / "other.cpp"])
    libraries = Libraries(runtime=other, vendor=other)
    with pytest.raises(Unusable) as error:
        Engine(
            RunRequest(plan=plan, cases=Selection(ids=(EXP,)).of(plan), libraries=libraries), lambda _: None
        ).execute()
    told = "is not the test runtime of this version: it lacks 'standalone_last_error'; build it again"
    assert str(error.value) == f"{other} {told}"


def test_a_copy_of_the_runner_that_is_killed_leaves_a_report(runtime: Path, plan_path: Path, tmp_path: Path) -> None:
    shutil.copy(library("libhostile.so", [HERE / "hostile_vendor.cpp"]), tmp_path / "libdiopi_impl.so")
    command = [sys.executable, "-m", "diopi_conformance", "run", "--vendor", "v", "--plan", str(plan_path)]
    places = ["--libraries", str(tmp_path), "--runtime", str(runtime), "--out", str(tmp_path / "report.json")]
    with subprocess.Popen(
        [*command, *places, "--jobs", "2", "--quiet"],
        env={**os.environ, "HOSTILE": "stops_itself"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        runner = psutil.Process(run.pid)
        while not any("process.worker" in " ".join(child.cmdline()) for child in runner.children(recursive=True)):
            assert run.poll() is None
            time.sleep(0.05)
        runner.children()[0].kill()
        _, told = run.communicate(timeout=60)
    assert run.returncode == 1
    assert told == "a process of the run was killed by SIGKILL; the report holds what ran, --resume goes on\n"
    assert json.loads((tmp_path / "report.json").read_text())["planned"] > 64


def test_processes_that_were_left_behind_fail_the_run_at_its_end(
    runtime: Path, plan: CasePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTILE", "leaves_daemon")
    libraries = Libraries(runtime=runtime, vendor=library("libhostile.so", [HERE / "hostile_vendor.cpp"]))
    run = RunRequest(plan=plan, cases=Selection(ids=(NEG,)).of(plan), libraries=libraries, time_limit=LIMIT)
    engine = Engine(run, lambda _: None)
    engine.execute()
    (told,) = engine.leaks
    assert re.fullmatch(r"the worker ended; 1\d processes that it had started were ended, too", told)


def test_a_written_file_is_tried_in_time_whatever_it_leaves_behind(tmp_path: Path) -> None:
    leaving = "import os, time\nif os.fork() == 0: time.sleep(20)\nprint('said')\n"
    (tmp_path / "leaves.py").write_text(leaving)
    (tmp_path / "hangs.py").write_text(leaving + "time.sleep(600)\n")
    begun = time.monotonic()
    assert _tried(tmp_path / "leaves.py", 60) == (0, "said")
    assert _tried(tmp_path / "hangs.py", 1) == (-1, "nothing in 1 s")
    assert time.monotonic() - begun < 15


def _is_ours(pid: int) -> bool:
    try:
        return psutil.Process(pid).environ().get("HOSTILE") is not None
    except psutil.Error:
        return False

"""Droplet under AddressSanitizer, UBSan and LeakSanitizer: conformance cases have no finding, and one would be seen.

Under AddressSanitizer the chip marks the memory around each block, so a kernel that leaves its tensor ends the case.
Faults of memory are planted into kernels of twelve families: each is seen, and named with its kernel and its case.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from diopi_conformance.cases.plan import Case, CasePlan, read_plan
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.process.worker_pool import PRELOAD, Libraries
from diopi_conformance.running.engine import Engine, RunRequest
from tests.e2e.conftest import ROOT, Built
from tests.e2e.memory_faults import CHOICE, FAULTS, KERNELS

RUNTIME = ROOT / "vendors" / "droplet" / "runtime"
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++"),
    pytest.mark.deep(
        "sanitizers",
        "the runner looks at the guard bytes around each tensor of every case, and fresh memory is filled with NaN",
    ),
]


@pytest.mark.parametrize(
    ("asynchronous", "selected", "fewest"),
    [
        ("0", ("--origin", "row"), 20000),
        ("1", ("--origin", "row", "--shard", "1/4"), 5000),
        ("1", ("--origin", "model", "--shard", "1/20"), 600),
    ],
    ids=("rows", "rows-asynchronous", "models-asynchronous"),
)
def test_cases_are_clean(
    asynchronous: str, selected: tuple[str, ...], fewest: int, sanitized: Built, tmp_path: Path
) -> None:
    report = sanitized.droplet.report(tmp_path / "report.json", *selected, DROPLET_ASYNC=asynchronous)
    bad = [(o["id"], o["message"]) for o in report["outcomes"] if o["verdict"] != "pass"]
    assert bad == []
    assert report["leaks"] == []
    assert report["exit"] == 0 and report["counts"]["pass"] > fewest


@pytest.mark.parametrize("outside", [False, True])
def test_a_kernel_that_leaves_its_memory_is_caught(outside: bool, sanitized: Built, tmp_path: Path) -> None:
    program, libraries = tmp_path / "outside", sanitized.folder / "lib"
    command = ["g++", "-std=c++17", *SANITIZE, f"-I{RUNTIME}", "-o", str(program)]
    command += [
        str(Path(__file__).with_name("outside.cpp")),
        f"-L{libraries}",
        f"-Wl,-rpath,{libraries}",
        "-ldroplet_rt",
    ]
    subprocess.run(command, check=True)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    arguments = ["outside"] if outside else []
    done = subprocess.run([str(program), *arguments], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == outside
    assert ("AddressSanitizer: use-after-poison" in done.stderr) == outside


@pytest.fixture(scope="module")
def plan() -> CasePlan:
    return read_plan(ROOT / "generated" / "droplet" / "conformance" / "plan.json")


def _first_case(plan: CasePlan, function: str) -> Case:
    """Of float32 tensors without gaps that have elements."""
    return next(
        case
        for case in plan.cases
        if case.function == function and case.elements.startswith("f32") and re.fullmatch(r"[^/]+/[^/]+/\d+", case.id)
    )


@pytest.fixture
def judged(planted: Path, plan: CasePlan, sanitized: Built, monkeypatch: pytest.MonkeyPatch):
    """The outcome of the first case of each kernel, by source, with a fault planted in each."""

    def judge(fault: str) -> dict[str, Outcome]:
        monkeypatch.setenv(CHOICE, fault)
        monkeypatch.setenv(PRELOAD, sanitized.preload)
        cases = {source: _first_case(plan, kernel[-1]) for source, kernel in KERNELS.items()}
        outcomes: list[Outcome] = []
        libraries = Libraries(runtime=planted / "libdiopirt.so", vendor=planted / "libdiopi_impl.so")
        run = RunRequest(plan=plan, cases=tuple(cases.values()), libraries=libraries, time_limit=300.0)
        Engine(run, outcomes.append).execute()
        by_id = {outcome.id: outcome for outcome in outcomes}
        return {source: by_id[case.id] for source, case in cases.items()}

    return judge


def test_without_a_fault_the_kernels_pass(judged) -> None:
    assert {source: (o.verdict, o.message) for source, o in judged("").items()} == dict.fromkeys(
        KERNELS, (Verdict.PASS, "")
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_every_memory_fault_is_seen_and_named(fault: str, judged) -> None:
    for source, outcome in judged(fault).items():
        assert outcome.verdict is Verdict.CRASH, (source, outcome)
        assert re.search(
            rf"AddressSanitizer: use-after-poison \S*\b{Path(source).name}\.cpp:\d+", outcome.message
        ), outcome


def test_a_read_of_memory_that_nobody_wrote_is_seen(judged) -> None:
    for source, outcome in judged("read unwritten").items():
        assert outcome.verdict is Verdict.FAIL, (source, outcome)
        assert outcome.message.startswith("on other bytes in memory that nobody wrote: "), outcome

"""Stand-alone files of the simulated chip's cases: every way to pass an argument, and every element type.

`DIOPI_BUILD` names another build than build/droplet.
"""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from diopi_conformance.cases.plan import Case, CasePlan, read_plan
from diopi_conformance.expected.expectations import SCRATCH
from diopi_conformance.judgement.checks import order_is_free
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.prepare import prepare
from diopi_conformance.process.worker_pool import Libraries
from diopi_conformance.repro.example import Unwritable
from diopi_conformance.repro.writer import Destination, Files, write_files
from diopi_conformance.running.case_worker import CaseWorker, RunRequest

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("DIOPI_BUILD", ROOT / "build" / "droplet")) / "lib"
PLAN = ROOT / "generated" / "droplet" / "conformance" / "plan.json"
LIBRARIES = Libraries(runtime=BUILT / "libdiopirt.so", vendor=BUILT / "libdiopi_impl.so")

pytestmark = pytest.mark.skipif(not (PLAN.exists() and LIBRARIES.vendor.exists()), reason="droplet is not built")


@pytest.fixture(scope="module")
def plan() -> CasePlan:
    return read_plan(PLAN)


@pytest.fixture
def worker(plan: CasePlan) -> Iterator[CaseWorker]:
    found = CaseWorker(RunRequest(plan=plan, cases=(), libraries=LIBRARIES))
    yield found
    found.process.stop()


def traits(plan: CasePlan, case: Case) -> set[tuple[str, ...]]:
    """What a file must be able to say of the case."""
    function = plan.functions[case.function]
    found: set[tuple[str, ...]] = {("check", function.check), ("view", case.view), ("fill", case.fill)}
    for param in function.params:
        found.add((param.passing, param.role))
        if param.name in case.dtypes:
            found.add((param.role, case.dtypes[param.name]))
    return found


def beyond_files(plan: CasePlan, case: Case) -> bool:
    """Whether a number that the function writes may be any, or its order: no file is written of such a case."""
    written = [p.name for p in plan.functions[case.function].params if p.role == "host"]
    prepared = prepare(plan, case)
    return order_is_free(prepared) or any(prepared.expected[name] is SCRATCH for name in written)


def varied(plan: CasePlan, worker: CaseWorker) -> list[tuple[Case, Outcome]]:
    """Passing cases that have every trait together, few of them."""
    cases = [case for case in plan.cases if not case.models]
    random.Random(0).shuffle(cases)
    missing = set().union(*(traits(plan, case) for case in cases))
    chosen: list[tuple[Case, Outcome]] = []
    for case in cases:
        if missing & traits(plan, case):
            outcome = next(iter(worker.outcomes([case])))
            if outcome.verdict is Verdict.PASS and not beyond_files(plan, case):
                chosen.append((case, outcome))
                missing -= traits(plan, case)
    return chosen


def written(plan: CasePlan, case: Case, outcome: Outcome, folder: Path) -> Files:
    place = Destination(folder=folder, libraries=LIBRARIES, include=ROOT / "generated" / "include", seconds=60)
    return write_files(plan, prepare(plan, case), outcome, place)


def answers(files: Files, **environment: str) -> list[tuple[int, str]]:
    """Exit codes and outputs of the Python and the C file."""
    program = files.c.with_suffix("")
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'generated' / 'include'}"]
    built = subprocess.run(
        ["gcc", *flags, str(files.c), "-o", str(program), "-ldl", "-lm"], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    commands = ([sys.executable, "-I", "-S", str(files.python)], [str(program)])
    found = [
        subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
        for command in commands
    ]
    return [(done.returncode, done.stdout + done.stderr) for done in found]


@pytest.mark.parametrize(
    ("symbol", "argument", "value"),
    [
        ("diopiTopk", "sorted", False),
        ("diopiMinAreaPolygonsMmcv", "sorted", None),
        ("diopiDynamicPointToVoxelMmcv", "sorted", None),
        ("diopiHardVoxelizeMmcv", "deterministic", False),
    ],
)
def test_no_file_is_written_where_the_order_is_free(
    plan: CasePlan, worker: CaseWorker, tmp_path: Path, symbol: str, argument: str, value: bool | None
) -> None:
    case = next(c for c in plan.cases if c.function == symbol and c.values.get(argument) is value)
    (outcome,) = worker.outcomes([case])
    assert outcome.verdict is Verdict.PASS
    with pytest.raises(Unwritable, match="the order of its results is free, which a stand-alone file cannot judge"):
        written(plan, case, outcome, tmp_path)
    assert not list(tmp_path.iterdir())


def test_files_of_right_cases_find_nothing(plan: CasePlan, worker: CaseWorker, tmp_path: Path) -> None:
    chosen = varied(plan, worker)
    assert len(chosen) >= 15
    told = {case.id: answers(written(plan, case, outcome, tmp_path)) for case, outcome in chosen}
    assert {case: text for case, text in told.items() if text != [(0, "right\n")] * 2} == {}


def test_files_notice_other_results(plan: CasePlan, tmp_path: Path) -> None:
    """Inputs of one seed and results of another: whatever the elements, the file must say so."""
    names = ("add/f32/0", "add/i64/0", "add/bf16/0", "le/f32/0", "sort/f32/0", "nonzero/f32/0")
    complex_case = next(case for case in plan.cases if case.dtypes.get("out") in ("c64", "c128") and not case.change)
    for case in (*(case for case in plan.cases if case.id in names), complex_case):
        outcome = Outcome(id=case.id, function=case.function, op="", verdict=Verdict.PASS)
        files = written(plan, case, outcome, tmp_path)
        other = written(plan, replace(case, seed=1), outcome, tmp_path / "other")
        mixed = mixture(files.python.read_text(encoding="utf-8"), other.python.read_text(encoding="utf-8"))
        files.python.write_text(mixed, encoding="utf-8")
        done = subprocess.run([sys.executable, str(files.python)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.startswith("FAILS: ")) == (1, True), (case.id, done.stdout)


def mixture(inputs: str, results: str) -> str:
    """A Python file with the storages of one and the expected results of another."""
    parts, others = inputs.split("        before="), results.split("        before=")
    assert len(parts) == len(others) > 1
    return "        before=".join(
        part.partition("        values=")[0] + "        values=" + other.partition("        values=")[2] if i else part
        for i, (part, other) in enumerate(zip(parts, others, strict=True))
    )


def test_a_chip_that_fails_is_told_of(plan: CasePlan, tmp_path: Path) -> None:
    case = next(case for case in plan.cases if case.id == "add/f32/0")
    files = written(plan, case, Outcome(id=case.id, function="", op="", verdict=Verdict.PASS), tmp_path)
    for code, text in answers(files, DROPLET_FAULT="launch:1"):
        assert code == 1 and "DROPLET_FAULT" in text

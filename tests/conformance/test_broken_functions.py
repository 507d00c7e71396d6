"""A library that crashes in five functions and hangs in two: these seven are named, all others are judged."""

import os
import shutil
import subprocess
from itertools import groupby
from pathlib import Path

import pytest

from diopi_conformance.cases.plan import Case, CasePlan, read_plan
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.process.worker_pool import Libraries
from diopi_conformance.running.engine import Engine, RunRequest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
LIBRARIES = (Path(os.environ.get("DIOPI_BUILD", ROOT / "build" / "droplet")) / "lib").resolve()
PLAN = ROOT / "generated" / "droplet" / "conformance" / "plan.json"

CRASHING = {"diopiRelu", "diopiTanh", "diopiSigmoid", "diopiSilu", "diopiExp"}
HANGING = {"diopiLog", "diopiSqrt"}
HEALTHY = {"diopiAdd", "diopiSoftmax", "diopiMm", "diopiSort", "diopiSum", "diopiAbs", "diopiFloor", "diopiCat"}

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or not (PLAN.exists() and (LIBRARIES / "libdiopi_impl.so").exists()),
    reason="droplet is not built, or there is no g++",
)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Libraries:
    """Droplet's library with seven of its functions hidden behind broken ones."""
    target = tmp_path_factory.mktemp("faulty") / "libdiopi_impl.so"
    words = ["g++", "-std=c++17", "-O0", "-w", "-shared", "-fPIC", f"-I{ROOT / 'generated' / 'include'}"]
    words += ["-Wl,-soname,libfaulty.so", f"-Wl,-rpath,{LIBRARIES}", str(HERE / "faulty.cpp")]
    words += ["-Wl,--no-as-needed", str(LIBRARIES / "libdiopi_impl.so"), "-Wl,--allow-shlib-undefined"]
    subprocess.run([*words, "-o", str(target)], check=True)
    return Libraries(runtime=LIBRARIES / "libdiopirt.so", vendor=target)


def first_cases(plan: CasePlan, functions: set[str], count: int) -> list[Case]:
    """`count` cases of each function, in the order of the plan."""
    wanted = (case for case in plan.cases if case.function in functions)
    return [case for _, group in groupby(wanted, lambda c: c.function) for case in list(group)[:count]]


@pytest.mark.parametrize("jobs", [1, 2])
def test_only_the_broken_functions_are_lost(faulty: Libraries, jobs: int) -> None:
    plan = read_plan(PLAN)
    cases = first_cases(plan, CRASHING | HANGING | HEALTHY, 2)
    found: dict[str, Outcome] = {}
    run = RunRequest(plan=plan, cases=cases, libraries=faulty, jobs=jobs, time_limit=1.0)
    Engine(run, lambda outcome: found.update({outcome.id: outcome})).execute()
    assert set(found) == {case.id for case in cases}
    verdicts = {(outcome.function, outcome.verdict) for outcome in found.values()}
    assert verdicts == {
        *((function, Verdict.CRASH) for function in CRASHING),
        *((function, Verdict.TIMEOUT) for function in HANGING),
        *((function, Verdict.PASS) for function in HEALTHY),
    }
    said = {outcome.function: outcome.message for outcome in found.values()}
    assert "SIGSEGV" in said["diopiRelu"] and "SIGABRT" in said["diopiTanh"] and "SIGSEGV" in said["diopiExp"]

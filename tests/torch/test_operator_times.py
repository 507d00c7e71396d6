"""The benchmark of operators times what it says: the same call on both devices, rows made long, falls told apart."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ROOT / "build" / "droplet" / "lib"
PLAN = ROOT / "generated" / "droplet" / "conformance" / "plan.json"

pytestmark = pytest.mark.skipif(
    not (PLAN.exists() and any(LIBRARIES.glob("libtorch_dipu*"))), reason="droplet is not built with its backend"
)


def times(only: str, **further: str) -> list[dict[str, object]]:
    """What operator_times.py prints for the functions whose symbol holds `only`."""
    command = [sys.executable, str(ROOT / "benchmarks" / "operator_times.py"), str(PLAN), "--only", only]
    environment = {**os.environ, "DIPU_LIBRARY_DIR": str(LIBRARIES), "PYTHONPATH": str(ROOT / "benchmarks")}
    environment.update(further)
    done = subprocess.run(
        [*command, "--rounds", "2"], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_an_operator_its_gradient_and_a_call_that_falls_back() -> None:
    told = times("Cholesky", DIPU_FORCE_FALLBACK_OPS_LIST="linalg_solve_triangular")
    by_function = {line["function"]: line for line in told}
    assert set(by_function) == {"diopiCholesky", "diopiCholeskyBackward"}
    assert by_function["diopiCholesky"]["fell"] == []
    rounds = by_function["diopiCholesky"]["rounds"]
    assert isinstance(rounds, dict) and set(rounds) == {"dipu", "cpu"}
    assert all(len(each) == 2 and min(each) > 0 for each in rounds.values())
    # where the backend falls back the call is named, and not timed
    assert by_function["diopiCholeskyBackward"]["fell"] != []
    assert by_function["diopiCholeskyBackward"]["rounds"] == {"dipu": [], "cpu": []}


def test_rows_become_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from operator_cases import LEAST, ROW, large_cases

    from diopi_conformance.cases.plan import read_plan

    found = large_cases(read_plan(PLAN))
    models = [case for _, case in found if case.models]
    rows = [case for _, case in found if not case.models]
    assert len({case.id for _, case in found}) == len(found) and len(rows) >= 300
    assert all(case.largest >= LEAST for case in models)
    assert sum(case.largest >= ROW for case in rows) > 0.95 * sum(case.largest > 0 for case in rows)

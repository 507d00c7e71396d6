"""Droplet with every function composed that can be: the conformance cases of those functions pass all the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.passes.choose_compositions import reachable
from diopigen.passes.derive_compositions import compositions
from diopigen.passes.match_call import contract_of
from diopigen.project import Project

ROOT = Path(__file__).resolve().parents[2]
# Of which dtypes a composition is less exact than the suite asks of a function: its parts round to the output's type,
# where a kernel of its own rounds once.
HALVES = {"f16", "bf16"}
LESS_EXACT = {
    "diopiSilu": {"f32"},  # sigmoid(-88) is denormal, which droplet takes for 0
    "diopiSiluInp": {"f32"},
    "diopiSiluBackward": {"f32"},
    "diopiTanh": {"f32", "f64"},  # a difference of exponentials cancels near 0
    "diopiTanhInp": {"f32", "f64"},
    "diopiAddcmul": HALVES,
    "diopiAddcmulInp": HALVES,
    "diopiAddmm": HALVES,
    "diopiBaddbmm": HALVES,
    "diopiBaddbmmInp": HALVES,
    "diopiLinear": HALVES,
}
PRIMITIVES = ("diopiCastDtype", "diopiCopyInp", "diopiFill")  # what compositions are made of in the end


@pytest.fixture(scope="module")
def composable() -> tuple[str, ...]:
    """The functions that can all be composed at once: what is left of droplet's own kernels serves their parts."""
    project, diagnostics = Project(root=ROOT), Diagnostics()
    program = pipeline.contract(project, diagnostics)
    assert program is not None
    program = pipeline.with_vendor(program, project, "droplet", diagnostics)
    assert not diagnostics.failed
    contract = contract_of(program.functions)
    found = {f.symbol: tuple(compositions(f, contract, program.dtypes)) for f in program.functions}
    ways = {symbol: several for symbol, several in found.items() if several and symbol not in PRIMITIVES}
    served = {plan.symbol for plan in program.plans}
    taken: list[str] = []
    for symbol in ways:
        asked = [*taken, symbol]
        if len(reachable({s: ways[s] for s in asked}, served - set(asked))) == len(asked):
            taken = asked
    return tuple(taken)


def test_most_of_what_has_a_composition_can_be_composed_at_once(composable: tuple[str, ...]) -> None:
    assert len(composable) > 190


def test_composed_functions_pass_their_cases(composable: tuple[str, ...], tmp_path: Path) -> None:
    config = tmp_path / "convert_config.yaml"
    config.write_text(f"- ops: [{', '.join(composable)}]\n  implementation: composite\n", encoding="utf-8")
    out, build = tmp_path / "out", tmp_path / "build"
    settings = ("-DDIOPI_VENDOR=droplet", f"-DDIOPI_OUT={out}", f"-DDIOPI_CONVERT_CONFIG={config}")
    run("cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja", *settings)
    run("ninja", "-C", str(build), "-j2")
    report = tmp_path / "report.json"
    plan = out / "droplet" / "conformance" / "plan.json"
    command = [sys.executable, "-m", "diopi_conformance.cli", "run", "--vendor", "droplet", "--plan", str(plan)]
    command += ["--libraries", str(build / "lib"), "--out", str(report)]
    command += ["--origin", "row"]
    for symbol in composable:
        command += ["--function", symbol]
    run(*command, codes=(1,))
    found = json.loads(report.read_text(encoding="utf-8"))
    bad = [outcome for outcome in found["outcomes"] if outcome["verdict"] != "pass"]
    unexpected = [o for o in bad if not LESS_EXACT.get(o["function"], set()) & set(o["elements"].split("-"))]
    assert [(o["id"], o["message"]) for o in unexpected] == []
    assert {o["verdict"] for o in bad} == {"fail"}
    assert {o["function"] for o in bad} == set(LESS_EXACT) & {o["function"] for o in found["outcomes"]}
    assert found["planned"] > 4500 and len(bad) < found["planned"] / 40


def run(*command: str, codes: tuple[int, ...] = (0,)) -> None:
    path = os.pathsep.join((str(ROOT / "generators"), str(ROOT / "conformance")))
    environment = {**os.environ, "PYTHONPATH": path}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode in codes, ended.stdout[-4000:] + ended.stderr[-4000:]

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
    for symbol in composable:
        command += ["--function", symbol]
    run(*command)
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["counts"] == {"pass": found["planned"]}
    assert found["planned"] > 4500


def run(*command: str) -> None:
    path = os.pathsep.join((str(ROOT / "generators"), str(ROOT / "conformance")))
    environment = {**os.environ, "PYTHONPATH": path}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-4000:]

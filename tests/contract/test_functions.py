"""What the schemas give equals the contract: names, headers, order and spelling of parameters."""

import json
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.c_spelling import c_args
from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.project import Project
from tests.contract.added import OPERATORS

FACTS = {
    f["name"]: f
    for f in json.loads((Path(__file__).parent / "functions.json").read_text(encoding="utf-8"))["functions"]
}


@pytest.fixture(scope="module")
def program(checkout: Project) -> Program:
    diagnostics = Diagnostics()
    program = pipeline.run(checkout, diagnostics)
    assert not diagnostics.found
    assert program is not None
    return program


def _folded(spelling: str) -> str:
    return spelling.replace(" *", "*")


def test_every_operator_has_the_contracts_signature(program: Program) -> None:
    for function in (f for f in program.functions if f.symbol not in OPERATORS):
        fact = FACTS[function.symbol]
        assert fact["header"] == f"{function.header}.h", function.symbol
        assert [[a.type, a.name] for a in c_args(function)] == [
            [_folded(type_), name] for type_, name in fact["params"]
        ], function.symbol


def test_every_runtime_function_has_the_contracts_signature(program: Program) -> None:
    by_name = {f.name: f for f in program.runtime.functions}
    runtime = [
        f for f in FACTS.values() if f["header"] == "diopirt.h" or f["linkage"] == "DIOPI_RT_API DIOPI_ATTR_WEAK"
    ]
    assert len(runtime) == 30
    for fact in runtime:
        function = by_name[fact["name"]]
        assert function.linkage == fact["linkage"]
        assert function.returns == _folded(fact["returns"])
        assert [[p.type, p.name] for p in function.params] == [[_folded(t), n] for t, n in fact["params"]]


def test_the_training_minimum_is_there(program: Program) -> None:
    assert len(program.functions) >= 120

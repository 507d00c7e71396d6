"""What a `kernel:` line says is what PyTorch computes, in every float32 row of the schemas and in int64 for bits."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from diopi_conformance.cases.plan import Case, CasePlan, plan_of
from diopi_conformance.prepare import Prepared, prepare
from diopi_conformance.values.inputs import UnsoundCase
from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.model.expr import Name, Number
from diopigen.model.op import Function
from diopigen.model.program import Program
from diopigen.project import Project
from diopigen.targets import conformance
from tests.unit.schemas.evaluate import evaluate


@pytest.fixture(scope="module")
def program(checkout: Project) -> Program:
    diagnostics = Diagnostics()
    return pipeline.run(checkout, diagnostics, pipeline.Stage.ATEN, pipeline.Stage.CASES)


@pytest.fixture(scope="module")
def plan(program: Program) -> CasePlan:
    def render(template: str, view: object) -> str:
        raise AssertionError(f"the plan is JSON and needs no '{template}' for {view}")

    (output,) = conformance.outputs(program, render)
    return plan_of(json.loads(output.text))


def _taken(plan: CasePlan, case: Case) -> bool:
    """Types in which no value wraps or is rounded: float32, and int64 where the function has no floats."""
    inputs = [p.name for p in plan.functions[case.function].params if p.role in ("in", "inout") and p.is_tensor]
    return case.view == "contiguous" and all(case.dtypes[name] in ("f32", "i64", "bool") for name in inputs)


def _names(prepared: Prepared, function: Function) -> dict[str, Any]:
    """The function's arguments as tensors of float64, integers and bools where the expression works on bits."""
    found: dict[str, Any] = {}
    for param in function.params:
        value = prepared.values.get(param.name)
        if isinstance(value, np.ndarray):
            tensor = torch.from_numpy(np.array(value))
            found[param.name] = tensor if "bitwise" in function.op else tensor.double()
        elif isinstance(value, bool | int | float):
            found[param.name] = torch.tensor(value, dtype=torch.int64 if "bitwise" in function.op else torch.float64)
        else:
            found[param.name] = value
    return found


def _differs(prepared: Prepared, function: Function) -> bool:
    assert function.kernel is not None
    (written,) = [p.name for p in function.params if p.role.value in ("out", "inout")]
    want = torch.as_tensor(np.array(prepared.expected[written])).double()
    got = torch.broadcast_to(evaluate(function.kernel, _names(prepared, function)).double(), want.shape)
    if prepared.case.dtypes[written] == "bool":
        got = (got != 0).double()
    elif prepared.case.dtypes[written] == "i64":
        got = torch.where(torch.isfinite(got), torch.trunc(got), 0.0)
    return not torch.allclose(got, want, rtol=1e-6, atol=1e-9, equal_nan=True)


def test_every_kernel_line_computes_what_pytorch_does(program: Program, plan: CasePlan) -> None:
    functions = {f.symbol: f for f in program.functions if f.kernel is not None}
    wrong, seen = [], set()
    for case in plan.cases:
        function = functions.get(plan.functions[case.function].symbol)
        if function is None or not _taken(plan, case):
            continue
        try:
            prepared = prepare(plan, case)
        except UnsoundCase:
            continue
        seen.add(function.symbol)
        if _differs(prepared, function):
            wrong.append(case.id)
    assert wrong == []
    assert seen == set(functions)


def test_a_wrong_line_is_seen(program: Program, plan: CasePlan) -> None:
    function = next(f for f in program.functions if f.symbol == "diopiRelu")
    case = next(c for c in plan.cases if c.function == "diopiRelu" and c.dtypes["input"] == "f32")
    prepared = prepare(plan, case)
    assert not _differs(prepared, function)
    assert evaluate(Number(text="0.5"), {}) == 0.5
    assert torch.equal(evaluate(Name(name="input"), {"input": torch.ones(2)}), torch.ones(2))
    assert _differs(prepared, _with_kernel(function))


def _with_kernel(function: Function) -> Function:
    return replace(function, kernel=Name(name="input"))

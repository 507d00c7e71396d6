"""What the schemas say of each parameter that C does not: its role, its elements, and the shape of what is written."""

import json
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.model.op import Form, Function, Op, Param, Role
from diopigen.model.program import Program
from diopigen.model.type import ENUMERATORS, Element, Fixed, Promote, Var, shape_names
from diopigen.project import Project
from diopigen.vocabulary.dtype import DType
from tests.contract.added import OPERATORS
from tools.schema_figures import figures, percentile

FACTS = {
    f["name"]: f
    for f in json.loads((Path(__file__).parent / "functions.json").read_text(encoding="utf-8"))["functions"]
}
ALLOCATED = (Role.OUT, Role.CALLEE_OUT)
MOST_TOPICS = 50  # more would be a list of operators, not a table of contents


@pytest.fixture(scope="module")
def program(checkout: Project) -> Program:
    diagnostics = Diagnostics()
    program = pipeline.run(checkout, diagnostics)
    assert not diagnostics.found
    assert program is not None
    return program


def tensors(program: Program) -> Iterator[tuple[Function, Param]]:
    """Every tensor parameter of every function."""
    return ((f, p) for f in program.functions for p in f.params if p.tensor is not None)


def elements(element: Element, function: Function) -> tuple[DType, ...]:
    """What the parts of an element may be; empty if one of them may be nothing."""
    match element:
        case Var():
            return next((of.members for name, of in function.elements if name == element.name), ())
        case Fixed():
            return (element.dtype,)
        case Promote():
            found = [elements(part, function) for part in element.elements]
            return tuple(t for part in found for t in part) if all(found) else ()
        case _:
            return elements(element.element, function)


def shaped(op: Op, function: Function, param: Param) -> bool:
    """Whether a rule gives the shape: one of its own, or, for a gradient, that of its argument."""
    if param.shape is not None:
        ignored = {name for clause in op.aten for name in clause.ignore}
        return set(shape_names(param.shape)) <= {a.name for a in (*op.args, *op.outs)} | ignored
    return function.form is Form.BACKWARD and param.arg.removeprefix("grad_") in {a.name for a in op.args}


def test_every_function_of_the_contract_is_described(program: Program) -> None:
    described = {f.symbol for f in program.functions} | {f.name for f in program.runtime.functions}
    assert sorted(FACTS.keys() - described) == []
    assert len(program.functions) == 538 + len(OPERATORS)


def test_every_tensor_has_elements(program: Program) -> None:
    bare = [f"{f.symbol}.{p.name}" for f, p in tensors(program) if not elements(p.tensor.element, f)]
    assert bare == []


def test_every_tensor_that_is_allocated_has_a_shape(program: Program) -> None:
    ops = {op.name: op for op in program.ops}
    bare = [f"{f.symbol}.{p.name}" for f, p in tensors(program) if p.role in ALLOCATED and not shaped(ops[f.op], f, p)]
    assert bare == []


def test_the_dtype_of_what_is_allocated_follows_from_an_input(program: Program) -> None:
    """Else an adaptor could not undo a cast of it."""
    for function in program.functions:
        given = [
            p.tensor.element for p in function.ins if p.tensor and p.tensor.count is None and not p.tensor.optional
        ]
        for param in function.params:
            if param.role is Role.CALLEE_OUT and param.tensor is not None:
                element = param.tensor.element
                assert isinstance(element, Fixed) or element in given, (function.symbol, param.name)


def test_a_role_fits_the_handle(program: Program) -> None:
    """What is written has a mutable handle; what is only read has a const one, or the schema spells that it has not."""
    wrong = []
    for function, param in tensors(program):
        if function.symbol in OPERATORS:
            continue
        spelled = dict((name, type_) for type_, name in FACTS[function.symbol]["params"])[param.name]
        const = "diopiConstTensorHandle_t" in spelled
        if const is not (param.role is Role.IN) and param.c is None:
            wrong.append(f"{function.symbol}.{param.name} is {param.role.value}")
    assert wrong == []


def test_only_the_function_that_allocates_leaves_a_shape_to_the_data(program: Program) -> None:
    found = {p.role for _, p in tensors(program) if p.shape is not None and re.search(r"\bany\b", str(p.shape))}
    assert found == {Role.CALLEE_OUT}


def test_every_name_in_a_doc_is_there(program: Program) -> None:
    words = {word for enum in ENUMERATORS.values() for word in enum}
    ops = {op.name for op in program.ops}
    for op in program.ops:
        known = {arg.name for arg in (*op.args, *op.outs)} | words | ops
        assert set(re.findall(r"`([A-Za-z_]\w*)`", op.doc)) <= known, op.name


def test_the_schemas_are_short(program: Program, checkout: Project) -> None:
    """The figures that tools/schema_figures.py prints."""
    found = figures(program, checkout.schemas / "ops")
    assert len(found.operators) == len(program.functions)
    assert sum(found.operators) == pytest.approx(sum(found.entries))
    assert statistics.median(found.facts) <= 12
    assert percentile(found.facts, 0.95) <= 30
    assert statistics.median(found.operators) <= 15
    assert percentile(found.operators, 0.95) <= 32
    assert found.topics <= MOST_TOPICS


def test_lines_are_counted_to_the_next_op(miniature) -> None:
    text = "# head\na:\n  doc: A.\n\n  # why\n  args: {x: Tensor<f32>}\n  out: Tensor<f32> like x\n\n# of b\n"
    text += "b:\n  doc: B.\n  args: {x: Tensor<f32>, y: Tensor<f32> | Scalar}\n  out: Tensor<f32> like x\n"
    project = miniature({"topic.yaml": text})
    found = figures(pipeline.run(project, Diagnostics()), project.schemas / "ops")
    assert (found.topics, found.entries, found.operators) == (1, (4, 4), (4.0, 2.0, 2.0))


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile(range(1, 101), 0.95) == 95
    assert percentile([7, 1, 3], 0.95) == 7

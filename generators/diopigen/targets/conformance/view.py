"""The plan as one JSON file: a line for each function and a line for each case."""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby

from diopigen.model.case import Axes, Case, View
from diopigen.model.op import Form, Function, Op
from diopigen.model.program import Program
from diopigen.records.plan import PLAN_VERSION, Json, json_value
from diopigen.targets.conformance.calls import backward_sources, params
from diopigen.targets.conformance.references import Routes, references, routes_of
from diopigen.targets.output import Output, Piece, Render


def outputs(program: Program, _render: Render) -> Iterator[Output]:
    """`conformance/plan.json`; it needs no template, JSON is its own layout."""
    vendor = program.vendor.name if program.vendor is not None else ""
    routes = routes_of(program.bindings)
    functions = [_line(f.symbol, _function(program, f, routes.get(f.symbol, ()))) for f in program.functions]
    cases = program.case_lines or case_lines(program.cases)
    parts = [
        f'{{"version": {PLAN_VERSION},',
        f'"vendor": {json.dumps(vendor)},',
        f'"dtypes": {_compact({t.name: [t.value, t.size, t.kind.value] for t in program.dtypes.types})},',
        '"functions": {\n' + ",\n".join(functions) + "\n},",
        '"cases": [\n' + ",\n".join(filter(None, cases.values())) + "\n]}",
    ]
    yield Output(path="conformance/plan.json", text="\n".join(parts) + "\n")


def pieces(program: Program, _render: Render) -> Iterator[Piece]:
    """The cases of each op."""
    lines = case_lines(program.cases)
    for op in program.ops:
        text = ",\n".join(lines[f.symbol] for f in program.forms(op.name) if f.symbol in lines)
        yield Piece(paths="conformance/plan.json", text=text)


def case_lines(cases: Iterable[Case]) -> dict[str, str]:
    """A line for each case, by the symbols of their functions, which stand together."""
    grouped = groupby(cases, lambda case: case.symbol)
    return {symbol: ",\n".join(_compact(_case(case)) for case in found) for symbol, found in grouped}


def _line(key: str, value: Json) -> str:
    return f"{json.dumps(key)}: {_compact(value)}"


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def _function(program: Program, function: Function, routes: Routes) -> Json:
    op = program.op(function.op)
    assert op is not None
    entry: dict[str, Json] = {
        "word": function.word,
        "op": op.name,
        "topic": op.topic,
        "form": function.form.value,
        "params": params(function, program.plan(function.symbol)),
        "check": op.check,
        "tolerance": {dtype: [relative, absolute] for dtype, relative, absolute in op.tolerance},
        "data": {name: str(expr) for name, expr in op.data},
        "references": references(function, routes),
    }
    if function.kernel is not None:
        entry["elementwise"] = True
    plain = _plain(program, op)
    if function.form is not Form.OUT and plain is not None:
        entry["plain"] = plain.symbol
    if function.form is Form.BACKWARD:
        entry["backward"] = backward_sources(op)
    return entry


def _plain(program: Program, op: Op) -> Function | None:
    """The op's out form, from whose reference the others can be derived."""
    return next((f for f in program.forms(op.name) if f.form is Form.OUT), None)


def _case(case: Case) -> Json:
    entry: dict[str, Json] = {
        "id": case.id,
        "function": case.symbol,
        **_axes(case.axes),
        "dtypes": {name: dtype.name for name, dtype in case.dtypes},
        "values": {name: json_value(value) for name, value in case.values},
    }
    if case.data:
        entry["data"] = {name: str(expr) for name, expr in case.data}
    if case.forward:
        entry["forward"] = {name: dtype.name for name, dtype in case.forward}
    return entry


def _axes(axes: Axes) -> dict[str, Json]:
    """What is not as usual."""
    words = {"layout": axes.layout, "view": axes.view.value, "fill": axes.fill.value, "change": axes.change}
    usual = {"view": View.CONTIGUOUS.value}
    return {name: word for name, word in words.items() if word != usual.get(name, "")}

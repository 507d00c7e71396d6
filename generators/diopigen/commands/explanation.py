"""What follows from one op, line by line, each with the line of a file that gave it."""

from collections.abc import Iterator

from diopigen.c_spelling import c_signature
from diopigen.commands.explain_conversions import conversion_lines
from diopigen.diagnostics import Span
from diopigen.model.aten import Binding
from diopigen.model.op import Function, Op
from diopigen.model.program import Program
from diopigen.model.vendor import Implementation, Origin
from diopigen.passes.vendor.choose_implementations import candidates


def find(program: Program, name: str) -> tuple[Op, tuple[Function, ...]] | None:
    """The op of a name with its functions, or the op of a function with that one."""
    op = program.op(name)
    if op is not None:
        return op, tuple(f for f in program.functions if f.op == name)
    function = program.function(name)
    owner = None if function is None else program.op(function.op)
    return None if function is None or owner is None else (owner, (function,))


def explanation(program: Program, op: Op, functions: tuple[Function, ...]) -> Iterator[str]:
    """The lines about `functions` of `op`; `program` has their cases."""
    yield f"{op.name}: {op.doc}"
    yield f"  {op.span}"
    for function in functions:
        yield ""
        yield from _function(program, op, function)
    yield ""
    yield from _bindings(program, op, functions)
    yield ""
    yield from _cases(program, functions)


def _function(program: Program, op: Op, function: Function) -> Iterator[str]:
    yield c_signature(function)
    rows = [
        (
            param.name,
            param.role.value,
            str(param.type) + (f" like {param.shape}" if param.shape is not None else ""),
            param.span,
        )
        for param in function.params
    ]
    yield from _table(rows)
    if function.kernel is not None:
        yield f"  kernel: {function.kernel}"
    plan = program.plan(function.symbol)
    if program.vendor is None:
        return
    if plan is None:
        yield f"  {program.vendor.name} does not implement it"
        return
    code = plan.implementation
    yield f"  {program.vendor.name}: {_place(code)}  {code.span}"
    if code.origin is Origin.ATEN:
        called = next(c for c in program.calls if c.symbol == function.symbol)
        yield from (f"    calls aten::{call.overload.name}" for call in called.calls)
    composition = next((c for c in program.compositions if c.symbol == function.symbol), None)
    if composition is not None:
        yield f"    calls {', '.join(composition.parts)}"
    yield from _others(program, function, code)
    yield from conversion_lines(program, function, plan)


def _others(program: Program, function: Function, chosen: Implementation) -> Iterator[str]:
    """The implementations that do not serve, and the rule that chose another."""
    assert program.vendor is not None
    for rule in program.vendor.rules:
        if rule.implementation is not None and any(symbol == function.symbol for symbol, _ in rule.functions):
            name, span = rule.implementation
            yield f"    chosen by implementation: {name}  {span}"
    for other in candidates(program.vendor, program).get(function.symbol, ()):
        if other != chosen:
            yield f"    rather than {_place(other)}  {other.span}"


def _bindings(program: Program, op: Op, functions: tuple[Function, ...]) -> Iterator[str]:
    symbols = {f.symbol for f in functions}
    bindings = [b for b in program.bindings if set(b.symbols) & symbols or (b.op == op.name and not b.symbols)]
    if not bindings:
        yield "no ATen operator is bound"
    for binding in bindings:
        yield f"aten::{binding.overload.name} ({binding.overload.provision.value})  {binding.span}"
        yield from _routes(binding)


def _routes(binding: Binding) -> Iterator[str]:
    if binding.wrapper is not None:
        yield f"  by hand in runtime_cpp/torch/ops/{binding.wrapper}.cpp"
    for route in binding.routes:
        args = ", ".join(f"{name}={source}" for name, source in route.args)
        conditions = [f"{name} {condition}" for name, condition in route.conditions]
        yield f"  {route.symbol}({args})" + (f" if {' and '.join(conditions)}" if conditions else "")


def _cases(program: Program, functions: tuple[Function, ...]) -> Iterator[str]:
    symbols = {f.symbol for f in functions}
    by_row: dict[Span, list[str]] = {}
    for case in program.cases:
        if case.symbol in symbols:
            by_row.setdefault(case.span, []).append(case.id)
    yield f"{sum(map(len, by_row.values()))} conformance cases"
    for span, ids in by_row.items():
        shown = ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
        yield f"  {span}  {shown}"


def _table(rows: list[tuple[str, str, str, Span]]) -> Iterator[str]:
    widths = [
        max((len(column) for column in columns), default=0) for columns in zip(*(row[:3] for row in rows), strict=True)
    ]
    for name, role, type_, span in rows:
        yield f"  {name:{widths[0]}}  {role:{widths[1]}}  {type_:{widths[2]}}  {span}"


def _place(code: Implementation) -> str:
    """e.g. "portable, impl::portable"; "exported" for a function outside of all namespaces."""
    return ", ".join(filter(None, (code.origin.value, code.namespace)))

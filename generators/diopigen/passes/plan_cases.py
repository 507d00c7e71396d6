"""Fills `program.cases`: every function gets its op's rows, crossed with element types and memory views.

Not the full product: every row runs once in the main type; each other type, each mixed pair and each view
runs on the first rows that allow it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from diopigen.diagnostics import Diagnostics
from diopigen.model.case import Axes, Case, Fill, View
from diopigen.model.dtype import DType, DTypes, Kind
from diopigen.model.op import Arg, CaseRow, Form, Function, Literal, Op, Param
from diopigen.model.program import Program
from diopigen.model.type import Fixed, TensorType, Value, ValueType, Var
from diopigen.passes.case_elements import (
    Environment,
    Weak,
    castable,
    fixed,
    main_choice,
    other_choices,
    resolve,
)
from diopigen.passes.case_rows import is_shape, rows_for, sound_rows

NumberedRow = tuple[int, CaseRow]

_SCALAR = ValueType(value=Value.SCALAR)
_VIEW_ROWS = 2  # how many rows run with each view of memory; what changes the row itself runs once
_ONE_BY_ONE = (
    *(Axes(view=view) for view in View if view not in (View.CONTIGUOUS, View.ALIASED)),
    *(Axes(fill=fill) for fill in Fill if fill is not Fill.USUAL),
    Axes(view=View.ALIASED),
    Axes(change="partial"),
    Axes(layout="nhwc"),
    Axes(change="zero"),
    Axes(change="0-d"),
)


def plan_cases(program: Program, diagnostics: Diagnostics) -> Program:
    """Give every function its cases; unsound rows are reported, functions without a case too."""
    rows = {op.name: sound_rows(op, diagnostics) for op in program.ops}
    cases: list[Case] = []
    for function in program.functions:
        op = program.op(function.op)
        if op is None:
            continue
        found = tuple(_function_cases(op, function, rows[op.name], program.dtypes))
        if not found and len(rows[op.name]) == len(op.cases):
            message = f"'{op.name}' has no case that '{function.symbol}' can run"
            # Not every operator has a reference to be compared with, so there may be nothing to mend.
            diagnostics.note("no-case", message, function.span, "add a row under 'cases:'")
        cases.extend(found)
    return replace(program, cases=tuple(cases))


def _function_cases(op: Op, function: Function, rows: tuple[CaseRow, ...], dtypes: DTypes) -> Iterator[Case]:
    suited = rows_for(op, function.form, rows)
    main = main_choice(function)
    for row in suited:
        yield from _case(op, function, row, main, Axes(), dtypes)
    full = tuple(row for row in suited if all(0 not in shape for shape in _shapes(op, row[1]))) or suited
    for k, choice in enumerate(other_choices(function)):
        eligible = tuple(row for row in full if _allows(op, row[1], choice)) or full[:1]
        for row in dict.fromkeys((eligible[:1]) + eligible[1 + k % max(1, len(eligible) - 1) :][:1]):
            yield from _case(op, function, row, choice, Axes(), dtypes)
    for axes in _ONE_BY_ONE:
        usable = tuple(row for row in full if _suits(op, function, row[1], axes))
        for number, values in usable[: _row_count(axes)]:
            changed = (number, _reshaped(op, values, axes.change))
            yield from _case(op, function, changed, main, axes, dtypes)


def _row_count(axes: Axes) -> int | None:
    """How many rows run with these axes; None for all."""
    if axes.layout:
        return None
    return _VIEW_ROWS if axes.view not in (View.CONTIGUOUS, View.ALIASED) else 1


def _allows(op: Op, row: CaseRow, choice: dict[str, DType]) -> bool:
    """Fractions do not go with integers, nor negative numbers with unsigned ones: PyTorch refuses or wraps them."""
    if all(dtype.kind in (Kind.FLOAT, Kind.COMPLEX) for dtype in choice.values()):
        return True
    unsigned = any(dtype.name.startswith("u") for dtype in choice.values())
    given = dict(row.values)
    numbers = [(arg, n) for arg in op.args if isinstance(n := given.get(arg.name, arg.default), int | float)]
    if unsigned and any(n < 0 and (arg.scalar or arg.type == _SCALAR) for arg, n in numbers):
        return False
    return not any(abs(n) < 1e300 and n != int(n) for _, n in numbers)


def _suits(op: Op, function: Function, row: CaseRow, axes: Axes) -> bool:
    shapes = tuple(_shapes(op, row))
    if axes.layout:
        return axes.layout.upper() in op.layouts and any(len(shape) == len(axes.layout) for shape in shapes)
    if axes.change:
        return _changeable(function, shapes, axes.change)
    if axes.fill is not Fill.USUAL:
        takes = _takes_specials if axes.fill is Fill.SPECIAL else _takes_large
        return takes(op, function) and any(shapes)
    match axes.view:
        case View.CONTIGUOUS:
            return False
        case View.STRIDED | View.OFFSET:
            return bool(shapes)
        case View.EXPANDED | View.TRANSPOSED:
            return any(len([n for n in shape if n > 1]) >= 2 for shape in shapes)
        case View.ALIASED:
            return function.kernel is not None and _has_twins(op, function, row)


def _changeable(function: Function, shapes: tuple[tuple[int, ...], ...], change: str) -> bool:
    if change == "partial":
        return any(p.type.optional for p in function.outs if p.tensor is not None and p.tensor.count is None)
    if change == "zero":
        return function.kernel is not None and any(shape and shape[-1] > 1 for shape in shapes)
    return function.kernel is not None and any(shapes)


def _has_twins(op: Op, function: Function, row: CaseRow) -> bool:
    """Whether two inputs have one shape and take values of one kind."""
    given = dict(row.values)
    read = [p.arg for p in function.ins if p.tensor is not None and p.tensor.count is None]
    free = [given[name] for name in read if is_shape(given.get(name)) and name not in dict(op.data)]
    return function.form is not Form.BACKWARD and len(set(free)) < len(free)


def _takes_specials(op: Op, function: Function) -> bool:
    """Whether NaN and infinities mean something: elementwise functions of floats whose rows draw them freely."""
    main = main_choice(function)
    floating = any(dtype.kind is Kind.FLOAT for dtype in main.values())
    return function.kernel is not None and function.form is not Form.BACKWARD and floating and not op.data


def _takes_large(op: Op, function: Function) -> bool:
    floating = any(dtype.kind is Kind.FLOAT for dtype in main_choice(function).values())
    return floating and not op.data and op.check != "distribution"


def _shapes(op: Op, row: CaseRow) -> Iterator[tuple[int, ...]]:
    for name, value in row.values:
        arg = next((a for a in op.args if a.name == name), None)
        if arg is not None and isinstance(arg.type, TensorType) and isinstance(value, tuple):
            for shape in value if arg.type.count is not None else (value,):
                if isinstance(shape, tuple) and is_shape(shape):
                    yield tuple(n for n in shape if isinstance(n, int))


def _reshaped(op: Op, row: CaseRow, change: str) -> CaseRow:
    if change not in ("zero", "0-d"):
        return row
    names = {arg.name for arg in (*op.args, *op.outs) if isinstance(arg.type, TensorType)}
    values = tuple((k, _cut(v, change) if k in names and isinstance(v, tuple) else v) for k, v in row.values)
    return CaseRow(values=values, span=row.span)


def _cut(shape: tuple[Literal, ...], change: str) -> tuple[Literal, ...]:
    if change == "0-d":
        return ()
    return (*shape[:-1], 0) if shape and shape[-1] != 1 else shape


def _case(
    op: Op, function: Function, row: NumberedRow, choice: dict[str, DType], axes: Axes, dtypes: DTypes
) -> Iterator[Case]:
    number, values = row
    chosen = _with_numbers(op, values, choice)
    if function.form.inplace and not _result_fits(op, chosen, dtypes):
        return
    elements = tuple(choice.items())
    yield Case(
        id="/".join((function.word, _elements_word(elements), *axes.words, str(number))),
        symbol=function.symbol,
        elements=elements,
        dtypes=_dtypes(function.params, chosen, dtypes),
        forward=_dtypes((*op.outs, *op.args), chosen, dtypes) if function.form is Form.BACKWARD else (),
        values=tuple((name, value) for name, value in values.values if value is not None),
        axes=axes,
        span=values.span,
    )


def _dtypes(tensors: Iterable[Param | Arg], chosen: Environment, dtypes: DTypes) -> tuple[tuple[str, DType], ...]:
    return tuple(
        (t.name, fixed(resolve(t.type.element, chosen, dtypes), dtypes))
        for t in tensors
        if isinstance(t.type, TensorType)
    )


def _elements_word(elements: tuple[tuple[str, DType], ...]) -> str:
    """ex) "f32" where all agree, "f32-i64" where they differ, "fixed" where there is nothing to choose."""
    names = [dtype.name for _, dtype in elements]
    return names[0] if len(set(names)) == 1 else "-".join(names) or "fixed"


def _with_numbers(op: Op, row: CaseRow, choice: dict[str, DType]) -> Environment:
    """The choice, and for variables of tensors that the row replaces by a number, the number's kind."""
    chosen: Environment = dict(choice)
    given = dict(row.values)
    for arg in op.args:
        if not arg.scalar or not isinstance(arg.type, TensorType) or not isinstance(arg.type.element, Var):
            continue
        value = given.get(arg.name)
        if isinstance(value, bool | int | float) and arg.type.element.name not in choice:
            chosen[arg.type.element.name] = Weak(kind=_kind(value))
    return chosen


def _kind(value: bool | int | float) -> Kind:
    if isinstance(value, bool):
        return Kind.BOOL
    return Kind.INTEGER if isinstance(value, int) else Kind.FLOAT


def _result_fits(op: Op, chosen: Environment, dtypes: DTypes) -> bool:
    """Whether the plain form's result may be written into the tensor that this form overwrites."""
    target = next((arg.type for arg in op.args if isinstance(arg.type, TensorType)), None)
    if target is None or not op.outs or not isinstance(op.outs[0].type, TensorType):
        return True
    result = resolve(op.outs[0].type.element, chosen, dtypes)
    if isinstance(op.outs[0].type.element, Fixed):
        return True  # comparisons and tests: the in-place forms write 0 and 1 in the tensor's own type
    return castable(result, fixed(resolve(target.element, chosen, dtypes), dtypes))

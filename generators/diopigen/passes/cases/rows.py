"""What the rows under `cases:` mean: whether they fit the arguments, and which functions a row suits."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.op import Arg, CaseRow, Form, Literal, Op, word
from diopigen.model.type import NUMBERS, Element, ShapeCall, ShapeName, TensorType, Value, ValueType
from diopigen.passes.contract.ranges import held, possible_dtypes, range_of, value_holds
from diopigen.passes.contract.verify_kernels import Finding
from diopigen.text import suggestion

Values = dict[str, Literal]

_LARGEST = 2**28  # elements of a case's tensor: 2 GB of float64


def sound_rows(op: Op, diagnostics: Diagnostics) -> tuple[CaseRow, ...]:
    """The rows that fit the op's arguments; what does not fit is reported."""
    return tuple(row for row in op.cases if _fits(op, row, diagnostics))


def _fits(op: Op, row: CaseRow, diagnostics: Diagnostics) -> bool:
    known = {arg.name: arg for arg in (*op.args, *op.outs)}
    extra = _kept_values(op)
    sound = True
    for name, value in row.values:
        if name in extra:
            continue
        if name not in known:
            message = f"'{op.name}' has no argument '{name}'"
            diagnostics.error("case-unknown-argument", message, row.span, suggestion(name, (*known, *extra)))
            sound = False
        elif value is not None and (wanted := _misfit(known[name], value)) is not None:
            diagnostics.error("case-wrong-kind", f"'{name}' is {wanted}", row.span)
            sound = False
        elif value is not None:
            for finding in _beyond(op, known[name], value, row.span):
                diagnostics.error(finding.code, finding.message, finding.span, finding.hint)
                sound = False
    given = dict(row.values)
    for arg in op.args:
        if _required(arg) and given.get(arg.name) is None:
            message = f"the case of '{op.name}' lacks '{arg.name}'"
            diagnostics.error("case-missing-argument", message, row.span, f"add '{arg.name}: ...'")
            sound = False
    return sound


def _kept_values(op: Op) -> tuple[str, ...]:
    return tuple(k.name for k in op.backward.keeps if k.source is None) if op.backward else ()


def _required(arg: Arg) -> bool:
    if arg.has_default or (isinstance(arg.type, ValueType) and arg.type.value is Value.GENERATOR):
        return False
    return not arg.type.optional or (isinstance(arg.type, TensorType) and arg.type.count is not None)


def _misfit(arg: Arg, value: Literal) -> str | None:
    """What the argument needs, in words, if `value` is something else."""
    if isinstance(arg.type, TensorType):
        if arg.type.count is not None:
            return None if _is_shapes(value) else "a list of tensors: give a list of shapes"
        if is_shape(value) or (arg.scalar and _is_number(value)):
            return None
        return "a tensor or a number: give its shape or its value" if arg.scalar else "a tensor: give its shape"
    if isinstance(value, tuple) and not arg.type.many:
        return f"a single value of type {arg.type}"
    return None


def _beyond(op: Op, arg: Arg, value: Literal, span: Span) -> Iterator[Finding]:
    """What the argument's type does not hold: lengths, and numbers out of range."""
    if isinstance(arg.type, TensorType):
        if any(n < 0 for n in _lengths(value)):
            message = f"'{arg.name}' has a negative size"
            yield Finding(code="case-wrong-length", message=message, span=span, hint="give sizes of 0 or more")
        elif (elements := max(_sizes(value), default=0)) > _LARGEST:
            message = f"'{arg.name}' has {elements} elements"
            yield Finding(code="case-wrong-length", message=message, span=span, hint=f"give {_LARGEST} at most")
        elif isinstance(value, int | float) and not _held(op, arg.type.element, value):
            message = f"no dtype of '{arg.name}' holds {word(value)}"
            yield Finding(code="out-of-range", message=message, span=span, hint="write a number that one of them holds")
        return
    kind, length = arg.type, arg.type.length
    if kind.many and kind.value is Value.GENERATOR:
        return
    if kind.many and isinstance(value, tuple) and length not in (None, len(value)):
        message = f"'{arg.name}' is '{kind}' and has {len(value)} numbers here"
        hint = f"give {length} numbers, or one for all"
        yield Finding(code="case-wrong-length", message=message, span=span, hint=hint)
    number_kind = Value.INT if kind.many else kind.value
    for item in value if isinstance(value, tuple) else (value,):
        if number_kind in NUMBERS and isinstance(item, int | float) and not value_holds(number_kind, item):
            message = f"'{arg.name}' is '{kind}', which cannot be {word(item)}"
            yield Finding(code="out-of-range", message=message, span=span, hint=range_of(number_kind))


def _lengths(shapes: Literal) -> Iterator[int]:
    """The lengths in a shape, or in a list of shapes."""
    for shape in shapes if isinstance(shapes, tuple) else ():
        if isinstance(shape, tuple):
            yield from _lengths(shape)
        elif isinstance(shape, int):
            yield shape


def _sizes(shapes: Literal) -> Iterator[int]:
    """How many elements the tensor has, or each of a list of them."""
    if is_shape(shapes):
        yield math.prod(_lengths(shapes))
    elif isinstance(shapes, tuple):
        for shape in shapes:
            yield from _sizes(shape)


def _held(op: Op, element: Element, value: int | float) -> bool:
    """Whether one of the dtypes that a tensor may have holds `value`."""
    dtypes = possible_dtypes(op, element)
    return value_holds(Value.SCALAR, value) and (not dtypes or held(dtypes, value))


def is_shape(value: Literal) -> bool:
    """Whether `value` reads as the shape of one tensor."""
    return isinstance(value, tuple) and all(isinstance(n, int) and not isinstance(n, bool) for n in value)


def _is_shapes(value: Literal) -> bool:
    return isinstance(value, tuple) and all(shape is None or is_shape(shape) for shape in value)


def _is_number(value: Literal) -> bool:
    return isinstance(value, bool | int | float)


def rows_for(op: Op, form: Form, rows: Iterable[CaseRow]) -> tuple[tuple[int, CaseRow], ...]:
    """The rows, with their numbers, that a function of this form can run."""
    numbered = tuple(enumerate(rows))
    if form is Form.BACKWARD:
        return tuple((i, row) for i, row in numbered if not _numbers(op, row))
    if form.scalar:
        chosen = tuple((i, row) for i, row in numbered if _numbers(op, row) and not _shapes(op, row))
        chosen = chosen or tuple((i, scalar_row(op, row)) for i, row in numbered[:1])
    else:
        chosen = tuple((i, row) for i, row in numbered if not _numbers(op, row))
    if form.inplace:
        chosen = tuple((i, row) for i, row in chosen if _keeps_shape(op, dict(row.values)))
    return chosen


def _numbers(op: Op, row: CaseRow) -> bool:
    given = dict(row.values)
    return any(arg.scalar and _is_number(given.get(arg.name)) for arg in op.args)


def _shapes(op: Op, row: CaseRow) -> bool:
    given = dict(row.values)
    return any(arg.scalar and isinstance(given.get(arg.name), tuple) for arg in op.args)


def scalar_row(op: Op, row: CaseRow) -> CaseRow:
    """`row` with the number 2 for each tensor that may be a number, for ops whose rows have no number."""
    named = {arg.name for arg in op.args if arg.scalar}
    return replace(row, values=tuple((k, 2 if k in named else v) for k, v in row.values))


def _keeps_shape(op: Op, given: Values) -> bool:
    """Whether the result has the shape of the tensor that is overwritten."""
    target = next((arg for arg in op.args if isinstance(arg.type, TensorType)), None)
    if target is None or not op.outs or not is_shape(given.get(target.name)):
        return target is not None
    match op.outs[0].shape:
        case ShapeCall(rule="broadcast") as call:
            names = [a.name for a in call.args if isinstance(a, ShapeName)]
            shapes = [given[n] for n in names if is_shape(given.get(n))]
            return broadcast(shapes) == given[target.name]
        case ShapeName(name=name):
            return name == target.name or given.get(name) == given[target.name]
        case _:
            return True


def broadcast(shapes: Iterable[Literal]) -> tuple[int, ...] | None:
    """The common shape of tensors, or None where they have none."""
    result: list[int] = []
    for shape in shapes:
        assert isinstance(shape, tuple)
        sizes = [n for n in shape if isinstance(n, int)]
        longer, shorter = (result, sizes) if len(result) >= len(sizes) else (sizes, result)
        padded = [1] * (len(longer) - len(shorter)) + shorter
        if any(a != b and 1 not in (a, b) for a, b in zip(longer, padded, strict=True)):
            return None
        result = [b if a == 1 else a for a, b in zip(longer, padded, strict=True)]
    return tuple(result)

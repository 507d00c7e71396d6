"""Rows that follow from a row of a schema: fewer elements, other ranks, arguments left out, dimensions from the end."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from diopigen.model.op import Arg, CaseRow, Form, Function, Literal, Op, Role
from diopigen.model.type import ShapeCall, ShapeName, TensorType, Value, ValueType
from diopigen.passes.cases.rows import broadcast, is_shape

Shape = tuple[int, ...]

EMPTY = ("zero", "zero-first", "zero-middle")  # changes that leave no element to look at


def changed_rows(op: Op, function: Function, row: CaseRow) -> Iterator[tuple[str, CaseRow]]:
    """`row` itself under the word "", and what changes make of it under theirs, e.g. "zero", "absent-bias"."""
    yield "", row
    if function.kernel is not None:
        for word, change in _SHAPES.items():
            yield from _reshaped(op, row, word, change)
        yield from _broadcast(op, function, row)
    yield from _absent(op, function, row)
    yield from _negative(op, function, row)
    if any(p.type.optional for p in function.outs if p.tensor is not None and p.tensor.count is None):
        yield "partial", row


def shapes(op: Op, row: CaseRow) -> Iterator[tuple[str, Shape]]:
    """The shapes of the tensors that a row gives, with the arguments' names; of a list each."""
    kinds = {arg.name: arg.type for arg in (*op.args, *op.outs)}
    for name, value in row.values:
        kind = kinds.get(name)
        if isinstance(kind, TensorType) and isinstance(value, tuple):
            for shape in value if kind.count is not None else (value,):
                if is_shape(shape):
                    assert isinstance(shape, tuple)
                    yield name, tuple(n for n in shape if isinstance(n, int))


def _reshaped(op: Op, row: CaseRow, word: str, change: Callable[[Shape, int], Shape]) -> Iterator[tuple[str, CaseRow]]:
    """All tensors changed alike, so that what broadcast before does it still."""
    known = [shape for _, shape in shapes(op, row)]
    rank = max(map(len, known), default=0)
    if any(0 in shape for shape in known) or rank == 0:
        return
    values: list[tuple[str, Literal]] = []
    for name, value in row.values:
        kind = next((a.type for a in (*op.args, *op.outs) if a.name == name), None)
        tensor = isinstance(kind, TensorType) and kind.count is None and is_shape(value)
        values.append((name, change(_ints(value), rank) if tensor else value))
    if tuple(values) != row.values:
        yield word, replace(row, values=tuple(values))


def _ints(value: Literal) -> Shape:
    assert isinstance(value, tuple)
    return tuple(n for n in value if isinstance(n, int))


def _set(shape: Shape, dim: int, size: int) -> Shape:
    """`shape` with another size at `dim`, which counts from the end; what is repeated there stays."""
    place = len(shape) + dim
    if place < 0 or shape[place] == 1:
        return shape
    return (*shape[:place], size, *shape[place + 1 :])


_SHAPES: dict[str, Callable[[Shape, int], Shape]] = {
    "zero": lambda shape, rank: _set(shape, -1, 0),
    "zero-first": lambda shape, rank: _set(shape, -rank, 0) if rank > 1 else shape,
    "zero-middle": lambda shape, rank: _set(shape, -(rank // 2) - 1, 0) if rank > 2 else shape,
    "0-d": lambda shape, rank: (),
    "one": lambda shape, rank: _set(shape, -1, 1),
    "one-first": lambda shape, rank: _set(shape, -rank, 1) if rank > 1 else shape,
}


def _broadcast(op: Op, function: Function, row: CaseRow) -> Iterator[tuple[str, CaseRow]]:
    """Each input in turn without its first dimension, and with one element in the next, where others have both."""
    names = _broadcast_names(op, function)
    given = dict(row.values)
    whole = broadcast(given[name] for name in names if is_shape(given.get(name)))
    for name in names:
        shape = given.get(name)
        others = [given[n] for n in names if n != name and is_shape(given.get(n))]
        if not whole or shape != whole or 0 in whole or broadcast(others) != whole:
            continue
        if _written(function, name):
            continue
        fewer = (1, *whole[2:]) if len(whole) > 2 else whole[1:] or (1,)
        if fewer != shape:
            values = tuple((k, fewer if k == name else v) for k, v in row.values)
            yield f"broadcast-{name}", replace(row, values=values)


def _broadcast_names(op: Op, function: Function) -> tuple[str, ...]:
    """The tensors that the schema says to broadcast."""
    shape = op.outs[0].shape if op.outs else None
    if function.form is Form.BACKWARD or not isinstance(shape, ShapeCall) or shape.rule != "broadcast":
        return ()
    taken = {p.arg for p in function.params if p.tensor is not None}
    return tuple(a.name for a in shape.args if isinstance(a, ShapeName) and a.name in taken)


def _written(function: Function, name: str) -> bool:
    return any(p.arg == name and p.role is Role.INOUT for p in function.params)


def _absent(op: Op, function: Function, row: CaseRow) -> Iterator[tuple[str, CaseRow]]:
    """Each optional argument that the row gives, left out.

    Where a row of the op does without one, rows show what else that takes, e.g. a flag, and nothing is derived. What a
    function also writes is state that other arguments ask for, and stays; so does the last one of several where no row
    does without all; and what says how an empty tensor is to be reduced.
    """
    carried = {p.arg for p in function.params}
    given = [a for a in _optional(op) if dict(row.values).get(a.name) is not None]
    empty = any(0 in shape for _, shape in shapes(op, row))
    for arg in given:
        tensor = isinstance(arg.type, TensorType)
        shown = any(dict(other.values).get(arg.name) is None for other in op.cases)
        if shown or arg.name not in carried or arg.role is Role.INOUT or (empty and not tensor):
            continue
        if len(given) > 1 or _dispensable(op):
            values = tuple((k, v) for k, v in row.values if k != arg.name)
            yield f"absent-{arg.name}", replace(row, values=values)


def _optional(op: Op) -> tuple[Arg, ...]:
    return tuple(
        a for a in op.args if a.type.optional and not (isinstance(a.type, TensorType) and a.type.count is not None)
    )


def _dispensable(op: Op) -> bool:
    """Whether a row does without all optional arguments; of a single one the schema's word is enough."""
    names = {arg.name for arg in _optional(op)}
    return len(names) < 2 or any(not any(k in names and v is not None for k, v in row.values) for row in op.cases)


def _negative(op: Op, function: Function, row: CaseRow) -> Iterator[tuple[str, CaseRow]]:
    """All dimensions counted from the end of the first tensor."""
    rank = next((len(shape) for _, shape in shapes(op, row)), 0)
    carried = {p.arg for p in function.params}
    counted = {a.name for a in op.args if isinstance(a.type, ValueType) and a.type.value is Value.DIM}
    values = tuple((k, _from_end(v, rank) if k in counted & carried else v) for k, v in row.values)
    if values != row.values:
        yield "negative", replace(row, values=values)


def _from_end(value: Literal, rank: int) -> Literal:
    if isinstance(value, tuple):
        return tuple(_from_end(v, rank) for v in value)
    return value - rank if isinstance(value, int) and 0 <= value < rank else value

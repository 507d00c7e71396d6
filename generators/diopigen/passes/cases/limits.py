"""What goes together by the schema: rows with element types and views, element types with ways to fill tensors."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from diopigen.model.case import Fill, View
from diopigen.model.expr import Binary, Call, Expr, Unary
from diopigen.model.op import Arg, CaseRow, Form, Function, Literal, Op
from diopigen.model.type import TensorType, Value, ValueType, Var
from diopigen.passes.cases.changes import Shape, shapes
from diopigen.passes.cases.dtypes import fits, with_numbers
from diopigen.passes.cases.rows import is_shape
from diopigen.vocabulary.checks import CHECK
from diopigen.vocabulary.dtype import DType, DTypes, Kind

Choice = dict[str, DType]

_SCALAR = ValueType(value=Value.SCALAR)
_DIVISIONS = ("div", "floor_div", "trunc_div", "fmod", "remainder")  # which trap for the lowest integer by -1


def result_fits(op: Op, function: Function, row: CaseRow, choice: Choice, dtypes: DTypes) -> bool:
    """Whether an in-place form can write its result into the tensor that it overwrites."""
    return not function.form.inplace or fits(op, with_numbers(op, row, choice), dtypes)


def rows_taking(op: Op, rows: Mapping[int, CaseRow], choice: Choice) -> Callable[[CaseRow], bool]:
    """Which rows a choice of element types takes; fractions go with integers only where every row has them."""
    numbers = [dict(row.values) for row in rows.values() if _allows(op, row, choice)]
    whole = any(map(partial(_whole, op), numbers))
    return lambda row: _allows(op, row, choice) and (not whole or not _integers(choice) or _whole(op, dict(row.values)))


def _integers(choice: Choice) -> bool:
    return any(dtype.kind not in (Kind.FLOAT, Kind.COMPLEX) for dtype in choice.values())


def _whole(op: Op, given: Mapping[str, Literal]) -> bool:
    """Whether all numbers of a row are whole."""
    numbers = (n for arg in op.args if isinstance(n := given.get(arg.name, arg.default), int | float))
    return all(abs(n) >= 1e300 or n == int(n) for n in numbers)


def _allows(op: Op, row: CaseRow, choice: Choice) -> bool:
    """Whether the row's numbers go with the element types.

    Negative numbers do not go with unsigned integers, nor rounded quotients with bools: PyTorch refuses or wraps them.
    Of a tensor without dimensions beside others PyTorch promotes only the kind, which is not the contract's.
    """
    ranks = {len(shape) for _, shape in shapes(op, row)}
    if len(set(choice.values())) > 1 and 0 in ranks and len(ranks) > 1:
        return False
    given = {arg: dict(row.values).get(arg.name, arg.default) for arg in op.args}
    if choice and all(dtype.kind is Kind.BOOL for dtype in choice.values()) and any(map(_rounds, given.items())):
        return False
    if not any(dtype.name.startswith("u") for dtype in choice.values()):
        return True
    numbers = [(arg, n) for arg, n in given.items() if isinstance(n, int | float)]
    return not any(n < 0 and (arg.scalar or arg.type == _SCALAR or _drawn(op, arg)) for arg, n in numbers)


def _rounds(given: tuple[Arg, Literal]) -> bool:
    """Whether a quotient is rounded, which PyTorch does for no bools."""
    arg, value = given
    return isinstance(arg.type, ValueType) and arg.type.value is Value.ROUND_MODE and value not in (None, "none")


def _drawn(op: Op, arg: Arg) -> bool:
    """Whether a whole number bounds what is drawn into the tensors."""
    return CHECK[op.check].random and arg.type == ValueType(value=Value.INT)


def viewable(op: Op, function: Function, row: CaseRow, known: tuple[Shape, ...], view: View) -> bool:
    match view:
        case View.CONTIGUOUS:
            return True
        case View.STRIDED:
            return any(known)
        case View.OFFSET:
            return bool(known)
        case View.EXPANDED | View.TRANSPOSED | View.OVERLAPPING:
            return any(len([n for n in shape if n > 1]) >= 2 for shape in known)
        case View.ALIASED:
            return twins(op, function, row)


def twins(op: Op, function: Function, row: CaseRow) -> bool:
    """Whether two inputs have one shape and take values of one kind."""
    given = dict(row.values)
    drawn = dict(row.data)
    free = [given[name] for name, _ in _free(op, function) if is_shape(given.get(name)) and name not in drawn]
    return len(set(free)) < len(free)


def twins_of_types(op: Op, function: Function, choice: Choice) -> bool:
    """Whether two inputs have one element type."""
    found = [
        choice.get(kind.element.name, kind.element) if isinstance(kind.element, Var) else kind.element
        for _, kind in _free(op, function)
    ]
    return len(set(found)) < len(found)


def _free(op: Op, function: Function) -> Iterator[tuple[str, TensorType]]:
    """The inputs that are drawn freely."""
    if function.form is Form.BACKWARD or function.kernel is None:
        return
    recipes = dict(op.data)
    for param in function.ins:
        if param.tensor is not None and param.tensor.count is None and param.arg not in recipes:
            yield param.arg, param.tensor


def takes_fill(op: Op, function: Function, fill: Fill) -> bool:
    """Whether values of such a kind mean something to the function."""
    if op.data or CHECK[op.check].random:
        return False
    match fill:
        case Fill.USUAL | Fill.LARGE:
            return True
        case Fill.SPECIAL:
            return function.form is not Form.BACKWARD and (function.kernel is not None or CHECK[op.check].ordered)
        case Fill.DENORMAL | Fill.EXTREMES:
            return function.form is not Form.BACKWARD and (function.kernel is not None or CHECK[op.check].exact)


def fillable(op: Op, function: Function, choice: Choice, fill: Fill) -> bool:
    """Whether tensors of these element types can be filled so."""
    kinds = {dtype.kind for dtype in choice.values()}
    if fill is not Fill.USUAL and Kind.FLOAT in kinds and len(kinds) > 1:
        return False  # what NaN and numbers out of range become as integers is nobody's promise
    match fill:
        case Fill.USUAL:
            return True
        case Fill.EXTREMES:
            if Kind.FLOAT in kinds or not kinds:
                return kinds == {Kind.FLOAT} and (CHECK[op.check].exact or _steps(function.kernel) <= 1)
            return Kind.INTEGER in kinds and not _divides(function.kernel)
        case Fill.SPECIAL | Fill.LARGE | Fill.DENORMAL:
            return Kind.FLOAT in kinds


def _steps(expr: Expr | None) -> int:
    """How many operations an expression takes, a call as many as it has arguments.

    More than one may overflow on the way to a result that does not.
    """
    match expr:
        case Unary():
            return 1 + _steps(expr.operand)
        case Binary():
            return 1 + _steps(expr.left) + _steps(expr.right)
        case Call():
            return len(expr.args) + sum(map(_steps, expr.args))
        case _:
            return 0


def _divides(expr: Expr | None) -> bool:
    match expr:
        case Unary():
            return _divides(expr.operand)
        case Binary():
            return expr.op == "/" or _divides(expr.left) or _divides(expr.right)
        case Call():
            return expr.function in _DIVISIONS or any(map(_divides, expr.args))
        case _:
            return False

"""What goes together by the schema: rows with element types and views, element types with ways to fill tensors."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """What the numbers and shapes of a row ask of the element types.

    Negative numbers do not go with unsigned integers, nor rounded quotients with bools: PyTorch refuses or wraps them.
    Of a tensor without dimensions beside others PyTorch promotes only the kind, which is not the contract's.
    """

    one_type: bool  # tensors without dimensions beside others
    signed: bool  # a number below zero
    rounds: bool  # a quotient that is rounded
    whole: bool  # all numbers are whole

    def met_by(self, sort: "Sort") -> bool:
        return not ((self.one_type and sort.mixed) or (self.rounds and sort.bools) or (self.signed and sort.unsigned))


def demands(op: Op, row: CaseRow) -> Demands:
    """What `row` asks for."""
    ranks = {len(shape) for _, shape in shapes(op, row)}
    values = dict(row.values)
    given = [(arg, values.get(arg.name, arg.default)) for arg in op.args]
    numbers = [(arg, n) for arg, n in given if isinstance(n, int | float)]
    return Demands(
        one_type=0 in ranks and len(ranks) > 1,
        signed=any(n < 0 and (arg.scalar or arg.type == _SCALAR or _drawn(op, arg)) for arg, n in numbers),
        rounds=any(map(_rounds, given)),
        whole=all(abs(n) >= 1e300 or n == int(n) for _, n in numbers),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    """What rows have to know of a choice of element types."""

    mixed: bool  # more than one
    bools: bool  # bools alone
    unsigned: bool  # an unsigned integer among them
    whole: bool  # takes only rows of whole numbers: it has integers, and other rows are there for it

    def takes(self, row: Demands) -> bool:
        return row.met_by(self) and (not self.whole or row.whole)


def sort_of(choice: Choice, rows: Iterable[Demands]) -> Sort:
    """Of `choice`; fractions go with integers only where each of the op's own `rows` has them."""
    names, kinds = {dtype.name for dtype in choice.values()}, {dtype.kind for dtype in choice.values()}
    sort = Sort(
        mixed=len(names) > 1,
        bools=kinds == {Kind.BOOL},
        unsigned=not all(dtype.signed for dtype in choice.values()),
        whole=False,
    )
    integers = not kinds <= {Kind.FLOAT, Kind.COMPLEX}
    return replace(sort, whole=integers and any(row.whole for row in rows if row.met_by(sort)))


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

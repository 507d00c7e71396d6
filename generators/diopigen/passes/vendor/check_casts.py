"""Findings about single casts: those that cannot keep the values of a tensor."""

from collections.abc import Callable

from diopigen.diagnostics import Diagnostics
from diopigen.model.expr import Binary, Call, Expr, Name, Number, Text, Unary
from diopigen.model.op import Function, Op, Param
from diopigen.model.vendor import Cast
from diopigen.vocabulary.draws import DRAW, Draw
from diopigen.vocabulary.dtype import DType, DTypes, Kind

_KINDS = (Kind.BOOL, Kind.INTEGER, Kind.FLOAT, Kind.COMPLEX)  # each holds those before it

_INDEX_SIZE = 4  # bytes, of the smallest integer that positions are kept in

_LOST = {Kind.FLOAT: "the fractions", Kind.COMPLEX: "the imaginary parts"}


class CastChecks:
    """Gathers what casts do to tensors and reports each cast once, whatever the number of tensors."""

    def __init__(self, dtypes: DTypes) -> None:
        self._dtypes = dtypes
        self._losses: dict[tuple[Cast, str], list[tuple[str, str]]] = {}  # a cast and its code: parameters, functions

    def add(self, cast: Cast, param: Param, taken: tuple[DType, ...], function: Function, op: Op) -> None:
        """One tensor that `cast` touches; `taken` are the dtypes that the schema lets it have."""
        code = self._code(cast, param, taken, function, op)
        if code is not None:
            self._losses.setdefault((cast, code), []).append((param.name, function.symbol))

    def report(self, diagnostics: Diagnostics) -> None:
        """Errors where values become others, else what is lost of precision."""
        for (cast, code), ((param, symbol), *others) in self._losses.items():
            source, target = cast.source, cast.target
            more = f" and of {len(others)} other tensor{'s' if len(others) > 1 else ''}" if others else ""
            if code == "index-cast":
                diagnostics.error(
                    "index-cast",
                    f"'{target.word}' does not keep the positions or counts of '{param}' of '{symbol}'{more}",
                    cast.span,
                    "cast to int32 or int64; use 'tensor_dtype' for single arguments",
                )
            elif code == "lossy-cast":
                lost = "everything but being zero" if target.kind is Kind.BOOL else _LOST[source.kind]
                diagnostics.error(
                    "lossy-cast",
                    f"'{source.word}' as '{target.word}' loses {lost} of '{param}' of '{symbol}'{more}",
                    cast.span,
                    f"cast to {'an' if source.kind is Kind.INTEGER else 'a'} {source.kind.value} dtype",
                )
            elif code == "inexact-cast":
                message = f"'{target.word}' does not hold every '{source.word}' exactly"
                diagnostics.warning("inexact-cast", message, cast.span, "cast to a wider dtype if large values occur")
            else:
                message = f"'{target.word}' holds fewer values than '{source.word}'"
                diagnostics.note("narrowing-cast", message, cast.span)

    def _code(self, cast: Cast, param: Param, taken: tuple[DType, ...], function: Function, op: Op) -> str | None:
        """What is found about one tensor, e.g. "index-cast"; None where every value is kept."""
        source, target = cast.source, cast.target
        if holds_index(param, taken, op) and not _keeps_index(source, target):
            return "index-cast"
        if _KINDS.index(target.kind) < _KINDS.index(source.kind):
            truth = target.kind is Kind.BOOL and asks_for_truth(param, function, op)
            return None if truth else "lossy-cast"
        if source.kind is Kind.INTEGER and target.kind is not Kind.INTEGER:
            exact = source.value_bits <= self._dtypes.real_of(target).digits
            return None if exact else "inexact-cast"
        return "narrowing-cast" if _narrows(source, target, self._dtypes) else None


def holds_index(param: Param, taken: tuple[DType, ...], op: Op) -> bool:
    """Whether a tensor holds positions, lengths or counts: it takes wide integers only, or its cases are indices."""
    numbers = [dtype for dtype in taken if dtype.kind is not Kind.BOOL]
    wide = all(dtype.kind is Kind.INTEGER and dtype.size >= _INDEX_SIZE for dtype in numbers)
    return (bool(numbers) and wide) or _drawn(param, op, lambda draw: draw.positions)


def _keeps_index(source: DType, target: DType) -> bool:
    """A mask among the indices may become any integer."""
    signed = target.kind is Kind.INTEGER and target.signed
    return source.kind is Kind.BOOL or (signed and target.size >= _INDEX_SIZE)


def asks_for_truth(param: Param, function: Function, op: Op) -> bool:
    """Whether only being zero or not matters: the kernel compares with 0 and no more, or the cases are masks."""
    if function.kernel is not None:
        return _only_compared(function.kernel, param.arg)
    return _drawn(param, op, lambda draw: draw.truth)


def _drawn(param: Param, op: Op, wanted: Callable[[Draw], bool]) -> bool:
    draw = dict(op.data).get(param.arg)
    return isinstance(draw, Call) and wanted(DRAW[draw.function])


def _only_compared(kernel: Expr, name: str) -> bool:
    """Whether `name` stands in comparisons with 0 only."""
    match kernel:
        case Name():
            return kernel.name != name
        case Binary(op="==" | "!=", left=Name(), right=Number(text="0")):
            return True
        case Binary():
            return _only_compared(kernel.left, name) and _only_compared(kernel.right, name)
        case Unary():
            return _only_compared(kernel.operand, name)
        case Call():
            return all(_only_compared(arg, name) for arg in kernel.args)
        case Number() | Text():
            return True


def _narrows(source: DType, target: DType, dtypes: DTypes) -> bool:
    """Whether some value of `source` is not exactly one of `target`, both of one kind or of a wider one."""
    if source.kind is Kind.BOOL:
        return False
    if source.kind is Kind.INTEGER:
        loses_sign = source.signed and not target.signed
        return loses_sign or source.value_bits > target.value_bits
    part, whole = dtypes.real_of(source), dtypes.real_of(target)
    return part.digits > whole.digits or part.exponent > whole.exponent

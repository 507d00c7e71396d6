"""One test of one function, as the conformance suite runs it."""

from dataclasses import dataclass
from enum import Enum

from diopigen.diagnostics import Span
from diopigen.model.expr import Expr
from diopigen.model.op import Literal
from diopigen.vocabulary.dtype import DType


class View(Enum):
    """How tensors lie in their storage."""

    CONTIGUOUS = "contiguous"
    STRIDED = "strided"  # every second element of a larger storage
    OFFSET = "offset"  # a storage offset that is not zero
    EXPANDED = "expanded"  # inputs with a stride of 0
    TRANSPOSED = "transposed"  # the last two dimensions swapped in memory
    OVERLAPPING = "overlapping"  # inputs whose elements share storage, as windows do that slide by one
    ALIASED = "aliased"  # inputs of the same shape and type are one tensor


class Fill(Enum):
    """Which values are drawn where the schema leaves it open."""

    USUAL = ""
    SPECIAL = "special"  # NaN, infinities and both zeros among the values
    LARGE = "large"  # values of the order of 100, where exponentials overflow
    DENORMAL = "denormal"  # half of the values below the smallest that the type holds with full precision
    EXTREMES = "extremes"  # the lowest and the highest values of the type among the values


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """What a case varies besides its row and element types."""

    layout: str = ""  # e.g. "nhwc": the memory order of tensors of such a rank; empty for the usual one
    view: View = View.CONTIGUOUS
    fill: Fill = Fill.USUAL
    change: str = ""  # e.g. "zero": what was done to the row; empty for nothing

    @property
    def words(self) -> tuple[str, ...]:
        """Those that are not the usual ones, in the order of an id. e.g. ("nhwc", "strided")."""
        view = "" if self.view is View.CONTIGUOUS else self.view.value
        return tuple(word for word in (self.layout, view, self.fill.value, self.change) if word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row of a schema for one function and one choice of element types."""

    id: str  # e.g. "add/f32/strided/0": function, elements, words of the axes, row
    symbol: str  # e.g. "diopiAdd"
    elements: tuple[tuple[str, DType], ...]  # e.g. (("T", f32), ("U", f32))
    dtypes: tuple[tuple[str, DType], ...]  # e.g. (("out", f32), ("input", f32)): of each tensor parameter
    forward: tuple[tuple[str, DType], ...]  # of a backward function: of each tensor of its op's plain form
    values: tuple[tuple[str, Literal], ...]  # the row's values by argument of the op; absent ones left out
    data: tuple[tuple[str, Expr], ...]  # how the row has values drawn, by argument; what it leaves out as the op says
    axes: Axes
    span: Span  # the row

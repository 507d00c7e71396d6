"""One test of one function, as the conformance suite runs it."""

from dataclasses import dataclass
from enum import Enum

from diopigen.diagnostics import Span
from diopigen.model.dtype import DType
from diopigen.model.op import Literal


class View(Enum):
    """What a case varies besides element types."""

    CONTIGUOUS = "contiguous"
    STRIDED = "strided"  # every second element of a larger storage
    OFFSET = "offset"  # a storage offset that is not zero
    EXPANDED = "expanded"  # inputs with a stride of 0
    TRANSPOSED = "transposed"  # the last two dimensions swapped in memory
    SPECIAL = "special"  # NaN, infinities and both zeros among the values
    LARGE = "large"  # values of the order of 100, where exponentials overflow
    ALIASED = "aliased"  # inputs of the same shape and type are one tensor
    PARTIAL = "partial"  # outputs that a caller may leave out are left out
    CHANNELS_LAST = "nhwc"  # the memory order of images
    ZERO = "zero"  # the row with an empty last dimension
    SCALAR = "0-d"  # the row with all tensors 0-d


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row of a schema for one function and one choice of element types."""

    id: str  # ex) "add/diopiAdd/f32/strided/0": op, symbol, elements, view, row
    symbol: str  # ex) "diopiAdd"
    elements: tuple[tuple[str, DType], ...]  # ex) (("T", f32), ("U", f32))
    dtypes: tuple[tuple[str, DType], ...]  # ex) (("out", f32), ("input", f32)): of each tensor parameter
    forward: tuple[tuple[str, DType], ...]  # of a backward function: of each tensor of its op's plain form
    values: tuple[tuple[str, Literal], ...]  # the row's values by argument of the op; absent ones left out
    view: View  # how tensors lie in memory, or what was done to the row
    span: Span  # the row

"""One test of one function, as the conformance suite runs it."""

from dataclasses import dataclass

from diopigen.diagnostics import Span
from diopigen.model.dtype import DType
from diopigen.model.op import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row of a schema for one function and one choice of element types."""

    id: str  # ex) "add/f32/0"
    symbol: str  # ex) "diopiAdd"
    elements: tuple[tuple[str, DType], ...]  # ex) (("T", f32), ("U", f32))
    values: tuple[tuple[str, Literal], ...]  # the row's values by argument
    view: str  # ex) "contiguous"; how tensors lie in memory: strided, offset, expanded ...
    span: Span  # the row

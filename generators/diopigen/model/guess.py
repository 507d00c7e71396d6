"""An op as far as the declarations of its C functions tell it; the rest is guessed, and said to be."""

from dataclasses import dataclass

from diopigen.diagnostics import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessedLine:
    """A line under `args:` or `out:`."""

    name: str  # e.g. "other"
    line: str  # e.g. "Tensor<T> like input"
    why: tuple[str, ...]  # e.g. ("written, for its handle is not const",)
    written: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessedOp:
    """An entry for one function, or for those that are its in-place and scalar forms."""

    symbols: tuple[str, ...]  # e.g. ("diopiAdd", "diopiAddInp")
    name: str  # e.g. "max_pool2d"
    stem: str  # e.g. "MaxPool2d"
    header: str  # e.g. "functions"
    doc: str
    args: tuple[GuessedLine, ...]
    outs: tuple[GuessedLine, ...]
    forms: tuple[str, ...] = ("out",)
    order: tuple[str, ...] = ()
    c: tuple[tuple[str, str], ...] = ()
    span: Span

    @property
    def has_variable(self) -> bool:
        return any("<T>" in line.line for line in (*self.args, *self.outs))

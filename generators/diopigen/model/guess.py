"""An op as far as the declarations of its C functions tell it; the rest is guessed, and said to be."""

from dataclasses import dataclass

from diopigen.diagnostics import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessedLine:
    """A line under `args:` or `out:`."""

    name: str  # ex) "other"
    line: str  # ex) "Tensor<T> like input"
    why: tuple[str, ...]  # ex) ("written, for its handle is not const",)
    written: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessedOp:
    """An entry for one function, or for those that are its in-place and scalar forms."""

    symbols: tuple[str, ...]  # ex) ("diopiAdd", "diopiAddInp")
    name: str  # ex) "max_pool2d"
    stem: str  # ex) "MaxPool2d"
    header: str  # ex) "functions"
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

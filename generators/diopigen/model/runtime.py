"""The run-time side of the contract: enums, structs, types, and functions that are no operators."""

from dataclasses import dataclass

from diopigen.diagnostics import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumerator:
    name: str  # e.g. "diopiSuccess"
    value: int  # e.g. 0
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Enum:
    """A C enum of the contract; names and values are fixed."""

    name: str  # e.g. "diopiError_t"
    doc: str
    enumerators: tuple[Enumerator, ...]
    header: str  # e.g. "diopirt"
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class CParam:
    """A parameter or member by its C spelling."""

    type: str  # e.g. "const void*"
    name: str  # e.g. "src"
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CFunction:
    """A C function with its linkage macros as the contract has them."""

    name: str  # e.g. "diopiGetTensorShape"
    doc: str
    linkage: str  # e.g. "extern DIOPI_RT_API"
    returns: str  # e.g. "diopiError_t"
    params: tuple[CParam, ...]
    header: str  # e.g. "diopirt"
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionType:
    """A named type of function pointers."""

    name: str  # e.g. "malloc_func_t"
    doc: str
    returns: str
    params: tuple[CParam, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """One member of a table of functions."""

    name: str  # e.g. "record_event"
    doc: str
    type: str | None  # e.g. "malloc_func_t"; None: returns and params say it
    returns: str
    params: tuple[CParam, ...]
    required: bool
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A struct of a vendor's functions. Entries are only ever added."""

    name: str  # e.g. "device", which is also its header
    version: int
    entries: tuple[TableEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Everything runtime.yaml says."""

    version: tuple[int, int, int]  # e.g. (1, 0, 0)
    enums: tuple[Enum, ...]
    functions: tuple[CFunction, ...]
    function_types: tuple[FunctionType, ...]
    tables: tuple[Table, ...]
    span: Span  # of the file

    @property
    def names(self) -> frozenset[str]:
        """What the enums declare, which has no prefix everywhere. e.g. "ReductionMean"."""
        return frozenset(name for e in self.enums for name in (e.name, *(v.name for v in e.enumerators)))

    def enum(self, name: str) -> Enum | None:
        return next((e for e in self.enums if e.name == name), None)

"""What C headers declare, as facts that two sides can be compared by; comments and macros are not among them."""

from dataclasses import dataclass

from diopigen.diagnostics import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class CType:
    """One type, twice: as written, and as it must agree with the other side."""

    spelled: str  # e.g. "diopiConstTensorHandle_t", "const double"
    resolved: str  # e.g. "const struct diopiTensor*", "double": no typedefs, and no const of the value itself


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredParam:
    type: CType
    name: str  # e.g. "alpha"; empty for a parameter without a name
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredFunction:
    name: str  # e.g. "diopiAdd"
    header: str  # e.g. "functions.h"
    returns: CType
    params: tuple[DeclaredParam, ...]
    weak: bool  # True where a program links without a definition
    c_linkage: bool  # False for C++ names, which no other language finds
    span: Span
    variadic: bool = False  # True where "..." stands after the last parameter
    # Of the comment before it; never compared.
    doc: str = ""  # e.g. "Adds two tensors."
    directions: tuple[tuple[str, str], ...] = ()  # e.g. (("input", "in"), ("out", "out"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredEnumerator:
    name: str  # e.g. "diopiSuccess"
    value: int
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredEnum:
    name: str  # e.g. "diopiError_t"
    header: str
    size: int  # e.g. 4, bytes
    enumerators: tuple[DeclaredEnumerator, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredField:
    """A member of a struct; those of an unnamed union or struct inside count as its own."""

    type: CType
    name: str  # e.g. "fval"
    offset: int  # e.g. 8, bytes
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredStruct:
    name: str  # e.g. "diopiSize_t"
    header: str
    size: int  # e.g. 16, bytes
    fields: tuple[DeclaredField, ...]
    span: Span

    @property
    def extensible(self) -> bool:
        """Whether it begins with its own size, so that members may be added at its end."""
        return bool(self.fields) and (self.fields[0].name, self.fields[0].type.spelled) == ("size", "uint32_t")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredType:
    """A name for a type that is no enum and no struct."""

    name: str  # e.g. "diopiTensorHandle_t"
    header: str
    type: CType
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """All declarations of some headers, each kind in the order of the files."""

    functions: tuple[DeclaredFunction, ...] = ()
    enums: tuple[DeclaredEnum, ...] = ()
    structs: tuple[DeclaredStruct, ...] = ()
    types: tuple[DeclaredType, ...] = ()

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers that declare anything, each once."""
        kinds = (self.functions, self.enums, self.structs, self.types)
        return tuple(dict.fromkeys(declared.header for kind in kinds for declared in kind))

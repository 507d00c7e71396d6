"""Element types of tensors and the named sets that schemas speak of."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The family an element type belongs to; it decides promotion and accumulation."""

    BOOL = "bool"
    INTEGER = "integer"
    FLOAT = "float"
    COMPLEX = "complex"


@dataclass(frozen=True, slots=True, kw_only=True)
class DType:
    """One element type of the contract."""

    name: str  # ex) "f32", as schemas write it
    word: str  # ex) "float32", as the contract and convert_config.yaml write it
    value: int  # ex) 9, the enumerator's value
    size: int  # ex) 4, bytes; 0 where an element has none
    kind: Kind  # ex) Kind.FLOAT
    torch: str | None  # ex) "float32", the attribute of torch; None where torch has no such type

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class DTypeSet:
    """A named set of element types, in the order of dtypes.yaml."""

    name: str  # ex) "float"
    members: tuple[DType, ...]  # ex) (f16, bf16, f32, f64)

    def __str__(self) -> str:
        return self.name

    def __contains__(self, dtype: object) -> bool:
        return dtype in self.members


@dataclass(frozen=True, slots=True, kw_only=True)
class DTypes:
    """Everything dtypes.yaml says: the types by name, and the sets by name."""

    types: tuple[DType, ...]
    sets: tuple[DTypeSet, ...]

    def named(self, name: str) -> DType | None:
        """The type that schemas call `name` (e.g. "f32"), or None."""
        return next((t for t in self.types if t.name == name), None)

    def worded(self, word: str) -> DType | None:
        """The type that the contract calls `word` (e.g. "float32"), or None."""
        return next((t for t in self.types if t.word == word), None)

    def complex_of(self, dtype: DType) -> DType:
        """The complex type with parts of `dtype` (f64 gives c128); any other type itself."""
        twice = (t for t in self.types if t.kind is Kind.COMPLEX and t.size == 2 * dtype.size)
        return next(twice, dtype) if dtype.kind is Kind.FLOAT else dtype

    def real_of(self, dtype: DType) -> DType:
        """The type of the parts of `dtype` (c128 gives f64); any other type itself."""
        half = (t for t in self.types if t.torch and self.complex_of(t) == dtype)
        return next(half, dtype) if dtype.kind is Kind.COMPLEX else dtype

    def set_named(self, name: str) -> DTypeSet | None:
        return next((s for s in self.sets if s.name == name), None)

"""Element types of tensors and the named sets that schemas speak of."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The family an element type belongs to; it decides promotion and accumulation."""

    BOOL = "bool"
    INTEGER = "integer"
    FLOAT = "float"
    COMPLEX = "complex"


# The element types of plain numbers, as PyTorch has them.
DEFAULT = {Kind.BOOL: "bool", Kind.INTEGER: "i64", Kind.FLOAT: "f32", Kind.COMPLEX: "c64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DType:
    """One element type of the contract: a row of dtypes.yaml."""

    name: str  # e.g. "f32", as schemas write it
    word: str  # e.g. "float32", as the contract and convert_config.yaml write it
    value: int  # e.g. 9, the enumerator's value
    size: int  # e.g. 4, bytes; 0 where an element has none
    kind: Kind  # e.g. Kind.FLOAT
    torch: str | None  # e.g. "float32", the attribute of torch; None where torch has no such type
    signed: bool = True
    digits: int = 0  # e.g. 24, bits of the significand of a float, the hidden one included
    exponent: int = 0  # e.g. 8, bits of the exponent of a float
    finite: bool = False  # a float without infinities: the greatest exponent has numbers, too, and one NaN
    cpp: str | None = None  # e.g. "BFloat16", the type of an element in kernels; None where they have none
    scalar_type: str | None = None  # e.g. "Float", of c10::ScalarType
    numpy: str | None = None  # e.g. "float32", what stores an element; "uint16" where numpy has no such numbers
    also: tuple[str, ...] = ()  # e.g. ("double", "fp64"): other names, which a hint may mean

    def __str__(self) -> str:
        return self.name

    @property
    def value_bits(self) -> int:
        """The bits of an integer's greatest value."""
        return 8 * self.size - self.signed

    @property
    def least_exponent(self) -> int:
        """Of a float's smallest normal number: -126 for 2 ** -126."""
        return 2 - (1 << self.exponent - 1)

    @property
    def largest(self) -> float:
        """The greatest finite number of a float."""
        return (2 - 2.0 ** (1 + self.finite - self.digits)) * 2.0 ** (1 + self.finite - self.least_exponent)

    @property
    def half(self) -> bool:
        """Whether it is a float with less than float32 has, which is computed in float32."""
        return self.kind is Kind.FLOAT and self.size < 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DTypeSet:
    """A named set of element types, in the order of dtypes.yaml."""

    name: str  # e.g. "float"
    members: tuple[DType, ...]  # e.g. (f16, bf16, f32, f64)

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

    def meant(self, text: str) -> DType | None:
        """The type that schemas, the contract, C, C++, numpy or PyTorch call `text` (e.g. "double"), or None."""
        return next((t for t in self.types if text in (t.name, t.word, *t.also)), None)

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

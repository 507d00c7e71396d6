"""The types that a type line of a schema can say; `str(t)` prints the line again."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from diopigen.vocabulary.dtype import DType


@dataclass(frozen=True, slots=True, kw_only=True)
class Var:
    """An element type that a case chooses from the set in `where`."""

    name: str  # e.g. "T"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """An element type that is always the same."""

    dtype: DType  # e.g. i64

    def __str__(self) -> str:
        return self.dtype.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Promote:
    """The common type of several elements, by PyTorch's promotion rules."""

    elements: tuple["Element", ...]  # e.g. (T, U)

    def __str__(self) -> str:
        return f"promote({', '.join(map(str, self.elements))})"


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatOf:
    """The element itself if it is a float, else the default float32."""

    element: "Element"

    def __str__(self) -> str:
        return f"float({self.element})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulate:
    """What sums of the element are kept in: i64 for bool and integers, the element itself for floats."""

    element: "Element"

    def __str__(self) -> str:
        return f"sum({self.element})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComplexOf:
    """The complex type whose parts are of the element: c64 for f32."""

    element: "Element"

    def __str__(self) -> str:
        return f"complex({self.element})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RealOf:
    """The type of the parts of a complex element, f32 for c64; the element itself if it is real."""

    element: "Element"

    def __str__(self) -> str:
        return f"real({self.element})"


Element = Var | Fixed | Promote | FloatOf | Accumulate | ComplexOf | RealOf


def variables_of(element: Element) -> tuple[str, ...]:
    """The variables that `element` is made of."""
    match element:
        case Var():
            return (element.name,)
        case Promote():
            return tuple(name for inner in element.elements for name in variables_of(inner))
        case FloatOf() | Accumulate() | ComplexOf() | RealOf():
            return variables_of(element.element)
        case Fixed():
            return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorType:
    """A tensor, a tensor that may be absent, or a list of tensors with its count."""

    element: Element  # e.g. Var("T")
    optional: bool = False  # e.g. True for "Tensor<T>?"; of the entries where `count` is set
    count: str | None = None  # e.g. "num_inputs": the C parameter with the length of the list

    def __str__(self) -> str:
        suffix = "?" if self.optional else ""
        brackets = f"[{self.count}]" if self.count is not None else ""
        return f"Tensor<{self.element}>{suffix}{brackets}"


class Value(Enum):
    """What an argument that is not a tensor means; how C spells it is the targets' business."""

    SCALAR = "Scalar"  # a number of any type
    INT = "int"  # 64 bits
    INT32 = "int32"
    FLOAT = "float"  # 64 bits
    FLOAT32 = "float32"
    BOOL = "bool"
    STR = "str"
    DIM = "Dim"  # an int that counts dimensions, from the end if negative
    GENERATOR = "Generator"
    POINTER = "pointer"  # an address that is only passed on
    REDUCTION = "Reduction"
    ROUND_MODE = "RoundMode"
    MEMORY_FORMAT = "MemoryFormat"


NUMBERS = (Value.SCALAR, Value.INT, Value.INT32, Value.FLOAT, Value.FLOAT32, Value.BOOL, Value.DIM)

# The words that schemas use for the enumerators of the contract, and the enumerators, in the order of their values.
ENUMERATORS: dict[Value, dict[str, str]] = {
    Value.REDUCTION: {"none": "ReductionNone", "mean": "ReductionMean", "sum": "ReductionSum"},
    Value.ROUND_MODE: {"none": "RoundModeNone", "trunc": "RoundModeTrunc", "floor": "RoundModeFloor"},
    Value.MEMORY_FORMAT: {
        "contiguous": "Contiguous",
        "channels_last": "ChannelsLast",
        "channels_last_3d": "ChannelsLast3d",
        "preserve": "Preserve",
        "channels_last_1d": "ChannelsLast1d",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueType:
    """An argument that is not a tensor, one or a list of them."""

    value: Value  # e.g. Value.INT
    optional: bool = False  # e.g. True for "int?"
    many: bool = False  # e.g. True for "int[]" and "int[2]"
    length: int | None = None  # e.g. 2 for "int[2]"
    words: tuple[str, ...] = ()  # e.g. ("none", "tanh") for "str(none, tanh)"; empty: any text

    def __str__(self) -> str:
        brackets = f"[{'' if self.length is None else self.length}]" if self.many else ""
        words = "(" + ", ".join(word or '""' for word in self.words) + ")" if self.words else ""
        return f"{self.value.value}{words}{brackets}{'?' if self.optional else ''}"


Type = TensorType | ValueType


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeName:
    """The shape of an argument, or an argument itself inside a call."""

    name: str  # e.g. "input"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeCall:
    """A shape computed by a rule; rules are C++ functions of runtime_cpp/torch/shapes/shapes.h."""

    rule: str  # e.g. "broadcast"
    args: tuple["Length", ...]  # e.g. (input, other)

    def __str__(self) -> str:
        return f"{self.rule}({', '.join(map(str, self.args))})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeArithmetic:
    """A length computed from others; a quotient is rounded down."""

    operator: str  # e.g. "*"
    left: "Length"
    right: "Length"

    def __str__(self) -> str:
        left = self._grouped(self.left, tighter=False)
        return f"{left} {self.operator} {self._grouped(self.right, tighter=True)}"

    def _grouped(self, side: "Length", tighter: bool) -> str:
        """In brackets where it would be read otherwise without."""
        if not isinstance(side, ShapeArithmetic):
            return str(side)
        loose = _STRENGTH[side.operator] - (1 if tighter else 0) < _STRENGTH[self.operator]
        return f"({side})" if loose else str(side)


_STRENGTH = {"+": 0, "-": 0, "*": 1, "/": 1}

ANY = "any"  # instead of a name: a shape, or inside `shape(...)` a length, that only the data decide
Shape = ShapeName | ShapeCall
Length = Shape | ShapeArithmetic | int


def parts(length: Length) -> Iterator[ShapeName | ShapeCall]:
    """The names and calls that `length` is made of, itself first."""
    match length:
        case ShapeName():
            yield length
        case ShapeCall():
            yield length
            for arg in length.args:
                yield from parts(arg)
        case ShapeArithmetic():
            yield from parts(length.left)
            yield from parts(length.right)
        case int():
            return
        case _:
            assert_never(length)


def negative_lengths(length: Length) -> tuple[int, ...]:
    """The lengths that `shape(...)` gives and that no dimension can have."""
    calls = (part for part in parts(length) if isinstance(part, ShapeCall) and part.rule == "shape")
    return tuple(arg for call in calls for arg in call.args if isinstance(arg, int) and arg < 0)


def shape_names(length: Length) -> tuple[str, ...]:
    """The arguments that `length` names."""
    return tuple(part.name for part in parts(length) if isinstance(part, ShapeName) and part.name != ANY)

"""The lists of element types that C++ goes through by macro."""

from collections.abc import Iterable
from dataclasses import dataclass

from diopigen.vocabulary.dtype import DType, DTypes, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class MacroList:
    """One macro and its lines; e.g. `DIOPI_FOR_EACH_FLOAT(_)` with `_(float16, 11, 5)`."""

    macro: str
    comment: str
    rows: tuple[str, ...]


def dtype_lists(dtypes: DTypes) -> tuple[MacroList, ...]:
    """In the order of dtypes.yaml."""
    types = dtypes.types
    integers = [t for t in types if t.kind is Kind.INTEGER]
    floats = [t for t in types if t.kind is Kind.FLOAT]
    parts = [(t, dtypes.real_of(t)) for t in types if t.kind is Kind.COMPLEX]
    each = "DIOPI_FOR_EACH_{}(_)"
    return (
        _list(each.format("DTYPE"), "`_(dtype, bytes)` for every element type.", ((t, t.size) for t in types)),
        _list(each.format("INTEGER"), "`_(dtype, C type)` for every integer.", ((t, t.cpp) for t in integers)),
        _list(
            each.format("FLOAT"),
            "`_(dtype, digits, exponent)` for every float: the bits of its significand and of its exponent.",
            ((t, f"{t.digits}, {t.exponent}") for t in floats),
        ),
        _list(each.format("COMPLEX"), "`_(dtype, dtype of its parts)` for every complex type.", parts),
        _list(
            each.format("CPP_DTYPE"),
            "`_(dtype, C++ type)` for what portable kernels load and store.",
            ((t, t.cpp) for t in types if t.cpp is not None),
        ),
        _list(
            each.format("TORCH_DTYPE"),
            "`_(dtype, c10::ScalarType)` for what PyTorch has.",
            ((t, t.scalar_type) for t in types if t.scalar_type is not None),
        ),
        _set("storable", tuple(t for t in types if t.cpp is not None)),
        *(_set(each.name, each.members) for each in dtypes.sets if all(t.cpp is not None for t in each.members)),
    )


def _list(macro: str, comment: str, rows: Iterable[tuple[DType, object]]) -> MacroList:
    spelled = ((dtype.word, fact.word if isinstance(fact, DType) else fact) for dtype, fact in rows)
    return MacroList(macro=macro, comment=comment, rows=tuple(f"_({word}, {fact})" for word, fact in spelled))


def _set(name: str, members: tuple[DType, ...]) -> MacroList:
    types = ", ".join(str(t.cpp) for t in members)
    return MacroList(macro=f"DIOPI_{name.upper()}_TYPES", comment=f"The C++ types of the set `{name}`.", rows=(types,))

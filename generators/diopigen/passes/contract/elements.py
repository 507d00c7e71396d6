"""Which element types the cases of a function take, and what they make of its outputs."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import assert_never

from diopigen.model.op import Form, Function, Role
from diopigen.model.type import Accumulate, ComplexOf, Element, Fixed, FloatOf, Promote, RealOf, Var
from diopigen.vocabulary.dtype import DEFAULT, DType, DTypes, DTypeSet, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Weak:
    """The kind of a plain number where a tensor could stand: it only widens the kind of its partners."""

    kind: Kind  # e.g. Kind.FLOAT for the 0.5 of `input * 0.5`


Environment = dict[str, DType | Weak]

_RANK = {Kind.BOOL: 0, Kind.INTEGER: 1, Kind.FLOAT: 2, Kind.COMPLEX: 3}

# Pairs that mixed-type functions meet in practice; each is taken where both variables allow it.
_PAIRS = (
    ("f32", "i64"),
    ("i64", "f32"),
    ("f16", "f32"),
    ("f32", "bf16"),
    ("f32", "f64"),
    ("i32", "i64"),
    ("u8", "i8"),
    ("i16", "u8"),
    ("bool", "f32"),
    ("i64", "bool"),
)

# What functions that convert meet besides: fractions, signs and imaginary parts that get lost, rounding.
_REAL = (("f32", "f16"), ("f64", "bf16"), ("f32", "i32"), ("f32", "bool"), ("i32", "bool"))
_COMPLEX = (
    ("f32", "c64"),
    ("c64", "f32"),
    ("i64", "c128"),
    ("c128", "i32"),
    ("c64", "bool"),
    ("bool", "c64"),
    ("c64", "c128"),
)
_CONVERTED = (*_PAIRS, *_REAL, *_COMPLEX)


def main_dtype(members: DTypeSet) -> DType:
    """The type that every row runs in: f32 where it is allowed, else i64, else the first."""
    by_name = {t.name: t for t in members.members}
    return by_name.get("f32") or by_name.get("i64") or members.members[0]


def variables(function: Function) -> tuple[tuple[str, DTypeSet], ...]:
    """The variables that a case must choose: the parameters', and for a backward function its forward's."""
    if function.form is Form.BACKWARD:
        return function.elements
    used = {
        name
        for param in function.params
        if param.tensor is not None and not (function.form.scalar and isinstance(param.tensor.element, Promote))
        for name in _names(param.tensor.element)
    }
    return tuple((name, members) for name, members in function.elements if name in used)


def main_choice(function: Function) -> dict[str, DType]:
    """The main type of every variable."""
    return {name: main_dtype(members) for name, members in variables(function)}


def other_choices(function: Function) -> Iterator[dict[str, DType]]:
    """Each type of each variable once, partners following where they can, then mixed pairs."""
    main = main_choice(function)
    seen = [main]
    for choice in (*_single_choices(function, main), *_pair_choices(function, main)):
        if choice not in seen:
            seen.append(choice)
            yield choice


def _names(element: Element) -> tuple[str, ...]:
    match element:
        case Var():
            return (element.name,)
        case Fixed():
            return ()
        case Promote():
            return tuple(name for part in element.elements for name in _names(part))
        case FloatOf() | Accumulate() | ComplexOf() | RealOf():
            return _names(element.element)
        case _:
            assert_never(element)


def _single_choices(function: Function, main: dict[str, DType]) -> Iterator[dict[str, DType]]:
    for name, members in variables(function):
        for dtype in members.members:
            yield {
                other: (dtype if other == name or (follows(main, name, other) and dtype in allowed) else main[other])
                for other, allowed in variables(function)
            }


def follows(main: dict[str, DType], name: str, other: str) -> bool:
    """Whether `other` takes the type that `name` takes: variables with the same main type do."""
    return main[name] == main[other]


def _pair_choices(function: Function, main: dict[str, DType]) -> Iterator[dict[str, DType]]:
    converted = _converted_pairs(function)
    for first, second in (*_promoted_pairs(function), *converted):
        sets = dict(variables(function))
        for left, right in _CONVERTED if (first, second) in converted else _PAIRS:
            a = next((t for t in sets[first].members if t.name == left), None)
            b = next((t for t in sets[second].members if t.name == right), None)
            if a is not None and b is not None:
                yield {**main, first: a, second: b}


def _promoted_pairs(function: Function) -> Iterator[tuple[str, str]]:
    known = [name for name, _ in variables(function)]
    found: dict[tuple[str, str], None] = {}
    for param in function.params:
        if param.tensor is not None:
            _collect_pairs(param.tensor.element, known, found)
    if function.form.inplace and len(known) > 1 and function.kernel is not None:
        found[known[0], known[1]] = None
    yield from found


def _converted_pairs(function: Function) -> tuple[tuple[str, str], ...]:
    """What is read with what is written where the written type is nothing but itself. e.g. (("T", "U"),) of a cast."""
    tensors = [(p.role, p.tensor.element) for p in function.params if p.tensor is not None]
    read = [e.name for role, e in tensors if role is Role.IN and isinstance(e, Var)]
    written = [e.name for role, e in tensors if role in (Role.OUT, Role.INOUT) and isinstance(e, Var)]
    if function.kernel is not None or len(tensors) != 2 or len(read) != 1 or len(written) != 1 or read == written:
        return ()
    return ((read[0], written[0]),)


def _collect_pairs(element: Element, known: list[str], found: dict[tuple[str, str], None]) -> None:
    match element:
        case Promote():
            names = [e.name for e in element.elements if isinstance(e, Var) and e.name in known]
            found.update(dict.fromkeys(pairwise(names)))
            for part in element.elements:
                _collect_pairs(part, known, found)
        case FloatOf() | Accumulate() | ComplexOf() | RealOf():
            _collect_pairs(element.element, known, found)
        case Var() | Fixed():
            pass
        case _:
            assert_never(element)


def resolve(element: Element, chosen: Environment, dtypes: DTypes) -> DType | Weak:
    """The type that `element` is when the variables are as `chosen`."""
    match element:
        case Var():
            return chosen.get(element.name) or Weak(kind=Kind.BOOL)
        case Fixed():
            return element.dtype
        case Promote():
            parts = (resolve(part, chosen, dtypes) for part in element.elements)
            return reduce(lambda a, b: promote(a, b, dtypes), parts)
        case FloatOf():
            inner = resolve(element.element, chosen, dtypes)
            return inner if _RANK[inner.kind] >= _RANK[Kind.FLOAT] else _named("f32", dtypes)
        case Accumulate():
            inner = resolve(element.element, chosen, dtypes)
            return inner if _RANK[inner.kind] >= _RANK[Kind.FLOAT] else _named("i64", dtypes)
        case ComplexOf():
            return dtypes.complex_of(fixed(resolve(element.element, chosen, dtypes), dtypes))
        case RealOf():
            return dtypes.real_of(fixed(resolve(element.element, chosen, dtypes), dtypes))
        case _:
            assert_never(element)


def promote(a: DType | Weak, b: DType | Weak, dtypes: DTypes) -> DType | Weak:
    """PyTorch's common type of two tensors, or of a tensor and a plain number."""
    if isinstance(a, Weak) or isinstance(b, Weak):
        return _promote_weak(a, b, dtypes)
    if {a.kind, b.kind} == {Kind.FLOAT, Kind.COMPLEX}:  # parts as wide as the wider of the two: f64 with c64 is c128
        whole, real = (a, b) if a.kind is Kind.COMPLEX else (b, a)
        return whole if 2 * real.size <= whole.size else dtypes.complex_of(real)
    if a == b or _RANK[a.kind] != _RANK[b.kind]:
        return a if _RANK[a.kind] >= _RANK[b.kind] else b
    if a.kind is Kind.INTEGER and a.signed != b.signed:
        signed, unsigned = (a, b) if a.signed else (b, a)
        return signed if signed.size > unsigned.size else _next_signed(unsigned, dtypes)
    if a.size == b.size:  # f16 and bf16: neither holds the other
        return _named("f32", dtypes)
    return a if a.size > b.size else b


def _next_signed(unsigned: DType, dtypes: DTypes) -> DType:
    """The smallest integer that holds all of `unsigned`; int64 where none does."""
    signed = [t for t in dtypes.types if t.kind is Kind.INTEGER and t.signed]
    return next((t for t in signed if t.value_bits >= unsigned.value_bits), signed[-1])


def _promote_weak(a: DType | Weak, b: DType | Weak, dtypes: DTypes) -> DType | Weak:
    strong, weak = (b, a) if isinstance(a, Weak) else (a, b)
    if _RANK[strong.kind] >= _RANK[weak.kind]:
        return strong
    return weak if isinstance(strong, Weak) else _named(DEFAULT[weak.kind], dtypes)


def fixed(dtype: DType | Weak, dtypes: DTypes) -> DType:
    """The type itself; for a plain number PyTorch's default type of its kind."""
    return dtype if isinstance(dtype, DType) else _named(DEFAULT[dtype.kind], dtypes)


def castable(source: DType | Weak, target: DType) -> bool:
    """Whether PyTorch lets a result of type `source` be written into a tensor of type `target`."""
    return _RANK[source.kind] <= _RANK[target.kind]


def _named(name: str, dtypes: DTypes) -> DType:
    dtype = dtypes.named(name)
    assert dtype is not None, f"dtypes.yaml lacks '{name}'"
    return dtype

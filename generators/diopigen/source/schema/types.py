"""Reads type lines: `Tensor<T>? = null`, `int[2] = 1`, `new Tensor<T> like input`."""

import math
from dataclasses import dataclass
from typing import Any

import lark

from diopigen.diagnostics import Diagnostics
from diopigen.model.op import Literal, Role
from diopigen.model.type import (
    Accumulate,
    ComplexOf,
    Element,
    Fixed,
    FloatOf,
    Length,
    Promote,
    RealOf,
    Shape,
    ShapeArithmetic,
    ShapeCall,
    ShapeName,
    TensorType,
    Type,
    Value,
    ValueType,
    Var,
)
from diopigen.source.schema.grammar import parse_tree
from diopigen.source.yaml.nodes import Leaf, at_offset
from diopigen.text import suggestion
from diopigen.vocabulary.dtype import DTypes

_ROLES = {None: Role.IN, "inout": Role.INOUT, "new": Role.CALLEE_OUT, "host": Role.HOST_OUT}
_VALUES = {value.value: value for value in Value}
_COMPUTED: dict[str, type[FloatOf | Accumulate | ComplexOf | RealOf]] = {
    "float": FloatOf,
    "sum": Accumulate,
    "complex": ComplexOf,
    "real": RealOf,
}
_FUNCTIONS = ("promote", *_COMPUTED)


class _Bad(Exception):
    """The line parses but means nothing; carries the diagnostic's parts."""

    def __init__(self, code: str, message: str, token: lark.Token | None, hint: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.token, self.hint = code, message, token, hint


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeLine:
    """What one line says."""

    type: Type
    role: Role
    scalar: bool
    default: Literal
    has_default: bool
    shape: Shape | None


def parse_arg(leaf: Leaf, dtypes: DTypes, diagnostics: Diagnostics) -> TypeLine | None:
    """A line under `args:`, or None after a diagnostic."""
    return _line(leaf, "arg", dtypes, diagnostics)


def parse_out(leaf: Leaf, dtypes: DTypes, diagnostics: Diagnostics) -> TypeLine | None:
    """A line under `out:`, or None after a diagnostic."""
    return _line(leaf, "out", dtypes, diagnostics)


def parse_keep(leaf: Leaf, dtypes: DTypes, diagnostics: Diagnostics) -> Type | None:
    """A type alone, or None after a diagnostic."""
    line = _line(leaf, "keep", dtypes, diagnostics)
    return None if line is None else line.type


def _line(leaf: Leaf, start: str, dtypes: DTypes, diagnostics: Diagnostics) -> TypeLine | None:
    tree = parse_tree(leaf, "types", start, "a type", diagnostics)
    if tree is None:
        return None
    try:
        return _read_line(tree, dtypes)
    except _Bad as bad:
        token = bad.token
        span = leaf.span if token is None else at_offset(leaf, token.start_pos or 0, len(token))
        diagnostics.error(bad.code, bad.message, span, bad.hint)
        return None


def _read_line(tree: Any, dtypes: DTypes) -> TypeLine:
    if tree.data == "keep":
        modifier, scalar, literal, shape = None, None, None, None
        type_tree = tree.children[0]
    elif tree.data == "out":
        modifier, type_tree, shape = tree.children
        scalar, literal = None, None
        if modifier == "inout":
            raise _Bad("bad-modifier", "an output cannot be 'inout'", modifier, "list it under args")
    else:
        modifier, type_tree, scalar, literal = tree.children
        shape = None
        if modifier is not None and modifier != "inout":
            raise _Bad("bad-modifier", f"an argument cannot be '{modifier}'", modifier, "list it under out")
    type_ = _read_type(type_tree, dtypes, host=modifier == "host")
    role = Role.OUT if tree.data == "out" and modifier is None else _ROLES[modifier and str(modifier)]
    return TypeLine(
        type=type_,
        role=role,
        scalar=scalar is not None,
        default=None if literal is None else _read_literal(literal),
        has_default=literal is not None,
        shape=None if shape is None else _read_shape(shape),
    )


def _read_type(tree: Any, dtypes: DTypes, host: bool) -> Type:
    if tree.data == "tensor":
        name, element, optional, count = tree.children
        if name != "Tensor":
            hint = suggestion(str(name), ("Tensor",)) or "only 'Tensor' has an element type"
            raise _Bad("unknown-type", f"there is no type '{name}<...>'", name, hint)
        return TensorType(
            element=_read_element(element, dtypes),
            optional=optional is not None,
            count=None if count is None else str(count),
        )
    name, many, optional = tree.children
    word = str(name)
    if word == "Tensor":
        raise _Bad("bad-type", "a tensor needs its element type", name, "write 'Tensor<T>'")
    if word not in _VALUES:
        raise _Bad("unknown-type", f"there is no type '{word}'", name, suggestion(word, (*_VALUES, "Tensor")))
    words: tuple[str, ...] = ()
    length = None
    if many is not None and many.data == "words":
        words = tuple(str(child).strip('"') for child in many.children)
        if word != Value.STR.value:
            raise _Bad("bad-type", f"only a str lists its words, not '{word}'", name, "remove the list")
    elif many is not None and many.children[0] is not None:
        length = int(str(many.children[0]))
    return ValueType(
        value=_VALUES[word],
        optional=optional is not None,
        many=many is not None and not words,
        length=length,
        words=words,
    )


def _read_element(tree: Any, dtypes: DTypes) -> Element:
    name = tree.children[0]
    if tree.data == "plain":
        dtype = dtypes.named(str(name))
        if dtype is not None:
            return Fixed(dtype=dtype)
        if dtypes.set_named(str(name)) is not None:
            raise _Bad(
                "bad-element",
                f"'{name}' is a set of dtypes",
                name,
                "name a variable and give it the set in 'where'",
            )
        if not name[0].isupper():
            known = (t.name for t in dtypes.types)
            raise _Bad("unknown-dtype", f"there is no dtype '{name}'", name, suggestion(str(name), known))
        return Var(name=str(name))
    elements = tuple(_read_element(child, dtypes) for child in tree.children[1:])
    if name == "promote" and len(elements) > 1:
        return Promote(elements=elements)
    if name in _COMPUTED and len(elements) == 1:
        return _COMPUTED[str(name)](element=elements[0])
    raise _Bad(
        "bad-element",
        f"'{name}' with {len(elements)} elements is not an element type",
        name,
        (None if name in _FUNCTIONS else suggestion(str(name), _FUNCTIONS))
        or "promote(T, U), float(T), sum(T), complex(T) and real(T) are",
    )


def _read_shape(tree: Any) -> Shape:
    name = str(tree.children[0])
    if tree.data == "shape_name":
        return ShapeName(name=name)
    args = tuple(_read_length(child) for child in tree.children[1:] if isinstance(child, lark.Tree))
    return ShapeCall(rule=name, args=args)


def _read_length(tree: Any) -> Length:
    if tree.data == "shape_int":
        return int(str(tree.children[0]))
    if tree.data == "shape_arithmetic":
        left, operator, right = tree.children
        return ShapeArithmetic(operator=str(operator), left=_read_length(left), right=_read_length(right))
    return _read_shape(tree)


def _read_literal(tree: Any) -> Literal:
    if tree.data == "many_literals":
        return tuple(_read_literal(child) for child in tree.children if isinstance(child, lark.Tree))
    text = str(tree.children[0])
    if tree.data == "string":
        return text[1:-1]
    if tree.data == "word":
        return {"true": True, "false": False, "null": None}.get(text, text)
    value = float(text) if any(c in text for c in ".eEin") else int(text)
    if math.isinf(value) and "inf" not in text:
        raise _Bad(
            "out-of-range", f"{text} is out of range for float", tree.children[0], "write 'inf' if that is intended"
        )
    return value

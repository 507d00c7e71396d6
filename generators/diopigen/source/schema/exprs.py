"""Reads the expressions of kernel:, derive: and data:, and the calls of compose:, into trees."""

import math
from collections.abc import Sequence
from typing import Any

import lark

from diopigen.diagnostics import Diagnostics
from diopigen.model.compose import Argument, Step
from diopigen.model.expr import Binary, Call, Expr, Name, Number, Text, Unary
from diopigen.source.schema.grammar import parse_tree
from diopigen.source.yaml.nodes import Leaf, at_offset


def parse_expr(leaf: Leaf, diagnostics: Diagnostics) -> Expr | None:
    """The expression of `leaf`, or None after a diagnostic."""
    tree = _tree(leaf, "start", "an expression", diagnostics)
    return None if tree is None else _read(tree)


def parse_step(leaf: Leaf, diagnostics: Diagnostics) -> Step | None:
    """The call of `leaf`, e.g. "add(out, product, bias, alpha=2)", or None after a diagnostic."""
    tree = _tree(leaf, "step", "a call", diagnostics)
    if tree is None:
        return None
    callee, *args = (child for child in tree.children if child is not None)
    return Step(callee=str(callee), args=tuple(_argument(arg, leaf) for arg in args), span=leaf.span)


def _tree(leaf: Leaf, start: str, what: str, diagnostics: Diagnostics) -> lark.Tree[lark.Token] | None:
    """The tree of `leaf`; None after a diagnostic, as of a number that no float holds."""
    tree = parse_tree(leaf, "expr", start, what, diagnostics)
    tokens = () if tree is None else tree.scan_values(lambda value: isinstance(value, lark.Token))
    for token in tokens:
        if token.type == "NUMBER" and math.isinf(float(token)) and token != "inf":
            span = at_offset(leaf, token.start_pos or 0, len(token))
            diagnostics.error(
                "out-of-range", f"{token} is out of range for float", span, "write 'inf' if that is intended"
            )
            tree = None
    return tree


def _argument(tree: Any, leaf: Leaf) -> Argument:
    name, value = tree.children
    tokens = [token for token in tree.scan_values(lambda value: isinstance(value, lark.Token))]
    start = min((token.start_pos for token in tokens), default=0)
    end = max((token.end_pos for token in tokens), default=start + 1)
    span = at_offset(leaf, start, end - start)
    return Argument(name=None if name is None else str(name), value=_operand(value), span=span)


def _operand(node: Any) -> Expr | tuple[Expr, ...]:
    if node.data == "list":
        return tuple(_read(child) for child in node.children if child is not None)
    return _read(node)


def _read(node: lark.Tree[lark.Token] | lark.Token | None) -> Expr:
    assert isinstance(node, lark.Tree)
    children = node.children
    match node.data:
        case "number":
            return Number(text=_number(str(children[0])))
        case "string":
            return Text(text=str(children[0])[1:-1])
        case "name":
            return Name(name=str(children[0]))
        case "negative":
            return Unary(op="-", operand=_read(children[0]))
        case "invert":
            return Unary(op="~", operand=_read(children[0]))
        case "not_":
            return Unary(op="not", operand=_read(children[0]))
        case "or_" | "and_":
            return _joined(str(node.data)[:-1], [_read(child) for child in children])
        case "call":
            args = tuple(_read(child) for child in children[1:] if child is not None)
            return Call(function=str(children[0]), args=args)
        case _:
            return _chained(children)


def _number(text: str) -> str:
    """Without zeros in front, by which C++ means octal numbers."""
    return text.lstrip("0").rjust(1, "0") if text.isdigit() else text


def _joined(op: str, operands: list[Expr]) -> Expr:
    result = operands[0]
    for operand in operands[1:]:
        result = Binary(op=op, left=result, right=operand)
    return result


def _chained(children: Sequence[Any]) -> Expr:
    """`a - b + c` from left to right; a comparison has one operator or none."""
    present = [child for child in children if child is not None]
    result = _read(present[0])
    for op, operand in zip(present[1::2], present[2::2], strict=True):
        result = Binary(op=str(op), left=result, right=_read(operand))
    return result

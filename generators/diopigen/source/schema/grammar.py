"""Parses a line of a schema with one of the grammars; a bad line becomes a diagnostic at its column."""

from functools import cache
from pathlib import Path

import lark

from diopigen.diagnostics import Diagnostics
from diopigen.source.yaml.nodes import Leaf, at_offset

_DEEPEST = 150  # of a tree; the deepest of the schemas has 30


# What a text can be, by grammar: tables for all are made at once.
_STARTS = {"types": ["arg", "out", "keep"], "expr": ["start", "step"]}


@cache
def _parser(grammar: str) -> lark.Lark:
    text = (Path(__file__).parent / f"{grammar}.lark").read_text(encoding="utf-8")
    return lark.Lark(text, start=_STARTS[grammar], parser="lalr", propagate_positions=False, maybe_placeholders=True)


@cache
def _tree(grammar: str, start: str, text: str) -> lark.Tree[lark.Token]:
    return _parser(grammar).parse(text, start=start)


def parse_tree(
    leaf: Leaf, grammar: str, start: str, what: str, diagnostics: Diagnostics
) -> lark.Tree[lark.Token] | None:
    """The tree of `leaf`'s text, or None after a diagnostic; `what` names it: "a type", "an expression"."""
    if not leaf.text.strip():
        diagnostics.error("empty", f"{what} is missing here", leaf.span)
        return None
    try:
        tree = _tree(grammar, start, leaf.text)
    except lark.UnexpectedInput as error:
        offset = _offset(error, leaf.text)
        diagnostics.error(
            "syntax",
            f"'{_shortened(leaf.text)}' is not {what}",
            at_offset(leaf, offset),
            _expectation(error),
        )
        return None
    if _too_deep(tree):
        diagnostics.error("too-deep", f"'{_shortened(leaf.text)}' is nested too deeply", leaf.span, "split it")
        return None
    return tree


def _too_deep(tree: lark.Tree[lark.Token]) -> bool:
    """Whether a tree cannot be read by recursion; a chain of operators becomes half as deep as it has children."""
    open_: list[tuple[lark.Tree[lark.Token], int]] = [(tree, 0)]
    while open_:
        node, depth = open_.pop()
        depth += 1 + len(node.children) // 2
        if depth > _DEEPEST:
            return True
        open_ += [(child, depth) for child in node.children if isinstance(child, lark.Tree)]
    return False


def _offset(error: lark.UnexpectedInput, text: str) -> int:
    """Where the parser stopped; behind the last character if something is missing there."""
    token = getattr(error, "token", None)
    if token is not None and token.type == "$END":
        return len(text)
    return error.pos_in_stream if error.pos_in_stream is not None else len(text)


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


_READABLE = {
    "$END": "the end",
    "NAME": "a name",
    "INT": "a number",
    "NUMBER": "a number",
    "SIGNED_INT": "a number",
    "SIGNED_NUMBER": "a number",
    "STRING": "a quoted word",
    "OPTIONAL": "'?'",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "LESSTHAN": "'<'",
    "MORETHAN": "'>'",
    "COMMA": "','",
    "EQUAL": "'='",
    "VBAR": "'|'",
    "LIKE": "'like'",
    "TENSOR": "a type",
    "MINUS": "'-'",
    "TILDE": "'~'",
    "NOT": "'not'",
    "AND": "'and'",
    "OR": "'or'",
    "COMPARE": "a comparison",
    "BITWISE": "'&', '|' or '^'",
    "ADDITIVE": "'+' or '-'",
    "MULTIPLICATIVE": "'*' or '/'",
    "SCALAR_FORM": "'Scalar'",
    "MODIFIER": "'inout', 'new' or 'host'",
}


def _expectation(error: lark.UnexpectedInput) -> str | None:
    expected = getattr(error, "accepts", None) or getattr(error, "allowed", None) or getattr(error, "expected", ())
    readable = sorted({_READABLE[name] for name in expected or () if name in _READABLE})
    return f"expected {', '.join(readable)}" if 0 < len(readable) <= 6 else None

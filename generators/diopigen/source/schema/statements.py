"""Reads the statements of `compose:`: temporaries, calls and conditions."""

from collections.abc import Iterator
from dataclasses import replace

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.compose import Choice, Statement, Temporary
from diopigen.model.op import Role
from diopigen.model.type import TensorType
from diopigen.source.schema.exprs import parse_expr, parse_step
from diopigen.source.schema.types import parse_out
from diopigen.source.yaml.nodes import Entry, Leaf, Mapping, Node, Sequence
from diopigen.vocabulary.dtype import DTypes

_IF, _ELSE = "if ", "else"


def parse_statements(node: Node | None, dtypes: DTypes, diagnostics: Diagnostics) -> tuple[Statement, ...]:
    """The statements of a list, without those that have diagnostics."""
    items = node.items if isinstance(node, Sequence) else ()
    return tuple(s for item in items for s in _statements(item, dtypes, diagnostics))


def _statements(node: Node, dtypes: DTypes, diagnostics: Diagnostics) -> Iterator[Statement]:
    if isinstance(node, Leaf):
        step = parse_step(node, diagnostics)
        if step is not None:
            yield step
    elif isinstance(node, Mapping) and node.entries and node.entries[0].key.text.startswith(_IF):
        choice = _choice(node, dtypes, diagnostics)
        if choice is not None:
            yield choice
    elif isinstance(node, Mapping):
        for entry in node.entries:
            temporary = _temporary(entry, dtypes, diagnostics)
            if temporary is not None:
                yield temporary


def _choice(node: Mapping, dtypes: DTypes, diagnostics: Diagnostics) -> Choice | None:
    first, *others = node.entries
    for entry in (first, *others):
        if not isinstance(entry.value, Sequence):
            diagnostics.error(
                "wrong-kind",
                f"'{entry.key.text}' needs a list here",
                entry.key.span,
                "write a '-' before each statement",
            )
    for entry in others:
        if entry.key.text != _ELSE:
            diagnostics.error(
                "unknown-key",
                f"a condition has no property '{entry.key.text}'",
                entry.key.span,
                "only 'else' follows",
            )
    text = first.key.text.removeprefix(_IF)
    indent = len(first.key.text) - len(text)
    span = first.key.span
    leaf = Leaf(text=text, quoted=first.key.quoted, span=_from(span, indent))
    condition = parse_expr(leaf, diagnostics)
    if condition is None:
        return None
    return Choice(
        condition=condition,
        then=parse_statements(first.value, dtypes, diagnostics),
        otherwise=parse_statements(node.get(_ELSE), dtypes, diagnostics),
        span=span,
    )


def _from(span: Span, offset: int) -> Span:
    return replace(span, column=span.column + offset, length=max(1, span.length - offset))


def _temporary(entry: Entry, dtypes: DTypes, diagnostics: Diagnostics) -> Temporary | None:
    if not isinstance(entry.value, Leaf):
        diagnostics.error(
            "wrong-kind",
            f"'{entry.key.text}' needs a type here",
            entry.key.span,
            "write 'Tensor<T> like input'",
        )
        return None
    line = parse_out(entry.value, dtypes, diagnostics)
    if line is None:
        return None
    if (
        not isinstance(line.type, TensorType)
        or line.type.optional
        or line.type.count is not None
        or line.shape is None
        or line.role is not Role.OUT
    ):
        diagnostics.error(
            "bad-temporary",
            f"the temporary '{entry.key.text}' needs an element type and a shape",
            entry.value.span,
            "write 'Tensor<T> like' and a tensor",
        )
        return None
    return Temporary(name=entry.key.text, type=line.type, shape=line.shape, span=entry.key.span)

"""Nodes to values: texts, pairs and literals below a node of YAML; a node of another kind, or none, gives nothing."""

from collections.abc import Iterator

from diopigen.diagnostics import Span
from diopigen.model.op import Literal
from diopigen.source.yaml.nodes import Leaf, Mapping, Node, Sequence


def items(node: Node | None) -> tuple[Node, ...]:
    return node.items if isinstance(node, Sequence) else ()


def leaf_text(node: Node | None) -> str | None:
    return node.text if isinstance(node, Leaf) and node.value is not None else None


def leaf_texts(node: Node | None) -> tuple[str, ...]:
    return tuple(item.text for item in items(node) if isinstance(item, Leaf))


def text_pairs(node: Node | None) -> tuple[tuple[str, str], ...]:
    """Keys and values as text; a null value is the empty text."""
    entries = node.entries if isinstance(node, Mapping) else ()
    return tuple((e.key.text, leaf_text(e.value) or "") for e in entries)


def listed_texts(node: Node | None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Keys, and the texts of their lists."""
    entries = node.entries if isinstance(node, Mapping) else ()
    return tuple((entry.key.text, leaf_texts(entry.value)) for entry in entries)


def whole_numbers(node: Node | None) -> tuple[tuple[str, int], ...]:
    return tuple((name, int(number)) for name, number in text_pairs(node))


def spanned(node: Node | None) -> tuple[tuple[str, Span], ...]:
    found = (node,) if isinstance(node, Leaf) else items(node)
    return tuple((leaf.text, leaf.span) for leaf in found if isinstance(leaf, Leaf))


def leaves(node: Node | None) -> Iterator[Leaf]:
    match node:
        case Leaf():
            yield node
        case Sequence():
            for item in node.items:
                yield from leaves(item)
        case Mapping():
            for entry in node.entries:
                yield from leaves(entry.value)


def literal(node: Node) -> Literal:
    match node:
        case Leaf():
            return node.value
        case Sequence():
            return tuple(literal(item) for item in node.items)
        case Mapping():
            return tuple((entry.key.text, literal(entry.value)) for entry in node.entries)

"""Text to entries: where each one of a schema file is, which names it defines; parts of the file may be no YAML."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, zip_longest

from diopigen.diagnostics import Diagnostics, Part, Span
from diopigen.passes.contract.expand import names_of
from diopigen.passes.contract.plain_values import leaf_text, text_pairs
from diopigen.source.yaml import nodes
from diopigen.source.yaml.nodes import Mapping, Node, root_of
from diopigen.text import pascal

_KEY = re.compile(r"^(?=[A-Za-z_'\"])", re.MULTILINE)  # where an entry begins


def entries_of(text: str, shown: str, diagnostics: Diagnostics) -> Iterator[nodes.Entry]:
    """The entries of a text; where it is no YAML, of those of its pieces that are."""
    syntax = Diagnostics()
    node = root_of(text, shown, syntax, empty=False)
    if node is not None:
        yield from _of_node(node, syntax, diagnostics)
        return
    failed, line = False, 0
    for before, after in pairwise(pieces(text)):
        line += before.count("\n")
        own = Diagnostics()
        piece = root_of("\n" * line + after, shown, own)
        if piece is not None:
            yield from _of_node(piece, own, diagnostics)
            continue
        failed = True
        diagnostics.add(*own.found)
        _lose(Span(path=shown, line=line + 1, column=1), diagnostics)
    if not failed:  # each entry by itself is sound
        diagnostics.add(*syntax.found)
        _lose(Span(path=shown, line=1, column=1), diagnostics)


def pieces(text: str) -> list[str]:
    """What stands before the first entry, and each entry up to the next one."""
    starts = [found.start() for found in _KEY.finditer(text)]
    return [text[start:end] for start, end in zip_longest([0, *starts], starts)]


def _of_node(node: Node, syntax: Diagnostics, diagnostics: Diagnostics) -> Iterator[nodes.Entry]:
    """The entries in whose lines the YAML itself had no mistake; the others are lost."""
    diagnostics.add(*syntax.found)
    if not isinstance(node, Mapping):
        diagnostics.error("wrong-kind", "a schema file is a mapping from op names to entries", node.span)
        _lose(replace(node.span, column=1), diagnostics)
        return
    ends = [entry.key.span.line for entry in node.entries[1:]]
    for entry, end in zip_longest(node.entries, ends):
        start = entry.key.span.line
        inside = [d for d in syntax.found if start <= d.span.line and (end is None or d.span.line < end)]
        others = [d.span for d in inside if d.span.column == 1]  # entries whose names are those of others, or none
        for span in others:
            _lose(span, diagnostics)
        if len(others) == len(inside):
            yield entry
        else:
            diagnostics.parts.append(part_of(entry))


def _lose(span: Span, diagnostics: Diagnostics) -> None:
    """Of the entry at `span` not even the name is known."""
    diagnostics.parts.append(Part(span=span, names=frozenset(), readable=False))


def part_of(entry: nodes.Entry) -> Part:
    """Where an entry is, and the names that it defines."""
    name, node = entry.key.text, (
        entry.value if isinstance(entry.value, Mapping) else Mapping(entries=(), span=entry.key.span)
    )
    backward = node.get("backward")
    own = backward.get("name") if isinstance(backward, Mapping) else None
    stems = (*(stem for _, stem in text_pairs(node.get("names"))), leaf_text(own) or "")
    words = leaf_text(node.get("name")) or pascal(name)
    return Part(span=entry.key.span, names=names_of(name, words, stems), readable=is_op_name(name))


def is_op_name(op: str) -> bool:
    """Lower case, digits and '_', a letter first."""
    return op.isidentifier() and op[0].islower() and op == op.lower()

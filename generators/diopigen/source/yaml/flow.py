"""Mappings and sequences in brackets: on one line where they fit, else broken behind commas."""

import re
from collections.abc import Iterable

from diopigen.source.yaml.layout import Group, Layout, Text, Unit, texts

WIDTH = 140  # columns

_BRACKETS = frozenset(",[]{}")


def one_line(layout: Layout, order: tuple[str, ...] = ()) -> str:
    """`layout` in brackets on one line; the keys of `order` come first, in that order."""
    if isinstance(layout, Text):
        return _joined(layout)
    parts = ", ".join(_parts(layout, order))
    return f"{{{parts}}}" if layout.mapping else f"[{parts}]"


def flow_lines(group: Group, head: str, order: tuple[str, ...] = ()) -> list[str]:
    """`head` and `group` in brackets behind it, at most WIDTH columns a line where its entries allow that."""
    line = f"{head} {one_line(group, order)}"
    if len(line) <= WIDTH:
        return [line]
    opening, closing = ("{", "}") if group.mapping else ("[", "]")
    lines = [f"{head} {opening}"]
    indent = " " * len(lines[0])
    fresh = True
    parts = _parts(group, order)
    for position, part in enumerate(parts):
        piece = part + (closing if position == len(parts) - 1 else ",")
        room = len(lines[-1]) + len(piece) + (0 if fresh else 1) <= WIDTH
        if fresh or room:
            lines[-1] += piece if fresh else f" {piece}"
        else:
            lines.append(indent + piece)
        fresh = False
    return lines


def verbatim(group: Group, head: str, text: str) -> list[str]:
    """`head` and `group` as it was written, lines and comments included, aligned behind its bracket."""
    first, *others = re.split(r"\r\n|\n|\r", text[group.begin : group.end])
    indent = " " * (len(head) + 2)
    return [f"{head} {first.rstrip()}", *((indent + line.strip()).rstrip() for line in others if line.strip())]


def in_flow(layout: Layout) -> bool:
    """Whether every scalar means the same between brackets."""
    return all(_means_the_same(text) for text in texts(layout))


def _means_the_same(text: Text) -> bool:
    return text.style in ("'", '"') or (text.style is None and not _BRACKETS & set(text.source))


def _parts(group: Group, order: tuple[str, ...]) -> list[str]:
    places = {key: place for place, key in enumerate(order)}
    units: Iterable[Unit] = group.units
    if group.mapping:
        units = sorted(units, key=lambda unit: places.get(unit.key.value if unit.key else "", len(places)))
    # An item that is nothing needs a word between brackets.
    return [f"{_joined(u.key)}: {one_line(u.value)}" if u.key else one_line(u.value) or "null" for u in units]


def _joined(text: Text) -> str:
    """A scalar on one line; a line break in it reads as a space."""
    return " ".join(part.strip() for part in re.split(r"\r\n|\n|\r", text.source))

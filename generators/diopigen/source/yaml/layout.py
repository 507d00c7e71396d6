"""Reads YAML as it is laid out: every scalar as written, where each entry stands, and the comments, none left out."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import yaml

from diopigen.source.yaml.nodes import BREAK, marked_nodes

_BLOCK_HEADER = re.compile(r"[|>][-+0-9]*[ \t]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A scalar; positions are offsets into the file's text."""

    source: str  # as written, e.g. "\"none\""
    value: str  # e.g. "none"
    style: str | None  # None: plain; else one of ' " | >
    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """An entry of a mapping, or an item of a sequence, which has no key."""

    number: int  # its position among all units, parents before children
    parent: int | None  # the number of the unit whose value holds it
    key: Text | None
    value: "Layout"
    begin: int
    column: int  # of the key or, for an item of a block sequence, of the dash; counts from 0

    @property
    def end(self) -> int:
        return self.value.end if self.key is None else max(self.key.end, self.value.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A mapping or a sequence."""

    mapping: bool
    flow: bool  # in brackets
    units: tuple[Unit, ...]
    begin: int
    end: int


Layout = Text | Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment, from the `#` to the end of its line."""

    text: str  # e.g. "# the contract's case"
    begin: int
    line: int
    column: int
    alone: bool  # nothing else stands on its line
    gap: bool  # a blank line follows


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole file."""

    text: str
    root: Layout | None  # None: nothing but comments
    comments: tuple[Comment, ...]
    line_starts: tuple[int, ...]

    def line(self, offset: int) -> int:
        """The line of a position; counts from 0."""
        return bisect_right(self.line_starts, offset) - 1


def read_layout(text: str) -> Page:
    """The layout of `text`, which is known to be valid YAML."""
    starts = (0, *(found.end() for found in BREAK.finditer(text)))
    node = marked_nodes(text)
    root = None if node is None else _layout(node, text, None, count())
    comments = tuple(_comments(text, starts, sorted(_occupied(root)) if root is not None else []))
    return Page(text=text, root=root, comments=comments, line_starts=starts)


def texts(layout: Layout) -> Iterator[Text]:
    """Every scalar of `layout`, keys included."""
    if isinstance(layout, Text):
        yield layout
        return
    for unit in layout.units:
        if unit.key is not None:
            yield unit.key
        yield from texts(unit.value)


def _layout(node: yaml.Node, text: str, parent: int | None, numbers: Iterator[int]) -> Layout:
    begin, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, yaml.ScalarNode):
        return Text(source=text[begin:end], value=node.value, style=node.style or None, begin=begin, end=end)
    assert isinstance(node, yaml.CollectionNode)
    flow = bool(node.flow_style)
    if isinstance(node, yaml.SequenceNode):
        column = node.start_mark.column
        units = tuple(_item(item, text, column, parent, numbers) for item in node.value)
    else:
        units = tuple(_entry(key, value, text, parent, numbers) for key, value in node.value)
    # A block collection's mark lies behind the comments that follow it.
    last = end if flow or not units else units[-1].end
    return Group(mapping=isinstance(node, yaml.MappingNode), flow=flow, units=units, begin=begin, end=last)


def _item(node: yaml.Node, text: str, column: int, parent: int | None, numbers: Iterator[int]) -> Unit:
    number = next(numbers)
    value = _layout(node, text, number, numbers)
    return Unit(number=number, parent=parent, key=None, value=value, begin=value.begin, column=column)


def _entry(key: yaml.Node, value: yaml.Node, text: str, parent: int | None, numbers: Iterator[int]) -> Unit:
    number = next(numbers)
    name = _layout(key, text, number, numbers)
    assert isinstance(name, Text)  # parse_yaml refuses other keys
    held = _layout(value, text, number, numbers)
    return Unit(number=number, parent=parent, key=name, value=held, begin=name.begin, column=key.start_mark.column)


def _occupied(layout: Layout) -> Iterator[tuple[int, int]]:
    """Where a `#` is part of a scalar; the line of a `>-` may have a comment behind it."""
    for text in texts(layout):
        header = _BLOCK_HEADER.match(text.source) if text.style in ("|", ">") else None
        if header is None:
            yield text.begin, text.end
            continue
        line_end = BREAK.search(text.source)
        yield text.begin, text.begin + header.end()
        if line_end is not None:
            yield text.begin + line_end.end(), text.end


def _comments(text: str, starts: tuple[int, ...], occupied: list[tuple[int, int]]) -> Iterator[Comment]:
    begins = [begin for begin, _ in occupied]
    for number, start in enumerate(starts):
        stop = starts[number + 1] if number + 1 < len(starts) else len(text)
        line = BREAK.sub("", text[start:stop])
        for at in (start + found.start() for found in re.finditer("#", line)):
            before = bisect_right(begins, at) - 1
            if before >= 0 and at < occupied[before][1]:
                continue
            after = text[stop : starts[number + 2]] if number + 2 < len(starts) else "-"
            yield Comment(
                text=line[at - start :].rstrip(),
                begin=at,
                line=number,
                column=at - start,
                alone=not line[: at - start].strip("\ufeff \t"),
                gap=not after.strip(),
            )
            break

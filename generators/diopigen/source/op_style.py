"""The canonical form of a file of schemas/ops: keys in order, one row per case, every comment with its entry."""

import re
from collections.abc import Iterable, Iterator

from diopigen.source.surface import KEY_ORDER, AtenSurface, BackwardSurface
from diopigen.source.yaml_comments import Notes, assign
from diopigen.source.yaml_flow import WIDTH, flow_lines, in_flow, verbatim
from diopigen.source.yaml_layout import Comment, Group, Layout, Page, Text, Unit, read_layout
from diopigen.source.yaml_text import text_lines

MODELINE = "# yaml-language-server: $schema=../op.schema.json"
_MODELINES = re.compile(r"# yaml-language-server: \$schema=\S+")

_ORDERS = {
    (): KEY_ORDER,
    ("backward",): tuple(BackwardSurface.model_fields),
    ("aten",): tuple(AtenSurface.model_fields),
}
_OPEN = ((), ("cases",))  # never in brackets: one line for each entry
_CLOSED = (("where",), ("cases", "-"))  # in brackets where it fits

_HEADER = re.compile(" [|>][-+0-9]*")  # of a scalar that begins on the next line

_Path = tuple[str, ...]  # the keys from the op down, ex) ("backward", "keeps"); "-" for an item of a list


def canonical(text: str) -> str:
    """`text`, which is known to be valid YAML, in canonical form; a fixed point of itself."""
    page = read_layout(text.removeprefix("\ufeff"))
    return _Printer(page).file()


def entry_text(unit: Unit) -> str:
    """One entry of a file in canonical form, without comments."""
    group = Group(mapping=True, flow=False, units=(unit,), begin=0, end=0)
    text = _Printer(Page(text="", root=group, comments=(), line_starts=(0,))).file()
    return text.removeprefix(f"{MODELINE}\n")


def comments_of(text: str) -> list[str]:
    """The comments of a file in alphabetical order, but for the line that names the schema to editors."""
    return sorted(comment.text for comment in _but_modeline(read_layout(text.removeprefix("\ufeff")).comments))


class _Printer:
    def __init__(self, page: Page) -> None:
        self._page = page
        self._notes = assign(page)

    def file(self) -> str:
        root = self._page.root
        if not isinstance(root, Group) or not root.mapping:
            return "\n".join([MODELINE, *(c.text for c in _but_modeline(self._page.comments))]) + "\n"
        lines = [MODELINE]
        for position, unit in enumerate(root.units):
            notes = self._notes.get(unit.number, Notes())
            if position > 0:
                lines.append("")
            lines += _spaced(_but_modeline(notes.above))
            lines += self._entry(unit, 0, None)
            if notes.below:
                lines += ["", *_spaced(notes.below)]
                if not lines[-1]:
                    lines.pop()  # the next op brings its own blank line
        return "\n".join(lines).rstrip("\n") + "\n"

    def _block(self, group: Group, indent: int, path: _Path | None) -> Iterator[str]:
        """The lines of a mapping or sequence that is not in brackets."""
        pad = " " * indent
        for unit in _ordered(group, path):
            notes = self._notes.get(unit.number, Notes())
            yield from (pad + comment.text for comment in notes.above)
            if unit.key is None:
                yield from self._item(unit, indent, path)
            else:
                yield from self._entry(unit, indent, path)
            yield from (pad + comment.text for comment in notes.below)

    def _entry(self, unit: Unit, indent: int, path: _Path | None) -> Iterator[str]:
        """One key; `path` is that of the mapping around it, None for the file."""
        assert unit.key is not None
        inner: _Path = () if path is None else (*path, unit.key.value)
        yield from self._value(unit, " " * indent + unit.key.source + ":", indent, inner)

    def _item(self, unit: Unit, indent: int, path: _Path | None) -> Iterator[str]:
        inner = (*(path or ()), "-")
        if not self._in_block(unit, inner, indent) or not isinstance(unit.value, Group):
            yield from self._value(unit, " " * indent + "-", indent, inner)
            return
        around = path if unit.value.mapping and path != ("cases",) else inner
        lines = list(self._block(unit.value, indent + 2, around))
        first = next((at for at, line in enumerate(lines) if not line.lstrip().startswith("#")), 0)
        yield from (line[2:] for line in lines[:first])  # above an entry that is now the first
        yield " " * indent + "- " + lines[first][indent + 2 :]
        yield from lines[first + 1 :]

    def _value(self, unit: Unit, head: str, indent: int, path: _Path) -> Iterator[str]:
        """`head` and what stands behind it; a comment stays at its side where that leaves the line short enough."""
        notes = self._notes.get(unit.number, Notes())
        lines = self._value_lines(unit, head, indent, path)
        sides = [comment.text for comment in notes.side]
        line = f"{lines[0]}  {sides[-1]}" if sides else lines[0]
        ends = len(lines) == 1 or self._in_block(unit, path, indent) or _HEADER.fullmatch(lines[0][len(head) :])
        if sides and ends and len(line) <= WIDTH:
            lines[0] = line
            sides.pop()
        yield from (" " * indent + side for side in sides)
        yield from lines

    def _value_lines(self, unit: Unit, head: str, indent: int, path: _Path) -> list[str]:
        value = unit.value
        if not isinstance(value, Group):
            return text_lines(value, head, indent, unit.column)
        if self._in_block(unit, path, indent):
            return [head, *self._block(value, indent + 2, path)]
        if self._notes.get(unit.number, Notes()).inside:
            return verbatim(value, head, self._page.text)
        return flow_lines(value, head, _order(path))

    def _in_block(self, unit: Unit, path: _Path, indent: int) -> bool:
        """Whether the value of `unit` gets a line for each of its entries."""
        value = unit.value
        if not isinstance(value, Group) or not value.units or self._notes.get(unit.number, Notes()).inside:
            return False
        if path in _OPEN:
            return True
        words = not value.mapping and all(isinstance(item.value, Text) for item in value.units)
        closable = path in _CLOSED or words
        return not value.flow and not (closable and self._fits_brackets(value, unit, indent, path))

    def _fits_brackets(self, value: Group, unit: Unit, indent: int, path: _Path) -> bool:
        """Whether a block can stand in brackets: nothing in it has a comment, or a text that brackets would split."""
        if path == ("aten",) or not in_flow(value) or any(self._has_notes(inner) for inner in _inner_units(value)):
            return False
        head = " " * indent + ("-" if unit.key is None else unit.key.source + ":")
        return path == ("cases", "-") or len(flow_lines(value, head)) == 1

    def _has_notes(self, unit: Unit) -> bool:
        notes = self._notes.get(unit.number, Notes())
        return bool(notes.above or notes.side or notes.below or notes.inside)


def _order(path: _Path | None) -> tuple[str, ...]:
    if path is None:
        return ()
    return _ORDERS.get(tuple(word for word in path if word != "-"), ())


def _ordered(group: Group, path: _Path | None) -> Iterable[Unit]:
    order = _order(path) if group.mapping else ()
    places = {key: place for place, key in enumerate(order)}
    return sorted(group.units, key=lambda unit: places.get(unit.key.value if unit.key else "", len(places)))


def _inner_units(layout: Layout) -> Iterator[Unit]:
    if isinstance(layout, Group):
        for unit in layout.units:
            yield unit
            yield from _inner_units(unit.value)


def _but_modeline(comments: Iterable[Comment]) -> list[Comment]:
    return [c for c in comments if not (c.line == 0 and _MODELINES.fullmatch(c.text))]


def _spaced(comments: list[Comment]) -> Iterator[str]:
    """Comments between ops keep the blank lines that set them apart."""
    for comment in comments:
        yield comment.text
        if comment.gap:
            yield ""

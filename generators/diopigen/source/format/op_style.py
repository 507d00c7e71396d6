"""The canonical form of a file of schemas/ops: keys in order, one row per case, every comment with its entry."""

import re
from collections.abc import Iterable

from diopigen.source.schema.surface import KEY_ORDER, AtenSurface, BackwardSurface
from diopigen.source.yaml.layout import Comment, Group, Page, Unit, read_layout
from diopigen.source.yaml.printer import Path, Printer, Style, spaced

OF_CONTRACT = "../op.schema.json"  # the editors' schema, from a file of schemas/ops
_MODELINE = "# yaml-language-server: $schema="
_MODELINES = re.compile(r"# yaml-language-server: \$schema=\S+")

_ORDERS = {
    (): KEY_ORDER,
    ("backward",): tuple(BackwardSurface.model_fields),
    ("aten",): tuple(AtenSurface.model_fields),
}


class _OpStyle(Style):
    """Paths begin below an op."""

    def order(self, path: Path) -> tuple[str, ...]:
        return _ORDERS.get(tuple(word for word in path if word != "-"), ())

    def opened(self, path: Path) -> bool:
        return path in ((), ("cases",))

    def closed(self, path: Path) -> bool:
        return path in (("where",), ("cases", "-"))

    def broken(self, path: Path) -> bool:
        return path == ("aten",)

    def rows(self, path: Path) -> bool:
        return path == ("cases",)


def modeline(schema: str = OF_CONTRACT) -> str:
    """The first line of a file, which names its schema to editors."""
    return f"{_MODELINE}{schema}"


def canonical(text: str, schema: str = OF_CONTRACT) -> str:
    """`text`, which is known to be valid YAML, in canonical form; a fixed point of itself."""
    return _file(read_layout(text.removeprefix("\ufeff")), modeline(schema))


def entry_text(unit: Unit) -> str:
    """One entry of a file in canonical form, without comments."""
    group = Group(mapping=True, flow=False, units=(unit,), begin=0, end=0)
    text = _file(Page(text="", root=group, comments=(), line_starts=(0,)), modeline())
    return text.removeprefix(f"{modeline()}\n")


def comments_of(text: str) -> list[Comment]:
    """The comments of a file, but for the line that names the schema to editors."""
    return _but_modeline(read_layout(text.removeprefix("\ufeff")).comments)


def _file(page: Page, first: str) -> str:
    root, printer = page.root, Printer(page, _OpStyle())
    if not isinstance(root, Group) or not root.mapping:
        return "\n".join([first, *(c.text for c in _but_modeline(page.comments))]) + "\n"
    lines = [first]
    for position, unit in enumerate(root.units):
        notes = printer.notes(unit)
        if position > 0:
            lines.append("")
        lines += spaced(_but_modeline(notes.above))
        lines += printer.entry(unit, 0, None)
        if notes.below:
            lines += ["", *spaced(notes.below)]
            if not lines[-1]:
                lines.pop()  # the next op brings its own blank line
    return "\n".join(lines).rstrip("\n") + "\n"


def _but_modeline(comments: Iterable[Comment]) -> list[Comment]:
    return [c for c in comments if not (c.line == 0 and _MODELINES.fullmatch(c.text))]

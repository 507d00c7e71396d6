"""The canonical form of convert_config.yaml: properties in order, one on a line, every comment with its entry."""

from diopigen.source.vendor.conversion_body import PROPERTIES
from diopigen.source.yaml.layout import Group, Page, Unit, read_layout
from diopigen.source.yaml.printer import Path, Printer, Style, spaced


class _ConversionStyle(Style):
    """Paths begin at the list of entries: "-" is an entry, ("diopiAdd",) what it says."""

    def order(self, path: Path) -> tuple[str, ...]:
        return ("ops", *PROPERTIES) if _is_entry(path) else ()

    def strangers_first(self, path: Path) -> bool:
        return _is_entry(path)  # the name of a function stands before what is said of it

    def opened(self, path: Path) -> bool:
        return path == ("-",) or (len(path) == 1 and _is_entry(path))

    def broken(self, path: Path) -> bool:
        return path == ("ops",)  # one function on a line, if that is how they were written


def _is_entry(path: Path) -> bool:
    """Whether properties stand in the mapping at `path`: beside the names of an entry, or below one."""
    return len(path) < 2 and path[-1:] not in (("-",), ("ops",), *((word,) for word in PROPERTIES))


def canonical_conversions(text: str) -> str:
    """`text`, which is known to be valid YAML, in canonical form; a fixed point of itself."""
    page = read_layout(text.removeprefix("\ufeff"))
    root, printer = page.root, Printer(page, _ConversionStyle())
    if not isinstance(root, Group) or root.mapping:
        return "".join(f"{comment.text}\n" for comment in page.comments)
    lines: list[str] = []
    for unit in root.units:
        notes = printer.notes(unit)
        if lines and lines[-1] and _apart(unit, printer, page):
            lines.append("")
        lines += spaced(notes.above)
        lines += printer.item(unit, 0, ())
        lines += spaced(notes.below)
    return "\n".join(lines).rstrip("\n") + "\n"


def _apart(unit: Unit, printer: Printer, page: Page) -> bool:
    """Whether the author left a blank line before the entry and its comments."""
    above = printer.notes(unit).above
    line = above[0].line if above else page.line(unit.begin)
    start = page.line_starts[line - 1] if line > 0 else 0
    return line > 0 and not page.text[start : page.line_starts[line]].strip()

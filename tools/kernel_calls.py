"""What a kernel calls, read from the sources by names: enough to say which library it ends in, without a compiler.

A unit is a function, a class or a constant at namespace scope; its names are all words of its text. From a function of
the contract the units behind these names are followed, as far as the files that its source includes, and those that
define what these headers declare; into a vendor's files only by what the launchers' headers declare. Names that two
classes share are taken for both, so a library may be named too often, never too seldom.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path

_NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
_DIRECTIVE = re.compile(r"^#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_TEMPLATE = re.compile(r"template <[^{};()]*>\s*(?=\w)")
_CLASS = re.compile(r"^(?:struct|class|union|enum class|enum)\s+(\w+)")
_SCOPE = re.compile(r"^(?:inline )?namespace\b|^extern\b[^()]*$")
_DECLARED = re.compile(r"^[A-Za-z_][\w:<>*& ]*[ *&](\w+)\([^;{}]*\);", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")


class Calls:
    """The calls of the kernels below `root`, with what one vendor gives them."""

    def __init__(self, root: Path, vendor_sources: tuple[Path, ...]) -> None:
        self._root = root
        self._vendor = vendor_sources
        launchers = [*(root / "launch").glob("*.h"), *vendor_sources]
        self._offered = {name for file in launchers if file.suffix == ".h" for name in declared(file)}
        self._merged: dict[Path, dict[str, set[str]]] = {}

    def reached(self, symbol: str, sources: Mapping[str, Path]) -> set[str]:
        """All names that a function of the contract leads to; `sources` says where each function is defined."""
        found: set[tuple[str, Path]] = set()
        open_ = [(symbol, sources[symbol])]
        while open_:
            name, source = open_.pop()
            for word in self._visible(source).get(name, set()):
                own = {(word, place) for place in (sources.get(word, source), *self._offering(word))} - found
                found |= own
                open_ += own
        return {word for word, _ in found}

    def _offering(self, name: str) -> tuple[Path, ...]:
        """The vendor's files that define it, if it is declared for launchers."""
        return tuple(file for file in self._vendor if name in self._offered and name in units(file))

    def _visible(self, source: Path) -> dict[str, set[str]]:
        """The units of all files that `source` sees."""
        if source not in self._merged:
            merged: dict[str, set[str]] = {}
            for file in self._closure(source):
                for name, words in units(file).items():
                    merged.setdefault(name, set()).update(words)
            self._merged[source] = merged
        return self._merged[source]

    def _closure(self, source: Path) -> tuple[Path, ...]:
        seen: dict[Path, None] = {}
        open_ = [source]
        while open_:
            file = open_.pop()
            if file in seen or not file.is_file():
                continue
            seen[file] = None
            for header in included(file, self._root):
                open_ += [header.resolve(), header.resolve().with_suffix(".cpp")]
        return tuple(seen)


def included(file: Path, root: Path) -> Iterator[Path]:
    """The headers that a file of the kernels below `root` includes itself."""
    for name in _INCLUDE.findall(file.read_text(encoding="utf-8")):
        yield from islice((path for path in (file.parent / name, root / name) if path.is_file()), 1)


def declared(header: Path) -> frozenset[str]:
    """The functions that a header declares and leaves to others."""
    return frozenset(_DECLARED.findall(_DIRECTIVE.sub("", _NOISE.sub(" ", header.read_text(encoding="utf-8")))))


@cache
def units(file: Path) -> dict[str, frozenset[str]]:
    """The units of a file with the words of each."""
    found: dict[str, set[str]] = {}
    text = _DIRECTIVE.sub("", _NOISE.sub(" ", file.read_text(encoding="utf-8")))
    for name, body in _units(text):
        found.setdefault(name, set()).update(set(_WORD.findall(body)) - {name})
    return {name: frozenset(words) for name, words in found.items()}


def _units(text: str) -> Iterator[tuple[str, str]]:
    start = position = 0
    while position < len(text):
        mark = text[position]
        if mark == "{":
            header = _TEMPLATE.sub("", text[start:position]).strip()
            if _SCOPE.match(header):
                start = position + 1
            else:
                position = _close(text, position)
                if _CLASS.match(header) or "(" in header:
                    yield _name(header), text[start : position + 1]
                    start = position + 1
        elif mark == ";":
            header = _TEMPLATE.sub("", text[start:position]).strip()
            if "=" in header and not re.match(r"[^=]*\(", header):
                yield _name(header.split("=")[0]), text[start:position]
            start = position + 1
        elif mark == "}":
            start = position + 1
        position += 1


def _name(header: str) -> str:
    """What a header declares, e.g. "sum_columns" for `void sum_columns(diopiContextHandle_t ctx, ...)`."""
    named = _CLASS.match(header)
    words = _WORD.findall(header.split("(")[0])
    return named[1] if named else words[-1] if words else ""


def _close(text: str, position: int) -> int:
    """Where the brace at `position` closes."""
    depth = 0
    for place in range(position, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return len(text) - 1

"""Which headers are worth reading once for several sources: for each source those that it includes itself."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

_DIRECTIVE = re.compile(
    r'^[ \t]*#[ \t]*(?:(?P<word>if|ifdef|ifndef|endif)\b|include[ \t]*(?P<quote>[<"])(?P<header>[^>"\n]+))',
    re.MULTILINE,
)
_FILES = 4  # below that many, reading their headers again and again is faster
_MAKING = 3  # reading headers into a file that can be loaded takes as long as reading them so often
_ELSEWHERE = 300_000  # bytes: about what a header of the standard library makes the compiler read

Headers = frozenset[str]  # e.g. {"<vector>", '"/vendors/chip/a.h"'}


def common_headers(files: Sequence[Path], folders: Sequence[Path]) -> dict[Path, tuple[str, ...]]:
    """For each file the headers that are to be read beforehand, in the order of a file that includes them.

    `folders` are searched for headers. A file is given none that it does not include, or includes under a condition.
    """
    if len(files) < _FILES:
        return dict.fromkeys(files, ())
    reading = _Reading(folders=folders)
    included = {file: tuple(reading.included(file)) for file in files}
    users = Counter(header for headers in included.values() for header in headers)
    common = {f: frozenset(h for h in headers if users[h] * 4 >= len(files)) for f, headers in included.items()}
    groups = _groups(Counter(common.values()), reading)
    orders: dict[Headers, tuple[str, ...]] = {}
    found = {}
    for file, headers in common.items():
        group = _best(headers, groups)
        found[file] = orders.setdefault(group, tuple(header for header in included[file] if header in group))
    return found


def all_headers(files: Sequence[Path], folders: Sequence[Path]) -> dict[Path, tuple[str, ...]]:
    """For every file the same: what one in eight of them reaches, most of them first.

    Only for sources that a compiler judges, too: here nobody sees that one lacks an include.
    """
    reading = _Reading(folders=folders)
    users = Counter(header for file in files for header in reading.reached(file))
    ordered = sorted(users, key=lambda header: (-users[header], header))
    return dict.fromkeys(files, tuple(header for header in ordered if users[header] * 8 >= len(files)))


def _best(headers: Headers, groups: dict[Headers, int]) -> Headers:
    """Of the groups that `headers` contain the one with most to read."""
    return max((group for group in groups if group <= headers), key=lambda group: groups[group], default=frozenset())


def _groups(counts: Counter[Headers], reading: "_Reading") -> dict[Headers, int]:
    """Sets of headers with the bytes behind them, each chosen as long as it saves more than it costs."""
    candidates = {*counts, *(first & second for first, second in combinations(counts, 2))} - {frozenset()}
    costs = {group: reading.cost(group) for group in sorted(candidates, key=sorted)}
    chosen: dict[Headers, int] = {}

    def gain(group: Headers) -> int:
        users = ((headers, count) for headers, count in counts.items() if group <= headers)
        saved = sum(count * max(0, costs[group] - chosen.get(_best(headers, chosen), 0)) for headers, count in users)
        return saved - _MAKING * costs[group]

    while costs:
        group = max(costs, key=gain)
        if gain(group) <= 0:
            break
        chosen[group] = costs[group]
    return chosen


@dataclass(slots=True, kw_only=True)
class _Reading:
    """Finds headers, and how much there is behind them."""

    folders: Sequence[Path]
    _known: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    _always: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def included(self, file: Path, always: bool = True) -> Iterator[str]:
        """The headers that the file includes, each once, in its order; with `always` under no condition only."""
        depth = 0
        found: dict[str, None] = {}
        for line in _DIRECTIVE.finditer(file.read_text(encoding="utf-8", errors="replace")):
            if line["header"] is None:
                depth += -1 if line["word"] == "endif" else 1
            elif (depth == 0 or not always) and line["quote"] == "<":
                found[f"<{line['header']}>"] = None
            elif depth == 0 or not always:
                path = _first(line["header"], (file.parent, *self.folders))
                found |= {} if path is None else {f'"{path.resolve()}"': None}
        yield from found

    def reached(self, file: Path) -> frozenset[str]:
        """The headers that the file includes under no condition, and all that these include so."""
        found: set[str] = set()
        left = [*self.included(file)]
        while left:
            header = left.pop()
            if header not in found:
                found.add(header)
                left += self._reached_by(header)
        return frozenset(found)

    def _reached_by(self, header: str) -> tuple[str, ...]:
        if header not in self._always:
            path = self._path(header)
            self._always[header] = () if path is None else tuple(self.included(path))
        return self._always[header]

    def cost(self, headers: Iterable[str]) -> int:
        """The bytes of the headers and of all that they include."""
        seen: dict[str, int] = {}
        left = list(headers)
        while left:
            header = left.pop()
            if header not in seen:
                seen[header], within = self._behind(header)
                left += within
        return sum(seen.values())

    def _behind(self, header: str) -> tuple[int, tuple[str, ...]]:
        """Its bytes, and what it includes."""
        if header not in self._known:
            path = self._path(header)
            within = () if path is None else tuple(self.included(path, always=False))
            self._known[header] = (_ELSEWHERE if path is None else path.stat().st_size, within)
        return self._known[header]

    def _path(self, header: str) -> Path | None:
        """None for one of the system."""
        return Path(header[1:-1]) if header[0] == '"' else _first(header[1:-1], self.folders)


def _first(header: str, folders: Sequence[Path]) -> Path | None:
    return next((folder / header for folder in folders if (folder / header).is_file()), None)

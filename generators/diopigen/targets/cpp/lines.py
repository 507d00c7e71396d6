"""Lines of C++ that fit the page."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

WIDTH = 120

# A literal, characters that mean nothing here, or one that does.
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[^"\'()\[\]{}<> ]+|.')
_EXTRA = {"=": 1, ">": 3}  # the cost of a break after an assignment and after a type
_OPERATORS = frozenset({"&&", "||", "?", ":", "+", "-", "*", "<", "<=", ">", ">=", "==", "!="})


def folded(text: str, indent: int = 0, hang: int = 4, after: int = 0) -> tuple[str, ...]:
    """`text` as lines of at most 120 columns, broken after a comma or an operator where brackets are nested least.

    The template puts `indent` columns before each line and `after` columns behind the last one. A line begins under
    the first word in the bracket that it continues, or further left if it would not fit there; outside of brackets it
    is indented by `hang`.
    """
    width = WIDTH - indent
    aligned = _Folding(width, deepest=width).lines(text, hang, after)
    fits = all(len(line) <= width for line in aligned)
    return aligned if fits else _Folding(width, deepest=WIDTH // 2).lines(text, hang, after)


class _Place(NamedTuple):
    at: int  # where the line ends
    cost: int  # the depth of the brackets around it
    opened: tuple[int, ...]  # for each of these brackets the column where a line inside of it begins


@dataclass(frozen=True, slots=True)
class _Folding:
    width: int
    deepest: int  # the last column that a line may begin in

    def lines(self, text: str, hang: int, after: int) -> tuple[str, ...]:
        done: list[str] = []
        opened: tuple[int, ...] = ()
        pad = 0
        while pad + len(text) + after > self.width:
            place = self._best(text, pad, opened)
            if place is None:
                break
            done.append(" " * pad + text[: place.at])
            text, opened = text[place.at :].lstrip(), place.opened
            pad = opened[-1] if opened else hang
        return (*done, " " * pad + text)

    def _best(self, text: str, pad: int, opened: tuple[int, ...]) -> _Place | None:
        """The last of the places nested least; one in the first third of the line only if there is no other."""
        room = self.width - pad
        fitting = takewhile(lambda place: place.at <= room, self._places(text, pad, opened))
        return min(fitting, key=lambda place: (place.cost + 2 * (place.at < room // 3), -place.at), default=None)

    def _places(self, text: str, pad: int, opened: tuple[int, ...]) -> Iterator[_Place]:
        start, types = 0, 0
        for token in _TOKEN.finditer(text):
            mark, at = token.group(), token.start()
            angle = (mark == "<" and text[at - 1].isalnum()) - (mark == ">" and text[at - 1] not in " -")
            types = max(0, types + angle)
            if mark in "([{" or angle > 0:
                below, under = (opened[-1] if opened else 0) + 4, pad + at + 1
                yield _Place(at + 1, len(opened) + 4, (*opened, below))
                opened = (*opened, under if under <= self.deepest else below)
            elif mark in ")]}" or angle < 0:
                opened = opened[:-1]
            elif mark == " ":
                word, start = text[start:at], at + 1
                extra = 0 if word.endswith(",") or word in _OPERATORS else _EXTRA.get(word[-1:])
                if extra is not None:
                    yield _Place(at, len(opened) + 3 * types + extra, opened)

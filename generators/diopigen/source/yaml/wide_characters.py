"""Finds characters that look like YAML's own and are not: full-width signs, curved quotes, blanks of other kinds."""

import re
from collections.abc import Iterator

from diopigen.diagnostics import Diagnostics, Span
from diopigen.source.yaml.nodes import BREAK

_LOOKALIKES = {
    "\u3001": ",",  # ideographic comma
    "\u201c": '"',
    "\u201d": '"',
    "\u2018": "'",
    "\u2019": "'",
    "\u2013": "-",
    "\u2014": "-",
    "\u2212": "-",
    "\u00a0": " ",
    "\u3000": " ",
}
_ARROWS = "\u2192\u21d2"  # for "->", which is longer
_FULL_WIDTH = range(0xFF01, 0xFF5F)  # the printable ASCII characters once more
_DISTANCE = 0xFEE0  # between the two
_STRUCTURE = ":\"'[]{}|"
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")


def plain_characters(text: str, shown: str, diagnostics: Diagnostics) -> str | None:
    """`text` with the character that was meant for each lookalike outside of comments, every one an error.

    Columns stay as they are, so that what follows is found at its place; an arrow stays, being longer in ASCII. None
    if one of them decides how YAML reads the rest.
    """
    structure = False
    lines = BREAK.split(text)
    for number, line in enumerate(lines):
        for column, meant in _lookalikes(line):
            seen = line[column]
            name = f"'{seen}'" if seen.strip() else f"the blank U+{ord(seen):04X}"
            diagnostics.error(
                "wide-character",
                f"{name} is not {_quoted(meant)}",
                Span(path=shown, line=number + 1, column=column + 1),
                f"write {_quoted(meant)}",
            )
            structure = structure or meant in _STRUCTURE
            if len(meant) == 1:
                lines[number] = lines[number][:column] + meant + lines[number][column + 1 :]
    return None if structure else "\n".join(lines)


def _lookalikes(line: str) -> Iterator[tuple[int, str]]:
    """Columns, from 0, and what was meant there."""
    for column, character in enumerate(_COMMENT.sub("", line)):
        if character in _LOOKALIKES:
            yield column, _LOOKALIKES[character]
        elif character in _ARROWS:
            yield column, "->"
        elif ord(character) in _FULL_WIDTH:
            yield column, chr(ord(character) - _DISTANCE)


def _quoted(meant: str) -> str:
    return "a blank" if meant == " " else f"'{meant}'" if meant != "'" else '"\'"'

"""The items of a C++ file: what stands between the braces of its namespaces, and the statements of a function."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Comments, strings, characters and preprocessor lines; digits may be parted as in 1'000.
_ASIDE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'|^[ \t]*\#(?:\\\n|[^\n])*""",
    re.DOTALL | re.MULTILINE,
)
_SPACE = re.compile(r"\s*")
_NAMESPACE = re.compile(r"(?:inline\s+)?namespace\b[^;={]*\{")
_WORD = re.compile(r"\b[A-Za-z_]\w*")
_OPEN, _CLOSE = "({[", ")}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A function, a type, a variable, an alias or a declaration."""

    name: str  # what it defines; empty for an explicit specialization, and for what has no name
    start: int  # of its first character in the text
    end: int  # behind its last


def code_of(text: str) -> str:
    """`text` with blanks in place of comments, strings and preprocessor lines: every place stays where it is."""
    return _ASIDE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def items(code: str) -> Iterator[Item]:
    """Of a text that `code_of` gave, in order."""
    place = _behind_space(code, 0)
    while place < len(code):
        namespace = _NAMESPACE.match(code, place)
        if namespace is not None:
            place = namespace.end()
        elif code[place] in "};":
            place += 1
        else:
            end = _end(code, place)
            yield Item(name=_name(code[place:end]), start=place, end=end)
            place = end
        place = _behind_space(code, place)


def words(code: str) -> frozenset[str]:
    return frozenset(_WORD.findall(code))


def statements(code: str, item: Item) -> Iterator[tuple[int, int]]:
    """Where the statements of a function stand, those inside of blocks alone: start, and end behind the semicolon."""
    start = place = code.index("{", item.start) + 1
    depth = 0
    while place < item.end:
        letter = code[place]
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and letter in "{};":
            if letter == ";" and code[start:place].strip():
                yield _behind_space(code, start), place + 1
            start = place + 1
        place += 1


def closing(code: str, place: int) -> int:
    """Behind the bracket that closes the one at `place`; angles count where it is an angle."""
    opening = code[place]
    pairs = {"(": "()", "{": "{}", "[": "[]", "<": "<>"}[opening]
    depth = 0
    for at in range(place, len(code)):
        depth += (code[at] == pairs[0]) - (code[at] == pairs[1])
        if depth == 0:
            return at + 1
    return len(code)


def arguments(code: str, place: int) -> int:
    """How many arguments stand in the parentheses that open at `place`."""
    inside = code[place + 1 : closing(code, place) - 1]
    depth = count = 0
    for letter in inside:
        depth += (letter in "({[<") - (letter in ")}]>")
        count += letter == "," and depth == 0
    return count + 1 if inside.strip() else 0


def _behind_space(code: str, place: int) -> int:
    found = _SPACE.match(code, place)
    return place if found is None else found.end()


def _end(code: str, start: int) -> int:
    """Behind the semicolon, or behind the brace that closes a function."""
    depth = 0
    for place in range(start, len(code)):
        letter = code[place]
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if depth == 0 and letter == ";":
            return place + 1
        if depth == 0 and letter == "}":
            behind = _behind_space(code, place + 1)
            if behind == len(code) or code[behind] not in ";,=.({":
                return place + 1
    return len(code)


def _name(code: str) -> str:
    """The last word before what opens: parentheses, braces, or a value."""
    if re.match(r"template\s*<\s*>", code):
        return ""
    head, depth = [], 0
    for letter in code:
        if depth == 0 and letter in "({=;":
            break
        depth += (letter == "<") - (letter == ">")
        head.append(letter if depth == 0 and letter != ">" else " ")
    found = _WORD.findall("".join(head))
    return found[-1] if found else ""

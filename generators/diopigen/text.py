"""Names in every case, wrapping, and comments."""

import difflib
import re
from collections.abc import Iterable


def pascal(name: str) -> str:
    """`max_pool2d` as `MaxPool2d`; what is upper case already stays."""
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def suggestion(word: str, known: Iterable[str]) -> str | None:
    """`did you mean 'x'?` for the known word nearest to `word`, or None if none is near."""
    near = nearest(word, known)
    return None if near is None else f"did you mean '{near}'?"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word nearest to `word`, or None if none is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return near[0] if near else None


def listing(words: Iterable[str]) -> str:
    """`'a', 'b' or 'c'`."""
    quoted = [f"'{word}'" for word in words]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def wrapped(text: str, width: int, prefix: str = "") -> tuple[str, ...]:
    """`text` folded to lines of at most `width` characters, each after `prefix`."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(prefix + word)
    return tuple(lines)


_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')


def mentions(text: str, name: str) -> bool:
    """Whether C++ reads the variable `name`: no member, nothing of a namespace, and no text of that name counts."""
    return re.search(rf"(?<![\w.:]){name}\b(?!::)", _LITERAL.sub("", text)) is not None

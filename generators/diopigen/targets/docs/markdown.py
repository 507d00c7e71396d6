"""Text as Markdown shows it unchanged."""

import re

_SPECIAL = re.compile(r"([\\*_\[\]<>&#|])")
_CODE = re.compile(r"(`[^`]*`)")


def prose(text: str) -> str:
    """Sentences in which only backquotes mean something."""
    pieces = _CODE.split(" ".join(text.split()))
    return "".join(piece if piece.startswith("`") and len(piece) > 1 else _escaped(piece) for piece in pieces)


def code(text: str) -> str:
    """`text` as code, also in a cell of a table."""
    return f"`{text}`" if text else ""


def _escaped(text: str) -> str:
    entities = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
    return _SPECIAL.sub(lambda match: entities.get(match[1], "\\" + match[1]), text)

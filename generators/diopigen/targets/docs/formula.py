"""Formulas as MathML, which browsers lay out by themselves: a page needs no script and no fonts for them."""

import re
from xml.etree import ElementTree

from latex2mathml import exceptions
from latex2mathml.converter import convert

_UNREADABLE = tuple(e for e in vars(exceptions).values() if isinstance(e, type) and issubclass(e, Exception))
_CHILDREN = {"mfrac": 2, "msub": 2, "msup": 2, "mover": 2, "munder": 2, "mroot": 2, "msubsup": 3, "munderover": 3}

# What stays as it is, and words: TeX would set "input" as a product of five letters.
_PIECES = re.compile(
    r"\\(?:text|mathrm|mathit)\s*\{(?P<said>(?:[^{}\\]|\\_)*)\}"
    r"|(?P<kept>\\(?:operatorname|begin|end)\s*\*?\{[^{}]*\}|\\[A-Za-z]+|\\.)"
    r"|(?P<word>[A-Za-z](?:[A-Za-z0-9]|\\_)+)",
    re.DOTALL,
)


class BadFormula(Exception):
    """A formula that cannot be read. `path` is its place in the op's entry. e.g. "backward.math"."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"this formula cannot be read: {why}")
        self.path = path


def mathml(tex: str, path: str) -> str:
    """`tex`, which stands at `path` of an op's entry, as one `<math>` element. Raises BadFormula."""
    try:
        markup = convert(_PIECES.sub(_worded, " ".join(tex.split())), display="block")
    except _UNREADABLE as error:
        raise BadFormula(path, _reason(error)) from error
    fault = _fault(tex, markup)
    if fault is not None:
        raise BadFormula(path, fault)
    return markup


def _worded(match: re.Match[str]) -> str:
    kept: str | None = match["kept"]
    if kept is not None:
        return kept
    word: str = match["said"] if match["word"] is None else match["word"]
    return rf"\text{{{word.replace(chr(92) + '_', '_')}}}"


def _reason(error: Exception) -> str:
    """e.g. "missing end" for MissingEndError."""
    words = re.findall("[A-Z][a-z]*", type(error).__name__.removesuffix("Error"))
    return " ".join(words).lower()


def _fault(tex: str, markup: str) -> str | None:
    """What the converter lets pass."""
    plain = re.sub(r"\\.", "", tex)
    if plain.count("{") != plain.count("}"):
        return "its braces are not closed" if plain.count("{") > plain.count("}") else "it closes too many braces"
    try:
        root = ElementTree.fromstring(markup)
    except ElementTree.ParseError:
        return "it has a '&' outside of a table"
    for element in root.iter():
        if (element.text or "").startswith("\\"):
            return f"there is no '{element.text}'"
        name = element.tag.rpartition("}")[2]
        if len(element) != _CHILDREN.get(name, len(element)):
            return "an argument is missing"
    return None

"""How C spells comments, strings, names and numbers."""

import math
import re
import textwrap
from collections.abc import Iterable
from typing import Any

PLAIN = {
    "bool": "bool",
    "count": "int64_t",
    "double": "double",
    "enum": "int",
    "float": "float",
    "int32": "int32_t",
    "int64": "int64_t",
}


def comment(text: str) -> str:
    """Fit for a comment: one line of ASCII that does not end it."""
    plain = " ".join(text.encode("ascii", "backslashreplace").decode().split())
    return plain.replace("*/", "* /").replace("/*", "/ *")


def string(text: str) -> str:
    """A literal; other bytes than plain letters as octal escapes, which three digits end."""
    plain = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode())
    return f'"{plain}"'


def identifier(label: str, used_as: str) -> str:
    """An identifier, e.g. "in_tensors_2"."""
    return f"{used_as}_{re.sub(r'[^A-Za-z0-9]+', '_', label).strip('_')}"


def listed(words: Iterable[str]) -> str:
    """What stands between the braces of an initializer."""
    text = ", ".join(words)
    if len(text) <= 90:
        return text
    lines = textwrap.wrap(text, 110, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    return "\n" + "\n".join(lines) + "\n"


def real(value: float) -> str:
    """Exact, without rounding on the way."""
    if math.isnan(value):
        return "(double)NAN"
    if math.isinf(value):
        return "(double)INFINITY" if value > 0 else "-(double)INFINITY"
    return repr(value)  # Python's shortest text leads back to the same number, in C too


def whole(value: int) -> str:
    """As int64_t; of uint64 the same bits."""
    signed = value - 2**64 if value >= 2**63 else value
    return "INT64_MIN" if signed == -(2**63) else f"INT64_C({signed})"


def literal(passing: str, value: Any) -> str:
    """A number or a truth value of the type that `passing` names."""
    match passing:
        case "bool":
            return "true" if value else "false"
        case "float" | "double":
            return f"({passing}){real(float(value))}"
        case _:
            return whole(int(value))

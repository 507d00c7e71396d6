"""What a C parameter may mean: the type line whose C spelling it is, found by spelling every type line there is."""

import re
from dataclasses import dataclass
from functools import cache

from diopigen.c_spelling import c_type
from diopigen.diagnostics import Span
from diopigen.model.interface import CType
from diopigen.model.op import Param, Role
from diopigen.model.type import Value, ValueType

TENSOR, CONST_TENSOR = "diopiTensorHandle_t", "diopiConstTensorHandle_t"

_DIMENSION = re.compile(r"(?i)(^|_)(dims?|axis|axes)\d*$")
_INDEX = re.compile(r"(?i)(^|_)(index|indices|idx|inds?|ids)$")
_MASK = re.compile(r"(?i)(^|_)mask$")
_NOWHERE = Span(path="", line=1, column=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueGuess:
    """A type line for a parameter that is not a tensor."""

    line: str  # e.g. "Dim?"
    c: str | None  # e.g. "const double", where the line alone is spelled otherwise
    host: bool  # True for a pointer to a plain value, which the function may write
    why: str | None  # e.g. "a dimension, by its name"


def guess_value(type_: CType, name: str) -> ValueGuess:
    """What a parameter of that type and name means; a type that no line spells is kept by `c`."""
    spelled, host = _spellings()
    line = spelled.get(type_.spelled)
    if line is not None:
        return _named(line, name)
    if type_.spelled in host:
        return ValueGuess(line=host[type_.spelled], c=None, host=True, why="written by the function")
    bare = type_.spelled.removeprefix("const ")
    if bare in spelled and "*" not in bare:
        return ValueGuess(line=spelled[bare], c=type_.spelled, host=False, why=None)
    line = "pointer" if type_.resolved.endswith(("*", "]")) else "int"
    return ValueGuess(line=line, c=type_.spelled, host=False, why="no type line spells it")


def _named(line: str, name: str) -> ValueGuess:
    """Numbers that are dimensions by their names count from the end when they are negative."""
    if line in ("int", "int?", "int[]") and _DIMENSION.search(name):
        dimension = line.replace("int", "Dim")
        return ValueGuess(line=dimension, c=None, host=False, why="a dimension, by its name")
    return ValueGuess(line=line, c=None, host=False, why=None)


@cache
def _spellings() -> tuple[dict[str, str], dict[str, str]]:
    """C type to type line, for arguments and for values that are written; the plainest line comes first."""
    spelled: dict[str, str] = {}
    host: dict[str, str] = {}
    for optional, many in ((False, False), (True, False), (False, True), (True, True)):
        for value in Value:
            type_ = ValueType(value=value, optional=optional, many=many)
            spelled.setdefault(_spelling(type_, Role.IN), str(type_))
    for value in Value:
        type_ = ValueType(value=value)
        if _spelling(type_, Role.HOST_OUT) not in spelled:
            host.setdefault(_spelling(type_, Role.HOST_OUT), str(type_))
    return spelled, host


def _spelling(type_: ValueType, role: Role) -> str:
    return c_type(
        Param(
            name="",
            arg="",
            type=type_,
            role=role,
            default=None,
            has_default=False,
            shape=None,
            c=None,
            span=_NOWHERE,
        )
    )


def guess_element(name: str) -> tuple[str, str]:
    """The element type of a tensor of that name, and why."""
    if _INDEX.search(name):
        return "i64", "i64, by its name"
    if _MASK.search(name):
        return "bool", "bool, by its name"
    return "T", "of the common type"

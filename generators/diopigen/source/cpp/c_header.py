"""Reads a C header back into declarations, so that what was emitted can be held against what was meant."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diopigen.source.cpp.clang import functions_in, parse, tokens_of

_LINKAGE = ("extern", "DIOPI_API", "DIOPI_RT_API", "DIOPI_ATTR_WEAK")
_WEAK = ("DIOPI_API", "DIOPI_ATTR_WEAK")


class BrokenHeader(Exception):
    """clang complains about the header; the text names the place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderFunction:
    """One declaration, as the header spells it."""

    name: str  # e.g. "diopiAdd"
    returns: str  # e.g. "diopiError_t"
    params: tuple[tuple[str, str], ...]  # e.g. (("const diopiScalar_t *", "alpha"),): type, name
    linkage: str  # e.g. "extern DIOPI_API", the words before the returned type
    weak: bool
    line: int


def read_header(path: Path, include_dirs: Sequence[Path], language: str = "c") -> tuple[HeaderFunction, ...]:
    """The functions that `path` itself declares, in its order; those of headers that it includes are not.

    `language` is "c" or "c++". Raises BrokenHeader on any error: a header that is not read whole still shows
    every function, with wrong types.
    """
    standard = "c11" if language == "c" else "c++11"
    flags = ["-x", language, f"-std={standard}", *(f"-I{folder}" for folder in include_dirs)]
    parsed = parse(path, flags)
    if parsed.complaints:
        first = parsed.complaints[0]
        raise BrokenHeader(f"{first.path}:{first.line}:{first.column}: {first.message}")
    words = dict(_words_before(parsed.unit, path))
    return tuple(
        _function(cursor, words)
        for cursor in functions_in(parsed, "")
        if cursor.location.file is not None and Path(cursor.location.file.name).resolve() == path.resolve()
    )


def _function(cursor: Any, words: dict[int, tuple[str, ...]]) -> HeaderFunction:
    linkage = tuple(word for word in words.get(cursor.location.offset, ()) if word in _LINKAGE)
    return HeaderFunction(
        name=cursor.spelling,
        returns=_spelled(cursor.result_type),
        params=tuple((_spelled(argument.type), argument.spelling) for argument in cursor.get_arguments()),
        linkage=" ".join(linkage),
        weak=any(word in _WEAK for word in linkage),
        line=cursor.location.line,
    )


def _spelled(type_: Any) -> str:
    """As the header writes it: in C, `bool` is a macro and clang shows what it stands for."""
    return str(type_.spelling).replace("_Bool", "bool")


def _words_before(unit: Any, path: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """For each token's offset, the words since the declaration began: macros are gone from the cursors."""
    words: list[str] = []
    for token in tokens_of(unit, path):
        yield token.location.offset, tuple(words)
        if token.spelling in (";", "{", "}") or token.spelling.startswith(("//", "/*")):
            words = []
        else:
            words.append(token.spelling)

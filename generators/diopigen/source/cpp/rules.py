"""Which C++ functions schemas may call, read from the headers that declare them: names and numbers of arguments."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from diopigen.model.arities import Arities
from diopigen.source.cpp.source_cache import SourceCache

_FLAGS = ("-x", "c++", "-std=c++20")
_MOST = 64  # arguments of a function that takes any number of them


def arities(header: Path, namespace: str, cache: Path) -> Arities:
    """The functions of `namespace` in `header`; what it includes is not read."""
    store = SourceCache(cache, {"${folder}": header.parent})
    source = str(header)
    found = store.found(source, (*_FLAGS, namespace))
    if found is None:
        found = _parsed(header, namespace)
        store.keep(source, (*_FLAGS, namespace), [source], found)
        store.write([source])
    return {name: tuple((low, high) for low, high in overloads) for name, overloads in found.items()}


def _parsed(header: Path, namespace: str) -> dict[str, list[list[int]]]:
    from diopigen.source.cpp.clang import parse, tokens_of

    # Only tokens are used: the types need headers of torch, which would take seconds to read.
    words = [token.spelling for token in tokens_of(parse(header, _FLAGS).unit, header) if token.kind.name != "COMMENT"]
    opening = ["namespace", *namespace.replace("::", " :: ").split(), "{"]
    rules: dict[str, list[list[int]]] = {}
    for start in range(len(words)):
        if words[start : start + len(opening)] == opening:
            for name, params in _declarations(words[start + len(opening) :]):
                required = sum(1 for param in params if "=" not in param and "..." not in param)
                pack = any("..." in param for param in params)
                rules.setdefault(name, []).append([required, _MOST if pack else len(params)])
    return rules


def _declarations(words: Sequence[str]) -> Iterator[tuple[str, list[list[str]]]]:
    """Names and parameters of the functions at the top level of a namespace, whose words these are."""
    depth = 0
    position = 0
    while position < len(words) and depth >= 0:
        word = words[position]
        if word in "{}":
            depth += 1 if word == "{" else -1
        elif word == "(" and depth == 0:
            params, end = _params(words, position + 1)
            yield words[position - 1], params
            position = end
        position += 1


def _params(words: Sequence[str], start: int) -> tuple[list[list[str]], int]:
    """The words of each parameter from `start` on, and where the closing bracket is."""
    params: list[list[str]] = [[]]
    nesting = 0
    for position in range(start, len(words)):
        word = words[position]
        if word == ")" and nesting == 0:
            return [param for param in params if param], position
        nesting += word in ("(", "<", "[", "{")
        nesting -= word in (")", ">", "]", "}")
        if word == "," and nesting == 0:
            params.append([])
        else:
            params[-1].append(word)
    return [], len(words)

"""The patterns that the generator writes beside the vendor's libraries."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import torch

from dicp.operators import read, whole
from dicp.settings import BadSetting
from diopigen.records import patterns as records
from diopigen.records.patterns import Input, Spelling
from diopigen.vocabulary.torch_dtypes import TORCH_DTYPES

# e.g. ("call", "add", ("input", "x"), ("number", 1)); also ("part", name), ("word", None), ("element", "T"),
# ("dtype", torch.float32) and ("anything",).
Tree: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    symbols: tuple[str, ...]
    dtypes: tuple[torch.dtype, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """An idiom; schemas/patterns.yaml says what the fields mean."""

    name: str
    by: tuple[Service, ...]
    inputs: dict[str, Input]
    without_gradient: tuple[str, ...]
    where: dict[str, tuple[torch.dtype, ...]]
    parts: dict[str, tuple[Tree, ...]]
    match: tuple[Spelling, ...]
    when: tuple[Tree, ...]
    becomes: Tree | None
    off: str | None  # why it is not applied unless it is asked for
    forward: int
    backward: int | None
    examples: tuple[dict[str, Any], ...]

    @property
    def roots(self) -> frozenset[str]:
        """The operators that the last node of a match may be."""
        return frozenset(root for spelling in self.match for root in self._roots(spelling.tree))

    def _roots(self, tree: Tree) -> set[str]:
        if tree[0] == "part":
            return {root for way in self.parts[tree[1]] for root in self._roots(way)}
        if tree[0] != "call":
            return set()
        return {tree[1]} | (self._roots(tree[2]) if tree[1] == "cast" else set())

    def served(self, dtype: torch.dtype, has: Callable[[str], bool]) -> bool:
        """Whether the vendor's library has the functions for a dtype, those of the first op that takes it."""
        first = next((one for one in self.by if dtype in one.dtypes), None)
        return not self.by or (first is not None and all(map(has, first.symbols)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    every: dict[str, Pattern]  # by name

    def chosen(self, names: tuple[str, ...] | None) -> tuple[Pattern, ...]:
        """Those that rewrite: of `names`, or where None all that are not off. Raises BadSetting for an unknown name."""
        for name in names or ():
            if name not in (*self.every, "all"):
                raise BadSetting(f"DICP_PATTERNS names '{name}', and the patterns are {', '.join(self.every)}")
        if names is None:
            found = [pattern for pattern in self.every.values() if pattern.off is None]
        else:
            found = [pattern for pattern in self.every.values() if pattern.name in names or "all" in names]
        return tuple(pattern for pattern in found if pattern.becomes is not None)


@cache
def pattern_table(path: Path) -> Patterns:
    """Raises NoTable when the file is missing, damaged or of another version."""
    found = read(records.Patterns, path, "are no patterns")
    with whole(path):
        return Patterns(every={name: _pattern(name, one) for name, one in found.patterns.items()})


def _pattern(name: str, found: records.Pattern) -> Pattern:
    def tree(found: records.Tree) -> Tree:
        match found:
            case ("number", text):
                return ("number", _number(text))
            case ("dtype", word):
                return ("dtype", TORCH_DTYPES[word])
            case ("call", function, *args):
                return ("call", function, *map(tree, args))
        return tuple(found)

    def dtypes(names: Iterable[str]) -> tuple[torch.dtype, ...]:
        return tuple(TORCH_DTYPES[one] for one in names)

    return Pattern(
        name=name,
        by=tuple(Service(symbols=one.symbols, dtypes=dtypes(one.dtypes)) for one in found.by),
        inputs=found.inputs,
        without_gradient=found.without_gradient,
        where={key: dtypes(members) for key, members in found.where.items()},
        parts={key: tuple(map(tree, ways)) for key, ways in found.parts.items()},
        match=tuple(replace(one, tree=tree(one.tree)) for one in found.match),
        when=tuple(map(tree, found.when)),
        becomes=None if found.becomes is None else tree(found.becomes),
        off=found.off,
        forward=found.forward,
        backward=found.backward,
        examples=found.examples,
    )


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)

"""The patterns that the generator writes beside the vendor's libraries."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import torch

from dicp.operators import NoTable, whole
from dicp.settings import BadSetting

PATTERNS_VERSION = 1

# e.g. ("call", "add", ("input", "x"), ("number", 1)); also ("part", name), ("word", None), ("element", "T"),
# ("dtype", torch.float32) and ("anything",).
Tree: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    kind: str  # "tensor", "float", "int", "bool", "Dim"
    element: str | torch.dtype | None  # e.g. "T", or the dtype that it always is
    default: Any
    optional: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    tree: Tree
    text: str
    sets: dict[str, Any]


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
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise NoTable(f"there are no patterns at {path}: run `make build`") from error
    with whole(path):
        read = json.loads(text)
        if read["version"] != PATTERNS_VERSION:
            version = read["version"]
            raise NoTable(f"{path} is of version {version}, this compiler reads {PATTERNS_VERSION}: run `make build`")
        dtypes = {name: getattr(torch, word) for name, word in read["dtypes"].items()}
        return Patterns(every={name: _pattern(name, row, dtypes) for name, row in read["patterns"].items()})


def _pattern(name: str, row: dict[str, Any], dtypes: dict[str, torch.dtype]) -> Pattern:
    def tree(read: list[Any]) -> Tree:
        match read:
            case ["number", text]:
                return ("number", _number(text))
            case ["dtype", word]:
                return ("dtype", dtypes[word])
            case ["call", function, *args]:
                return ("call", function, *map(tree, args))
        return tuple(read)

    return Pattern(
        name=name,
        by=tuple(
            Service(symbols=tuple(one["symbols"]), dtypes=tuple(dtypes[d] for d in one["dtypes"])) for one in row["by"]
        ),
        inputs={
            key: Input(**{**given, "element": dtypes.get(given["element"], given["element"])})
            for key, given in row["inputs"].items()
        },
        without_gradient=tuple(row["without_gradient"]),
        where={key: tuple(dtypes[d] for d in members) for key, members in row["where"].items()},
        parts={key: tuple(map(tree, ways)) for key, ways in row["parts"].items()},
        match=tuple(Spelling(tree=tree(s["tree"]), text=s["text"], sets=s["sets"]) for s in row["match"]),
        when=tuple(map(tree, row["when"])),
        becomes=None if row["becomes"] is None else tree(row["becomes"]),
        off=row["off"],
        forward=row["forward"],
        backward=row["backward"],
        examples=tuple(row["examples"]),
    )


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)

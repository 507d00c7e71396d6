"""patterns.json: idioms as trees of operators, with every name told apart."""

from dataclasses import dataclass
from typing import Any

Tree = tuple[Any, ...]  # e.g. ("call", "add", ("input", "x"), ("number", "1"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    kind: str  # "tensor", or the word of the schema: e.g. "float"
    element: str | None  # e.g. "T", "i64"
    default: Any
    optional: bool  # some spelling does without


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    tree: Tree
    text: str  # as written
    sets: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """An op that serves the pattern: its functions, and the dtypes that they take."""

    symbols: tuple[str, ...]  # e.g. ("diopiRMSNorm", "diopiRMSNormBackward")
    dtypes: tuple[str, ...]  # of its first variable; e.g. ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    doc: str
    by: tuple[Service, ...]
    inputs: dict[str, Input]
    without_gradient: tuple[str, ...]
    where: dict[str, tuple[str, ...]]
    parts: dict[str, tuple[Tree, ...]]
    match: tuple[Spelling, ...]
    when: tuple[Tree, ...]
    becomes: Tree | None
    off: str | None  # why it is left alone for this vendor unless it is asked for
    forward: int  # launches
    backward: int | None
    examples: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """patterns.json."""

    version: int = 1
    dtypes: dict[str, str]  # e.g. {"f32": "float32"}: what torch calls them
    patterns: dict[str, Pattern]  # the first that fits is taken

"""Trees of frozen dataclasses as one line of JSON, and back; what occurs more than once is written once."""

import json
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from types import ModuleType
from typing import Any, TypeVar

from diopigen.diagnostics import Diagnostics
from diopigen.kept import KeptTexts

Tree = TypeVar("Tree")
_TUPLE = 0


class Trees:
    """Of tuples, plain values, and the dataclasses and enumerations that `modules` define.

    A line is two lists, the plain values and the nodes. A node is the number of its class and those of its fields:
    of plain values first, then of the nodes before it. The tree is the last node.
    """

    def __init__(self, modules: Iterable[ModuleType]) -> None:
        kinds = [v for m in modules for v in vars(m).values() if isinstance(v, type) and v.__module__ == m.__name__]
        self._kinds: list[Any] = [tuple, *(kind for kind in kinds if is_dataclass(kind) or issubclass(kind, Enum))]
        self._numbers = {kind: number for number, kind in enumerate(self._kinds)}
        self._names = [tuple(f.name for f in fields(kind)) if is_dataclass(kind) else () for kind in self._kinds]

    def text(self, tree: object) -> str:
        """Raises KeyError for a value of another class."""
        plain: dict[tuple[type, str], int] = {}
        values: list[object] = []
        self._collect(tree, plain, values)
        nodes: dict[tuple[int, ...], int] = {}
        self._number(tree, plain, nodes, len(values))
        return json.dumps([values, list(nodes)], ensure_ascii=False, separators=(",", ":"))

    def tree(self, text: str) -> Any:
        found, nodes = json.loads(text)
        for number, *parts in nodes:
            values = [found[part] for part in parts]
            if number == _TUPLE:
                found.append(tuple(values))
            elif names := self._names[number]:
                found.append(self._kinds[number](**dict(zip(names, values, strict=True))))
            else:
                found.append(self._kinds[number][values[0]])
        return found[-1]

    def _parts(self, value: Any) -> tuple[Any, ...] | None:
        """None of a plain value."""
        if value is None or type(value) in (bool, int, float, str):
            return None
        if isinstance(value, Enum):
            return (value.name,)
        return value if type(value) is tuple else tuple(getattr(value, name) for name in self._names[self._kind(value)])

    def _kind(self, value: object) -> int:
        return self._numbers[type(value)]

    def _collect(self, value: object, plain: dict[tuple[type, str], int], values: list[object]) -> None:
        parts = self._parts(value)
        if parts is None:
            if (type(value), repr(value)) not in plain:
                plain[type(value), repr(value)] = len(values)
                values.append(value)
            return
        for part in parts:
            self._collect(part, plain, values)

    def _number(
        self, value: object, plain: dict[tuple[type, str], int], nodes: dict[tuple[int, ...], int], first: int
    ) -> int:
        parts = self._parts(value)
        if parts is None:
            return plain[type(value), repr(value)]
        node = (self._kind(value), *(self._number(part, plain, nodes, first) for part in parts))
        return nodes.setdefault(node, first + len(nodes))


def remembered(
    kept: KeptTexts | None, key: str, trees: Trees, diagnostics: Diagnostics, read: Callable[[Diagnostics], Tree]
) -> Tree:
    """What `read` gives, which `kept` has from an earlier run if there was no finding."""
    known = None if kept is None else kept.found(key)
    if known is not None:
        again: Tree = trees.tree(known)
        return again
    found = Diagnostics()
    tree = read(found)
    diagnostics.add(*found.found)
    if kept is not None and not found.found:
        kept.keep(key, trees.text(tree))
    return tree

"""What must hold of an idiom's inputs besides their dtypes; of symbols only what all of their values do."""

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import statically_known_true

from dicp.patterns.indexing import example
from dicp.patterns.match import Match
from dicp.patterns.table import Tree

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.floordiv,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}


def holds(condition: Tree, match: Match) -> bool:
    """Whether a condition is known to hold, or is about an input that is absent; what cannot be told does not."""
    return any(match.inputs[name] is None for name in _named(condition)) or _holds(condition, match)


def _named(tree: Tree) -> set[str]:
    if tree[0] == "input":
        return {tree[1]}
    return {name for inner in tree[2:] for name in _named(inner)} if tree[0] == "call" else set()


def _holds(condition: Tree, match: Match) -> bool:
    match condition:
        case ("call", "and", one, other):
            return _holds(one, match) and _holds(other, match)
        case ("call", "or", one, other):
            return _holds(one, match) or _holds(other, match)
        case ("call", "fixed", size):
            return isinstance(_value(size, match), int)
        case ("call", "same", one, other):
            left, right = _tensor(one, match), _tensor(other, match)
            return left.dim() == right.dim() and all(map(_known, map(operator.eq, left.shape, right.shape)))
        case ("call", name, one, other) if name in _COMPARISONS:
            return _known(_COMPARISONS[name](_value(one, match), _value(other, match)))
    return bool(_value(condition, match))


def _value(tree: Tree, match: Match) -> Any:
    match tree:
        case ("number", number):
            return number
        case ("word", word):
            return word
        case ("input", name):
            given = match.inputs[name]
            return example(given) if isinstance(given, fx.Node) else given
        case ("call", "rank", tensor):
            return _tensor(tensor, match).dim()
        case ("call", "size", tensor, dim):
            return _tensor(tensor, match).shape[_value(dim, match)]
        case ("call", name, one, other):
            return _ARITHMETIC[name](_value(one, match), _value(other, match))
    raise AssertionError(f"a condition of the kind {tree}")


def _tensor(tree: Tree, match: Match) -> torch.Tensor:
    found = _value(tree, match)
    assert isinstance(found, torch.Tensor)
    return found


def _known(answer: Any) -> bool:
    return bool(statically_known_true(answer))

"""Whether the nodes that end in one are an idiom, and what it is computed from."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx

from dicp.patterns.indexing import example
from dicp.patterns.table import Pattern, Tree
from dicp.patterns.terms import Term, Terms
from diopigen.records.patterns import Input
from diopigen.vocabulary.torch_dtypes import TORCH_DTYPES

_COMMUTATIVE = {"add", "mul", "eq", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or"}


@dataclass(frozen=True, slots=True)
class Match:
    """What is known so far: inputs by name, element types by variable, and the nodes that go."""

    inputs: dict[str, Any] = field(default_factory=dict)
    elements: dict[str, torch.dtype] = field(default_factory=dict)
    nodes: frozenset[fx.Node] = frozenset()


def matches(pattern: Pattern, root: fx.Node, terms: Terms) -> Iterator[Match]:
    """Every way in which the nodes up to `root` are the idiom, by the order of its spellings."""
    walk = _Walk(pattern, terms)
    for spelling in pattern.match:
        for found in walk.meets(spelling.tree, root, Match()):
            inputs = {**_defaults(pattern), **spelling.sets, **found.inputs}
            if all(found.inputs.get(name, value) == value for name, value in spelling.sets.items()):
                yield replace(found, inputs=inputs)


def _defaults(pattern: Pattern) -> dict[str, Any]:
    return {name: given.default for name, given in pattern.inputs.items() if given.optional}


class _Walk:
    """A pattern's trees against a graph; the first way that leads on is tried first."""

    def __init__(self, pattern: Pattern, terms: Terms) -> None:
        self._pattern, self._terms = pattern, terms

    def meets(self, tree: Tree, value: Any, known: Match) -> Iterator[Match]:
        """Every way in which `value` is what `tree` says."""
        value, passed = self._terms.resolved(value)
        if passed:
            known = replace(known, nodes=known.nodes | set(passed))
        match tree:
            case ("anything",):
                yield known
            case ("input", name):
                yield from self._input(name, self._pattern.inputs[name], value, known)
            case ("part", name):
                for way in self._pattern.parts[name]:
                    yield from self.meets(way, value, known)
            case ("number", number):
                if isinstance(value, int | float) and value == number:
                    yield known
            case ("word", word):
                if value == word and not isinstance(value, fx.Node):
                    yield known
            case ("dtype", dtype):
                if value == dtype:
                    yield known
            case ("call", "cast", source, kind):
                yield from self._cast(source, kind, value, known)
            case ("call", "list", *items):
                values = value if isinstance(value, list | tuple) else [value]
                if len(values) == len(items):
                    yield from self._all(items, values, known)
            case ("call", op, *args):
                yield from self._call(op, args, value, known)

    def _input(self, name: str, given: Input, value: Any, known: Match) -> Iterator[Match]:
        if name in known.inputs:
            if known.inputs[name] is value or (not isinstance(value, fx.Node) and known.inputs[name] == value):
                yield known
            return
        if given.kind != "tensor":
            if _is_number(given.kind, value):
                yield replace(known, inputs={**known.inputs, name: value})
            return
        held = example(value) if isinstance(value, fx.Node) else None
        if not isinstance(held, torch.Tensor):
            return
        assert given.element is not None
        for typed in self._typed(TORCH_DTYPES.get(given.element, given.element), held.dtype, known):
            yield replace(typed, inputs={**typed.inputs, name: value})

    def _typed(self, element: str | torch.dtype, dtype: torch.dtype, known: Match) -> Iterator[Match]:
        """What is known once an element type, a variable or a dtype, is said to be `dtype`."""
        if isinstance(element, torch.dtype):
            if element == dtype:
                yield known
        elif dtype in self._pattern.where[element] and known.elements.get(element, dtype) == dtype:
            yield replace(known, elements={**known.elements, element: dtype})

    def _cast(self, source: Tree, kind: Tree, value: Any, known: Match) -> Iterator[Match]:
        """A conversion, or what has the dtype already."""
        if not isinstance(value, fx.Node) or not isinstance(example(value), torch.Tensor):
            return
        for one in self._typed(kind[1], example(value).dtype, known):
            term = self._terms.term(value)
            if term is not None and term.op == "cast":
                yield from self.meets(source, term.args[0], replace(one, nodes=one.nodes | {value}))
            yield from self.meets(source, value, one)

    def _call(self, op: str, args: list[Tree], value: Any, known: Match) -> Iterator[Match]:
        term = self._terms.term(value) if isinstance(value, fx.Node) else None
        if term is None or term.op != op or not _says_no_more(term, len(args)):
            return
        inside = replace(known, nodes=known.nodes | {value})
        yield from self._all(args, term.args, inside)
        if op in _COMMUTATIVE:
            yield from self._all(args, (term.args[1], term.args[0], *term.args[2:]), inside)

    def _all(self, trees: list[Tree], values: Any, known: Match) -> Iterator[Match]:
        if not trees:
            yield known
            return
        for first in self.meets(trees[0], values[0], known):
            yield from self._all(trees[1:], values[1:], first)


def _says_no_more(term: Term, count: int) -> bool:
    """Whether the arguments that a pattern does not name are what they are where nobody says them."""
    return len(term.args) >= count and all(
        given is default or (not isinstance(given, fx.Node) and given == default)
        for given, default in zip(term.args[count:], term.defaults[count:], strict=True)
    )


def _is_number(kind: str, value: Any) -> bool:
    if kind == "bool":
        return isinstance(value, bool)
    if isinstance(value, fx.Node):
        return isinstance(example(value), torch.SymInt if kind == "int" else torch.SymInt | torch.SymFloat)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole or (kind == "float" and isinstance(value, float))

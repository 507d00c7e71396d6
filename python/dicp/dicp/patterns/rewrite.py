"""Puts one operator where a program wrote an idiom out, before the graph is differentiated.

So the gradient is the operator's own, too. What Dynamo gives is changed in place.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from dicp.patterns.conditions import holds
from dicp.patterns.indexing import example
from dicp.patterns.match import Match, matches
from dicp.patterns.replacement import replacement
from dicp.patterns.table import Pattern
from dicp.patterns.terms import Terms, writes

_KEPT = {"cast", "transpose", "permute", "slice", "chunk", "item"}  # may be read elsewhere: they cost nothing or stay


@dataclass(frozen=True, slots=True)
class Applied:
    """One idiom that was found."""

    pattern: str  # e.g. "rms_norm"
    nodes: tuple[str, ...]  # e.g. ("pow_1", "mean", "add", "rsqrt", "mul"), what went
    node: str  # e.g. "rms_norm", what came


def rewritten(
    module: fx.GraphModule, patterns: Sequence[Pattern], served: Callable[[str], bool]
) -> tuple[Applied, ...]:
    """The idioms of a graph of Dynamo that functions of the vendor compute; `served` says whether it has one."""
    found = _Rewriting(module.graph, patterns, served).applied()
    if found:
        module.recompile()
    return found


class _Rewriting:
    def __init__(self, graph: fx.Graph, patterns: Sequence[Pattern], served: Callable[[str], bool]) -> None:
        self._graph, self._served = graph, served
        self._device = torch._C._get_privateuse1_backend_name()
        self._terms = Terms()
        self._at = {node: index for index, node in enumerate(graph.nodes)}
        self._writing = [index for node, index in self._at.items() if writes(node)]
        self._by_root: dict[str, list[Pattern]] = {}
        for pattern in patterns:
            for root in sorted(pattern.roots):
                self._by_root.setdefault(root, []).append(pattern)

    def applied(self) -> tuple[Applied, ...]:
        found: list[Applied] = []
        gone: set[fx.Node] = set()
        for node in reversed(list(self._graph.nodes)):
            if node not in gone:
                applied = self._replaced(node, gone)
                found += [applied] if applied is not None else []
        return tuple(reversed(found))

    def _replaced(self, root: fx.Node, gone: set[fx.Node]) -> Applied | None:
        term = self._terms.term(root)
        held = example(root)
        if term is None or not isinstance(held, FakeTensor) or held.device.type != self._device:
            return None
        for pattern, match in self._candidates(term.op, root):
            made = replacement(self._graph, root, pattern, match)
            if made is None:
                continue
            root.replace_all_uses_with(made)
            names = tuple(node.name for node in sorted(match.nodes, key=self._at.__getitem__))
            gone |= self._erased(match)
            return Applied(pattern.name, names, made.name)
        return None

    def _candidates(self, op: str, root: fx.Node) -> Iterator[tuple[Pattern, Match]]:
        for pattern in self._by_root.get(op, ()):
            for match in matches(pattern, root, self._terms):
                if self._fits(pattern, match, root):
                    yield pattern, match

    def _fits(self, pattern: Pattern, match: Match, root: fx.Node) -> bool:
        return (
            pattern.served(example(root).dtype, self._served)
            and all(holds(condition, match) for condition in pattern.when)
            and all(node is root or self._is_inner(node, match) for node in match.nodes)
            and self._nothing_writes(match, root)
        )

    def _is_inner(self, node: fx.Node, match: Match) -> bool:
        """Whether nobody else reads a node, or nothing is computed twice if somebody does."""
        if all(user in match.nodes for user in node.users):
            return True
        term = self._terms.term(node)
        return (term is not None and term.op in _KEPT) or self._is_constant(node)

    def _is_constant(self, node: fx.Node) -> bool:
        """e.g. a mask that every layer shares."""
        if node.op == "placeholder":
            return not isinstance(example(node), torch.Tensor)
        return node.op == "call_function" and all(map(self._is_constant, node.all_input_nodes))

    def _nothing_writes(self, match: Match, root: fx.Node) -> bool:
        first = min(self._at[node] for node in match.nodes)
        return not any(first < index < self._at[root] for index in self._writing)

    def _erased(self, match: Match) -> set[fx.Node]:
        gone: set[fx.Node] = set()
        for node in sorted(match.nodes, key=self._at.__getitem__, reverse=True):
            if not node.users:
                self._graph.erase_node(node)
                gone.add(node)
        return gone

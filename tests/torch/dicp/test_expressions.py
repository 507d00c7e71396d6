"""Expressions of the table: numbers of arguments, and what is known to hold of sizes that change."""

from typing import Any

import pytest
import sympy
import torch

from dicp.expressions import Unknown, holds, value_of
from dicp.program import Root, RootKind, View

S = sympy.Symbol("s", integer=True, positive=True)


def view(*sizes: Any) -> View:
    return View(root=Root(kind=RootKind.INPUT), dtype=torch.float32, sizes=sizes, strides=(1,) * len(sizes))


ARGUMENTS: dict[str, Any] = {"q": view(2, 3, S, 16), "k": view(2, 3, S + 1, 16), "causal": False, "scale": None, "p": 3}


def size(name: str, dim: int) -> list[Any]:
    return ["call", "size", ["name", name], ["number", str(dim)]]


@pytest.mark.parametrize(
    ("tree", "value"),
    [
        (["-", ["number", "2.5"]], -2.5),
        (["text", "linear"], "linear"),
        (["call", "given", ["name", "p"], ["number", "1"]], 3),
        (["call", "given", ["name", "scale"], ["/", ["number", "1"], ["call", "sqrt", size("q", 3)]]], 0.25),
        (["*", size("q", 0), ["+", ["name", "p"], ["number", "1"]]], 8),
        (["call", "rank", ["name", "q"]], 4),
        (size("q", 2), S),
    ],
)
def test_values(tree: list[Any], value: Any) -> None:
    assert value_of(tree, ARGUMENTS) == value


def test_a_value_of_symbols_is_their_expression() -> None:
    expr = value_of(["/", ["number", "1"], ["call", "sqrt", size("q", 2)]], ARGUMENTS)
    assert expr.free_symbols == {S} and float(expr.subs(S, 16)) == 0.25


@pytest.mark.parametrize(
    ("tree", "known"),
    [
        (["==", size("q", 0), size("k", 0)], True),
        (["==", size("q", 2), size("k", 2)], False),
        ([">", size("q", 2), ["number", "0"]], True),
        ([">", size("q", 2), ["number", "1"]], False),  # not for each length
        (["or", ["not", ["name", "causal"]], ["==", size("q", 2), size("k", 2)]], True),
        (["and", ["name", "causal"], [">", size("q", 0), ["number", "0"]]], False),
        (["call", "same", ["name", "q"], ["name", "q"]], True),
        (["call", "same", ["name", "q"], ["name", "k"]], False),
    ],
)
def test_conditions(tree: list[Any], known: bool) -> None:
    assert holds(tree, ARGUMENTS) is known


@pytest.mark.parametrize("tree", [["call", "conv_bias_sizes", ["name", "q"]], ["name", "absent"], size("p", 0)])
def test_what_only_the_eager_operator_knows(tree: list[Any]) -> None:
    with pytest.raises(Unknown):
        value_of(tree, ARGUMENTS)
    with pytest.raises(Unknown):
        holds(tree, ARGUMENTS)

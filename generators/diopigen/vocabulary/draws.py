"""How the values of a case's tensors are drawn: what `data` of a schema calls."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One way to draw; conformance/values/draw.py does it."""

    name: str
    least: int = 0  # arguments
    most: int = 0
    single: bool = False  # each element by itself, so that one may stand at several places
    positions: bool = False  # in a tensor
    truth: bool = False  # only being zero or not matters
    range: bool = False  # from its first number to its second
    numbers: bool = False  # of its numbers, or from one on


_MANY = 64
COLUMNS = Draw(name="columns", least=1, most=_MANY)
DRAWS = (
    Draw(name="uniform", least=2, most=2, single=True, range=True),
    Draw(name="normal", least=2, most=2, single=True),
    Draw(name="integers", least=2, most=2, single=True, range=True),
    Draw(name="index", least=2, most=2, single=True, positions=True),
    Draw(name="mask", least=1, most=1, single=True, truth=True),
    Draw(name="distinct", single=True),
    Draw(name="distinct_index", least=2, most=2, positions=True),
    Draw(name="distinct_integers", least=2, most=2, range=True),
    Draw(name="permutations", least=1, most=1, numbers=True),
    Draw(name="probabilities", least=1, most=1),
    Draw(name="positive_definite"),
    Draw(name="boxes"),
    Draw(name="distances"),
    Draw(name="zeros", single=True),
    Draw(name="values", least=1, most=_MANY, single=True, numbers=True),
    Draw(name="listed", least=1, most=_MANY, numbers=True),
    COLUMNS,
)
DRAW = {draw.name: draw for draw in DRAWS}  # e.g. DRAW["mask"].truth

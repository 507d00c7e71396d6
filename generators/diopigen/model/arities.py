"""The C++ functions that schemas may call, by name, with how many arguments each overload takes."""

from collections.abc import Mapping

Arities = Mapping[str, tuple[tuple[int, int], ...]]  # e.g. {"reduced": ((2, 3),)}: each overload, fewest and most


def takes(functions: Arities, name: str, count: int) -> bool:
    """Whether an overload of `name` can be called with `count` arguments."""
    return any(low <= count <= high for low, high in functions.get(name, ()))

"""The C++ functions that schemas may call, by name, with how many arguments each overload takes."""

from collections.abc import Mapping
from dataclasses import dataclass

Arities = Mapping[str, tuple[tuple[int, int], ...]]  # e.g. {"reduced": ((2, 3),)}: each overload, fewest and most


@dataclass(frozen=True, slots=True)
class WrittenHeader:
    """A header of functions that schemas may call."""

    shown: str  # e.g. "runtime_cpp/torch/wrapper/checks.h"
    functions: Arities


WrittenFunctions = Mapping[str, WrittenHeader]  # by what schemas call them for: "shape", "checks", "derive"


def takes(functions: Arities, name: str, count: int) -> bool:
    """Whether an overload of `name` can be called with `count` arguments."""
    return any(low <= count <= high for low, high in functions.get(name, ()))

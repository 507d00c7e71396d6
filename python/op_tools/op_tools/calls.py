"""One call of an operator, as the tools see it."""

import sys
from itertools import count
from pathlib import Path
from typing import Any

import torch

from op_tools.overloads import Overload
from op_tools.phases import BACKWARD, backward_node, phase

_OWN = str(Path(__file__).parent)
_TORCH = str(Path(torch.__file__).parent)

_numbers = count()


class Call:
    """An overload with its arguments. What costs time to know is found when it is asked for."""

    __slots__ = ("args", "function", "kwargs", "number", "overload")

    def __init__(self, overload: Overload, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.overload = overload
        self.function = function  # of torch, as the program called it, ex) "torch.nn.functional.linear"; or ""
        self.args = args
        self.kwargs = kwargs
        self.number = next(_numbers)  # in the order of beginnings, over all threads

    def __call__(self) -> Any:
        """Runs the operator itself."""
        return self.overload.function(*self.args, **self.kwargs)

    @property
    def given(self) -> dict[str, Any]:
        """The arguments by name."""
        return self.overload.given(self.args, self.kwargs)

    @property
    def names(self) -> tuple[str, ...]:
        """What lists may call it."""
        return (self.function, self.overload.name, self.overload.packet)

    @property
    def title(self) -> str:
        """What people call it: the function of torch that they called, or else the overload."""
        return self.function or self.overload.name

    @property
    def phase(self) -> str:
        return phase()

    @property
    def node(self) -> tuple[str, int | None]:
        """In backward: the node of the graph, and its number."""
        return backward_node() if phase() == BACKWARD else ("", None)

    def with_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> "Call":
        """The same call of other arguments; it keeps its number."""
        other = object.__new__(Call)
        other.overload, other.function, other.number = self.overload, self.function, self.number
        other.args, other.kwargs = args, kwargs
        return other


def location() -> str:
    """The innermost line outside torch and the tools, ex) "train.py:31"; empty in threads that run no such line."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((_OWN, _TORCH, "<")):
            return f"{Path(path).name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""

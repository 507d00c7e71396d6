"""One call of an operator, as the tools see it."""

import sys
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import torch

from op_tools.overloads import Overload
from op_tools.phases import BACKWARD, backward_node, phase

_OWN = str(Path(__file__).parent)
_TORCH = str(Path(torch.__file__).parent)


class OperatorCall:
    """An overload with its arguments. What costs time to know is found when it is asked for."""

    __slots__ = ("args", "function", "kwargs", "number", "overload")

    def __init__(
        self, overload: Overload, function: str, args: tuple[Any, ...], kwargs: dict[str, Any], number: int = 0
    ) -> None:
        self.overload = overload
        self.function = function  # of torch, as the program called it, e.g. "torch.nn.functional.linear"; or ""
        self.args = args
        self.kwargs = kwargs
        self.number = number  # in the order of beginnings, over all threads

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

    def with_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> "OperatorCall":
        """The same call of other arguments; it keeps its number."""
        other = object.__new__(OperatorCall)
        other.overload, other.function, other.number = self.overload, self.function, self.number
        other.args, other.kwargs = args, kwargs
        return other


Place = tuple[CodeType, int]  # a place in a program: its code, and the instruction


def place(above: int = 1) -> Place | None:
    """The innermost place outside torch and the tools, searched from `above` frames above the caller's; None in threads
    that run no such code.
    """
    frame: Any = sys._getframe(above)
    while frame is not None:
        code = frame.f_code
        if _is_program(code.co_filename):
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def line_of(place: Place | None) -> str:
    """e.g. "train.py:31"; empty for None."""
    return "" if place is None else _line(*place)


def location() -> str:
    """The innermost line outside torch and the tools, e.g. "train.py:31"; empty in threads that run no such line."""
    return line_of(place(2))


@cache
def _is_program(path: str) -> bool:
    return not path.startswith((_OWN, _TORCH, "<"))


def _line(code: CodeType, instruction: int) -> str:
    number = next((line for begin, end, line in code.co_lines() if begin <= instruction < end), None)
    return f"{Path(code.co_filename).name}:{number or code.co_firstlineno}"

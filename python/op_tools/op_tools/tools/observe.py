"""Prints what every operator is given and gives: shapes, dtypes, strides and devices, not values."""

import sys
from collections.abc import Callable
from typing import Any, ClassVar

from op_tools.calls import Call, location
from op_tools.describe import short
from op_tools.interception import Proceed
from op_tools.tool import OpTool


class OpObserve(OpTool):
    """A line for each call, in the order of their ends:

    `17 forward torch.nn.functional.linear aten.addmm.default(self=float32[4], ...) -> float32[2, 4] at train.py:31`

    `write` gets each line; left out, standard output does. See OpTool for the rest.
    """

    variable: ClassVar[str] = "OBSERVE"
    layer: ClassVar[int] = 0

    def __init__(self, ops: Any = None, *, write: Callable[[str], Any] | None = None, **options: Any) -> None:
        super().__init__(ops, **options)
        self._write = write or (lambda line: print(line, file=sys.stdout))

    def apply(self, call: Call, proceed: Proceed) -> Any:
        # Before the call, which may change what is written.
        given = ", ".join(f"{name}={short(value)}" for name, value in call.given.items())
        result = proceed(call)
        name = f"{call.function} " if call.function else ""
        place = location()
        where = f" at {place}" if place else ""
        self._write(f"{call.number} {call.phase} {name}{call.overload.name}({given}) -> {short(result)}{where}")
        return result

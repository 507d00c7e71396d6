"""Prints what every operator is given and gives: shapes, dtypes, strides and devices, not values."""

import atexit
import os
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import torch

from op_tools import environment
from op_tools.calls import Place, line_of, place
from op_tools.describe import seen, text_of
from op_tools.interception import Itself, Run
from op_tools.overloads import Overload
from op_tools.phases import graph_task, optimizers, phase_of
from op_tools.tool import OpTool


class OpObserve(OpTool):
    """A line for each call, in the order of their ends:

    `17 forward aten.addmm.default(self=float32[4], mat1=float32[2, 3], ...) -> float32[2, 4]`

    With `labels` the function of torch that the program called comes before the operator, with `locations` the line of
    the program comes last: ` at train.py:31`. Both cost time. `write` gets each line; left out, standard output does.
    Lines are made when OP_TOOLS_MAX_CACHE_SIZE calls wait and when the tool stops; 1 shows each call as it ends. See
    OpTool for the rest.
    """

    variable: ClassVar[str] = "OBSERVE"
    layer: ClassVar[int] = 0

    def __init__(
        self,
        ops: Any = None,
        *,
        write: Callable[[str], Any] | None = None,
        labels: bool = False,
        locations: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(ops, **options)
        self.labels_calls = labels
        self._locates = locations
        self._write = write or (lambda line: print(line, file=sys.stdout))
        self._waiting: list[tuple[Any, ...]] = []
        self._most = environment.count(environment.MAX_ROWS)
        self._process = os.getpid()

    def begin(self) -> None:
        self._most = environment.count(environment.MAX_ROWS)
        self._process = os.getpid()
        atexit.register(self.finish)

    def finish(self) -> None:
        if self._process == os.getpid():  # a forked process has lines that are not its own
            atexit.unregister(self.finish)
            self._write_waiting()

    def runner(self, overload: Overload, function: str, proceed: Run) -> Run:
        above = 2 if function else 1  # the frames of the mode, and of the one that labels
        operator = proceed.operator if isinstance(proceed, Itself) else None
        locates, waiting, most = self._locates, self._waiting, self._most
        tensor = torch.Tensor

        def run(number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            # Before the call, which may change what is written. `seen` is spelled out for what is there mostly.
            try:
                given = []
                for v in args:
                    if type(v) is tensor:
                        given.append((v.dtype, v.shape, v.stride(), None if v.is_cpu else v.device))
                    else:
                        given.append(seen(v))
            except RuntimeError:  # sparse ones have no strides
                given = [seen(value) for value in args]
            named = {name: seen(value) for name, value in kwargs.items()} if kwargs else None
            r = operator(*args, **kwargs) if operator is not None else proceed(number, args, kwargs)
            try:
                result = (
                    (r.dtype, r.shape, r.stride(), None if r.is_cpu else r.device) if type(r) is tensor else seen(r)
                )
            except RuntimeError:
                result = seen(r)
            where = place(above) if locates else None
            waiting.append((number, graph_task(), optimizers.depth, given, named, result, where, overload, function))
            if len(waiting) >= most:
                self._write_waiting()
            return r

        return run

    def _write_waiting(self) -> None:
        rows = self._waiting[:]
        del self._waiting[: len(rows)]
        for row in rows:
            self._write(_line(*row))


def _line(
    number: int,
    task: int,
    depth: int,
    given: Any,
    named: Any,
    result: Any,
    where: Place | None,
    overload: Overload,
    function: str,
) -> str:
    pairs = overload.given(tuple(given), named or {}).items()
    arguments = ", ".join(f"{name}={text_of(value)}" for name, value in pairs)
    label, location = f"{function} " if function else "", f" at {line_of(where)}" if where else ""
    return f"{number} {phase_of(task, depth)} {label}{overload.name}({arguments}) -> {text_of(result)}{location}"

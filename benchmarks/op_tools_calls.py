"""What small eager operators cost bare, under torch's own modes and under the op tools; a line of JSON for each.

Each round takes every way in turn. The clock is the thread's. Lines, captures and tables go nowhere that counts: to a
folder that is removed, after the clock has stopped where the tool keeps them for later.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._debug_mode import DebugMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import op_tools
import torch_dipu

ROUNDS, CALLS, SLOW_CALLS = 41, 200, 10
ELEMENTS = 16
_KEPT = "100000"  # calls that wait: more than a round has

Way = Callable[[], AbstractContextManager[Any]]


class FunctionMode(TorchFunctionMode):
    """The least that one can do, as the established tools hook torch's functions."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class DispatchMode(TorchDispatchMode):
    """The least that one can do."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _stopped() -> AbstractContextManager[None]:
    op_tools.OpCapture(".*").start().stop()
    return nullcontext()


def _kept(tool: op_tools.OpTool) -> Way:
    """The same tool in each round: its events and what it knows of the operators are there already."""
    return lambda: tool


def _nowhere(_: str) -> None:
    return


def _ways() -> dict[str, Way]:
    return {
        "bare": nullcontext,
        "an empty TorchFunctionMode": FunctionMode,
        "an empty TorchDispatchMode": DispatchMode,
        "DebugMode": DebugMode,
        "FlopCounterMode": lambda: FlopCounterMode(display=False),
        "OpCapture, stopped": _stopped,
        "OpObserve": _kept(op_tools.OpObserve(".*", write=_nowhere)),
        "OpObserve with labels and locations": _kept(
            op_tools.OpObserve(".*", write=_nowhere, labels=True, locations=True)
        ),
        "OpTimeMeasure": _kept(op_tools.OpTimeMeasure(".*", table=False)),
    }


def _slow_ways(folder: str) -> dict[str, Way]:
    """Each call of these works for tenths of milliseconds, or writes."""
    return {
        "OpObserve, lines made at once": _kept(op_tools.OpObserve(".*", write=_nowhere)),
        "OpAutoCompare": _kept(op_tools.OpAutoCompare(".*", table=False, write=_nowhere)),
        "OpCapture": _kept(op_tools.OpCapture(".*", folder=folder)),
    }


def operators(device: str) -> dict[str, Callable[[], Any]]:
    """Small calls, which cost little but what they cost to call."""
    x, y = torch.randn(ELEMENTS).to(device), torch.randn(ELEMENTS).to(device)
    square = torch.randn(4, 4).to(device)
    return {
        "add": lambda: torch.add(x, y),
        "mul": lambda: torch.mul(x, 2.0),
        "relu": lambda: torch.relu(x),
        "sum": lambda: torch.sum(x),
        "mm": lambda: torch.mm(square, square),
        "add_": lambda: y.add_(x),
    }


def _microseconds(call: Callable[[], Any], calls: int) -> float:
    begun = time.thread_time_ns()
    for _ in range(calls):
        call()
    return (time.thread_time_ns() - begun) / calls / 1e3


def _measured(ways: dict[str, Way], calls: int, rounds: int, found: dict[tuple[str, str, str], list[float]]) -> None:
    for device in ("cpu", "dipu"):
        for operator, call in operators(device).items():
            for _ in range(rounds):
                for name, way in ways.items():
                    with way():
                        _microseconds(call, 2 if calls == SLOW_CALLS else 20)
                        found.setdefault((name, device, operator), []).append(_microseconds(call, calls))


def main() -> None:
    """Prints every way on every device, in us of a call."""
    torch_dipu.start()
    torch.set_num_threads(1)
    found: dict[tuple[str, str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["OP_TOOLS_RESULTS_DIR"] = folder
        os.environ["OP_TOOLS_MAX_CACHE_SIZE"] = _KEPT
        _measured(_ways(), CALLS, ROUNDS, found)
        os.environ["OP_TOOLS_MAX_CACHE_SIZE"] = "1"
        _measured(_slow_ways(folder), SLOW_CALLS, ROUNDS // 4, found)
    for (way, device, operator), us in found.items():
        print(json.dumps({"way": way, "device": device, "operator": operator, "us": us}))


if __name__ == "__main__":
    main()

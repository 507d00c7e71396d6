"""Measures how long each operator takes: on a device by its events, without a wait for each call."""

import threading
import time
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import torch
from torch.utils.flop_counter import flop_registry

from op_tools.calls import OperatorCall
from op_tools.describe import short
from op_tools.interception import Itself, Run
from op_tools.overloads import Overload
from op_tools.phases import BACKWARD, graph_task, optimizers
from op_tools.results import Table, table_in, write_beside
from op_tools.tool import OpTool
from op_tools.values import tensors_in

COLUMNS = (
    "name",
    "forward_id",
    "forward_elasped",
    "backward_elasped",
    "unit",
    "input",
    "output",
    "grad_inputs",
    "grad_outputs",
)
_MOST_WAITING = 1024  # calls whose events are read together
_WARM = 2  # first calls of an operator with given shapes, which are left out of the statistics


@dataclass(slots=True, kw_only=True)
class Timing:
    """Of one operator with one list of shapes and dtypes. Milliseconds; on a device the device's time."""

    operator: str  # e.g. "aten.addmm.default"
    function: str  # e.g. "torch.nn.functional.linear"
    phase: str
    given: str  # e.g. "float32[2, 3], float32[3, 4]"
    bytes: int  # of tensors that go in and out, in one call
    flop: int  # of one call; 0 where torch has no formula
    on_device: bool  # whether it is timed by the device's events
    calls: int = 0
    milliseconds: list[float] = field(default_factory=list)  # of each call but the first two, if there are more
    _warm: list[float] = field(default_factory=list)

    def add(self, milliseconds: float) -> None:
        self.calls += 1
        (self._warm if self.calls <= _WARM else self.milliseconds).append(milliseconds)

    @property
    def samples(self) -> list[float]:
        """What the statistics are made of, in order of size."""
        return sorted(self.milliseconds or self._warm)

    def percentile(self, share: float) -> float:
        """e.g. percentile(0.5), the median."""
        found = self.samples
        return found[min(len(found) - 1, int(share * len(found)))] if found else 0.0

    @property
    def total(self) -> float:
        return sum(self._warm) + sum(self.milliseconds)

    @property
    def bandwidth(self) -> float:
        """Bytes per second, by the median."""
        median = self.percentile(0.5)
        return self.bytes / median * 1e3 if median else 0.0

    @property
    def flop_rate(self) -> float:
        """FLOP per second, by the median."""
        median = self.percentile(0.5)
        return self.flop / median * 1e3 if median else 0.0


# A call that was made: its timing, number, begin and end on the host's clock in ns, and its two events on a device.
_Span = tuple[Timing, int, int, int, tuple[Any, Any] | None]


class OpTimeMeasure(OpTool):
    """Times every operator; `timings()` has the statistics, a CSV file each call, `trace()` a Chrome trace.

    On a device a call is timed by two events of its stream, which are read when thousands have gathered or when the
    tool stops; on the CPU by the host's clock. The first two calls with given shapes are left out of the statistics.
    With `sync=True` the device is waited for after each call, and the host's clock counts. See OpTool for the rest.
    """

    variable: ClassVar[str] = "TIME_MEASURE"
    layer: ClassVar[int] = 4
    labels_calls = False

    def __init__(self, ops: Any = None, *, sync: bool = False, table: bool = True, **options: Any) -> None:
        super().__init__(ops, **options)
        self._sync, self._keeps_table = sync, table
        self._table: Table | None = None
        self._waiting: list[_Span] = []
        self._timings: dict[Any, Timing] = {}
        self._free: list[tuple[Any, Any]] = []  # events that were read
        self._spans: list[tuple[Timing, int, float, float]] = []  # with begin and length in us, for the trace
        self._lock = threading.RLock()
        accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        self._device = None if accelerator is None else accelerator.type
        self._module: Any = None if accelerator is None else torch.get_device_module(accelerator.type)

    def serves(self, overload: Overload) -> bool:
        return overload.computes and not overload.aliases

    def begin(self) -> None:
        if self._keeps_table and self._table is None:
            self._table = table_in("op_time_measure_result", "op_elasped_info", COLUMNS)

    def finish(self) -> None:
        self._read()
        if self._table is not None:
            self._table.write()
            write_beside(self._table, {"timings": [asdict(timing) for timing in self.timings()]})

    def runner(self, overload: Overload, function: str, proceed: Run) -> Run:
        operator = proceed.operator if isinstance(proceed, Itself) else None
        known: dict[Any, Timing] = {}
        tensor, clock, waits, waiting = torch.Tensor, time.perf_counter_ns, self._sync, self._waiting

        def run(number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            key: Any = [graph_task() == -1, optimizers.depth]
            for value in args:
                if type(value) is tensor:
                    key += (value.dtype, value.shape, value.is_cpu)
                else:
                    _extend(key, value)
            if kwargs:
                _extend(key, kwargs)
            timing = known.get(key := tuple(key))
            on_device = timing.on_device if timing is not None else self._is_on_device(args, kwargs)
            events = self._events() if on_device and not waits else None
            begun = clock()
            if events is not None:
                events[0].record()
            result = operator(*args, **kwargs) if operator is not None else proceed(number, args, kwargs)
            if events is not None:
                events[1].record()
            elif on_device:
                self._module.synchronize()
            ended = clock()
            if timing is None:
                timing = known[key] = self._timing(
                    key, OperatorCall(overload, function, args, kwargs), result, on_device
                )
            waiting.append((timing, number, begun, ended, events))
            if len(waiting) >= _MOST_WAITING:
                self._read()
            return result

        return run

    def timings(self) -> list[Timing]:
        """The statistics, those that took longest in all first."""
        self._read()
        return sorted(self._timings.values(), key=lambda timing: -timing.total)

    def trace(self) -> dict[str, Any]:
        """A Chrome trace of what was timed, to be written as JSON."""
        self._read()
        events = [
            {
                "name": timing.operator,
                "ph": "X",
                "ts": begin,
                "dur": length,
                "pid": 0,
                "tid": 0,
                "args": {"call": number},
            }
            for timing, number, begin, length in self._spans
        ]
        return {"traceEvents": events, "displayTimeUnit": "ms"}

    def _timing(self, shapes: Any, call: OperatorCall, result: Any, on_device: bool) -> Timing:
        """Where the calls are counted that are like this one, in every thread."""
        key = (call.overload.name, call.function, shapes)
        with self._lock:
            if key not in self._timings:
                self._timings[key] = Timing(
                    operator=call.overload.name,
                    function=call.function,
                    phase=call.phase,
                    given=", ".join(short(t) for _, t in tensors_in((call.args, call.kwargs))),
                    bytes=sum(t.numel() * t.element_size() for _, t in tensors_in((call.args, call.kwargs, result))),
                    flop=_flop(call, result),
                    on_device=on_device,
                )
            return self._timings[key]

    def _is_on_device(self, args: Any, kwargs: Any) -> bool:
        return any(tensor.device.type == self._device for _, tensor in tensors_in((args, kwargs)))

    def _events(self) -> tuple[Any, Any]:
        """Two events, which were used before if there are such."""
        try:
            return self._free.pop()
        except IndexError:
            return self._module.Event(enable_timing=True), self._module.Event(enable_timing=True)

    def _read(self) -> None:
        """Reads the events that wait."""
        with self._lock:
            spans = self._waiting[:]
            del self._waiting[: len(spans)]
            for timing, number, begun, ended, events in spans:
                length = (ended - begun) / 1e6
                if events is not None:
                    events[1].synchronize()
                    length = float(events[0].elapsed_time(events[1]))
                    self._free.append(events)
                timing.add(length)
                self._spans.append((timing, number, begun / 1e3, length * 1e3))
                if self._table is not None:
                    self._table.add([_row(timing, number, length)])


def _extend(key: list[Any], value: Any) -> None:
    """Adds what tells calls apart: dtype, shape and device of each tensor."""
    for _, tensor in tensors_in(value):
        key += (tensor.dtype, tensor.shape, tensor.is_cpu)


def _row(timing: Timing, number: int, length: float) -> tuple[Any, ...]:
    backward, name = timing.phase == BACKWARD, timing.function or timing.operator
    if backward:
        return name, number, "", length, "ms", "", "", "", timing.given
    return name, number, length, "", "ms", timing.given, "", "", ""


def _flop(call: OperatorCall, result: Any) -> int:
    """By torch's own formulas."""
    formula = (
        flop_registry.get(getattr(torch.ops.aten, call.overload.base, None))
        if call.overload.name.startswith("aten.")
        else None
    )
    if formula is None:
        return 0
    try:
        return int(formula(*call.args, **call.kwargs, out_val=result))
    except (TypeError, RuntimeError, AssertionError, ValueError):
        return 0

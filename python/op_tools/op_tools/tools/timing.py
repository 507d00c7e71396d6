"""Measures how long each operator takes: on a device by its events, without a wait for each call."""

import time
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import torch
from torch.utils.flop_counter import flop_registry

from op_tools.calls import Call
from op_tools.describe import short
from op_tools.interception import Proceed
from op_tools.overloads import Overload
from op_tools.phases import BACKWARD
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
_MOST_WAITING = 4096  # calls whose events are read together
_WARM = 2  # first calls of an operator with given shapes, which are left out of the statistics


@dataclass(slots=True, kw_only=True)
class Timing:
    """Of one operator with one list of shapes and dtypes. Milliseconds; on a device the device's time."""

    operator: str  # ex) "aten.addmm.default"
    function: str  # ex) "torch.nn.functional.linear"
    phase: str
    given: str  # ex) "float32[2, 3], float32[3, 4]"
    bytes: int  # of tensors that go in and out, in one call
    flop: int  # of one call; 0 where torch has no formula
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
        """ex) percentile(0.5), the median."""
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


@dataclass(slots=True)
class _Span:
    """One call that was made: its events are read later."""

    key: Any
    start: Any
    end: Any
    begun: int  # on the host's clock, in ns
    ended: int
    number: int


class OpTimeMeasure(OpTool):
    """Times every operator; `timings()` has the statistics, a CSV file each call, `trace()` a Chrome trace.

    On a device a call is timed by two events of its stream, which are read when thousands have gathered or when the
    tool stops; on the CPU by the host's clock. The first two calls with given shapes are left out of the statistics.
    With `sync=True` the device is waited for after each call, and the host's clock counts. See OpTool for the rest.
    """

    variable: ClassVar[str] = "TIME_MEASURE"
    layer: ClassVar[int] = 4
    labels_calls: ClassVar[bool] = False

    def __init__(self, ops: Any = None, *, sync: bool = False, table: bool = True, **options: Any) -> None:
        super().__init__(ops, **options)
        self._sync, self._keeps_table = sync, table
        self._table: Table | None = None
        self._waiting: list[_Span] = []
        self._timings: dict[Any, Timing] = {}
        self._spans: list[tuple[Any, int, float, float]] = []  # key, call, begin and length in us, for the trace
        self._event: Any = None
        accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        self._device = None if accelerator is None else accelerator.type

    def serves(self, overload: Overload) -> bool:
        return overload.computes and not overload.aliases

    def begin(self) -> None:
        if self._keeps_table and self._table is None:
            self._table = table_in("op_time_measure_result", "op_elasped_info", COLUMNS)
        if self._device is not None and not self._sync:
            self._event = torch.get_device_module(self._device).Event

    def finish(self) -> None:
        self._read()
        if self._table is not None:
            self._table.write()
            write_beside(self._table, {"timings": [asdict(timing) for timing in self.timings()]})

    def apply(self, call: Call, proceed: Proceed) -> Any:
        on_device = self._device is not None and _is_on(call, self._device)
        if not on_device or self._sync:
            begun = time.perf_counter_ns()
            result = proceed(call)
            if on_device:
                torch.get_device_module(self._device).synchronize()
            ended = time.perf_counter_ns()
            self._waiting.append(_Span(self._key(call, result), None, None, begun, ended, call.number))
        else:
            start, end = self._event(enable_timing=True), self._event(enable_timing=True)
            begun = time.perf_counter_ns()
            start.record()
            result = proceed(call)
            end.record()
            self._waiting.append(_Span(self._key(call, result), start, end, begun, time.perf_counter_ns(), call.number))
        if len(self._waiting) >= _MOST_WAITING:
            self._read()
        return result

    def timings(self) -> list[Timing]:
        """The statistics, those that took longest in all first."""
        self._read()
        return sorted(self._timings.values(), key=lambda timing: -timing.total)

    def trace(self) -> dict[str, Any]:
        """A Chrome trace of what was timed, to be written as JSON."""
        self._read()
        events = [
            {
                "name": self._timings[key].operator,
                "ph": "X",
                "ts": begin,
                "dur": length,
                "pid": 0,
                "tid": 0,
                "args": {"call": number},
            }
            for key, number, begin, length in self._spans
        ]
        return {"traceEvents": events, "displayTimeUnit": "ms"}

    def _key(self, call: Call, result: Any) -> Any:
        """What calls have in common that are counted together."""
        shapes = tuple((t.dtype, t.shape) for _, t in tensors_in((call.args, call.kwargs)))
        key = (call.overload.name, call.function, call.phase, shapes)
        if key not in self._timings:
            moved = sum(t.numel() * t.element_size() for _, t in tensors_in((call.args, call.kwargs, result)))
            self._timings[key] = Timing(
                operator=call.overload.name,
                function=call.function,
                phase=call.phase,
                given=", ".join(short(t) for _, t in tensors_in((call.args, call.kwargs))),
                bytes=moved,
                flop=_flop(call, result),
            )
        return key

    def _read(self) -> None:
        """Reads the events that wait."""
        waiting, self._waiting = self._waiting, []
        for span in waiting:
            timing = self._timings[span.key]
            if span.start is None:
                length = (span.ended - span.begun) / 1e6
            else:
                span.end.synchronize()
                length = float(span.start.elapsed_time(span.end))
            timing.add(length)
            self._spans.append((span.key, span.number, span.begun / 1e3, length * 1e3))
            if self._table is not None:
                backward = timing.phase == BACKWARD
                self._table.add(
                    [
                        (
                            timing.function or timing.operator,
                            span.number,
                            "" if backward else length,
                            length if backward else "",
                            "ms",
                            "" if backward else timing.given,
                            "",
                            "",
                            timing.given if backward else "",
                        )
                    ]
                )


def _is_on(call: Call, kind: str) -> bool:
    return any(tensor.device.type == kind for _, tensor in tensors_in((call.args, call.kwargs)))


def _flop(call: Call, result: Any) -> int:
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

"""Streams and events: handles, priorities, waiting, queries, times, streams of others, several devices."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

START = "import torch, torch_dipu; torch_dipu.start()\n"


@pytest.fixture
def asynchronous(libraries: Path, run_python: Callable[..., Any]) -> Callable[..., str]:
    """Runs a program over droplet with its asynchronous streams; returns what it printed."""
    if not (libraries / "libdroplet_rt.so").exists():
        pytest.skip("droplet is not built")

    def run(program: str, **environment: str) -> str:
        library = str(libraries / "libdiopi_impl.so")
        result = run_python(START + program, DIPU_VENDOR_LIBRARY=library, DROPLET_ASYNC="1", **environment)
        assert result.returncode == 0, result.stderr
        return str(result.stdout.strip())

    return run


def test_handles_and_priorities(torch: Any) -> None:
    low, high = torch.dipu.Stream(), torch.dipu.Stream(priority=-1)
    assert (low.priority, high.priority) == (0, -1) and torch.dipu.Stream.priority_range() == (0, -1)
    assert low.native_handle != high.native_handle and low.native_handle
    assert torch.dipu.default_stream().native_handle not in (low.native_handle, high.native_handle)
    again = torch.dipu.Stream(stream_id=low.stream_id, device_index=0, device_type=low.device_type)
    assert again == low and again.native_handle == low.native_handle
    pool = [torch.dipu.Stream() for _ in range(17)]
    assert pool[0] == pool[16] and len(set(pool)) == 16


def test_events_say_what_they_cannot_do(torch: Any) -> None:
    event, timed = torch.dipu.Event(), torch.dipu.Event(enable_timing=True)
    assert event.query()
    event.synchronize()
    with pytest.raises(ValueError, match="enable_timing=True"):
        event.elapsed_time(timed)
    with pytest.raises(ValueError, match="must be recorded"):
        timed.elapsed_time(torch.dipu.Event(enable_timing=True))
    with pytest.raises(RuntimeError, match="there is no stream 1000 on dipu:0"):
        stream = torch.dipu.current_stream()
        torch.dipu.set_stream(torch.Stream(stream_id=1000, device_index=0, device_type=stream.device_type))


BUSY = """
a = torch.randn(400, 400).to("dipu")
def busy(stream, turns=5):
    with torch.dipu.stream(stream):
        x = a
        for _ in range(turns):
            x = x @ a * 0.01
    return x
side = torch.dipu.Stream()
"""


def test_queries_and_times(asynchronous: Callable[..., str]) -> None:
    program = """
start, end = torch.dipu.Event(enable_timing=True), torch.dipu.Event(enable_timing=True)
torch.dipu.synchronize()
start.record(side)
busy(side)
end.record(side)
print(side.query(), end.query())
end.synchronize()
side.synchronize()
print(side.query(), end.query(), 0.5 < start.elapsed_time(end) < 60_000)
"""
    assert asynchronous(BUSY + program).split("\n") == ["False False", "True True True"]


def test_a_stream_waits_for_another(asynchronous: Callable[..., str]) -> None:
    program = """
main = torch.dipu.current_stream()
waits = [lambda _: main.wait_stream(side), lambda _: main.wait_event(side.record_event()), lambda e: e.wait(main)]
for value, wait in enumerate(waits, 1):
    x = torch.zeros(10, device="dipu")
    side.wait_stream(main)
    kept = busy(side)
    with torch.dipu.stream(side):
        x.fill_(float(value))
        event = side.record_event()
    wait(event)
    y = x * 1.0
    print(y.tolist() == [value] * 10)
"""
    assert asynchronous(BUSY + program).split() == ["True"] * 3


def test_without_waiting_the_streams_are_independent(asynchronous: Callable[..., str]) -> None:
    program = """
x = torch.zeros(10, device="dipu")
torch.dipu.synchronize()
kept = busy(side, 30)
with torch.dipu.stream(side):
    x.fill_(7.0)
print(x.tolist() == [0.0] * 10)
torch.dipu.synchronize()
print(x.tolist() == [7.0] * 10)
"""
    assert asynchronous(BUSY + program).split() == ["True", "True"]


def test_events_order_the_streams_of_two_devices(asynchronous: Callable[..., str]) -> None:
    program = """
other = torch.dipu.Stream("dipu:1")
y = torch.zeros(10, device="dipu:1")
torch.dipu.synchronize(1)
kept = busy(side)
with torch.dipu.stream(side):
    x = torch.full((10,), 3.0, device="dipu:0")
    event = side.record_event()
other.wait_event(event)
with torch.dipu.stream(other):
    done = event.query()
    y.fill_(4.0)
    torch.dipu.current_stream(1).synchronize()
print(event.query(), torch.dipu.current_device(), y.tolist() == [4.0] * 10)
print((x.to("dipu:1") + y).device, (x.to("dipu:1") + y).tolist() == [7.0] * 10)
"""
    assert asynchronous(BUSY + program).split("\n") == ["True 0 True", "dipu:1 True"]


def test_a_tensor_may_be_used_by_a_stream_of_another_device(asynchronous: Callable[..., str]) -> None:
    program = """
other = torch.dipu.Stream("dipu:1")
x = torch.ones(1000, device="dipu:0")
x.record_stream(other)
address = x.data_ptr()
del x
torch.dipu.synchronize(1)
print(torch.empty(1000, device="dipu:0").data_ptr() == address)
"""
    assert asynchronous(program) == "True"


def test_streams_that_others_made(asynchronous: Callable[..., str], libraries: Path) -> None:
    program = f"""
import ctypes
chip = ctypes.CDLL("{libraries / 'libdroplet_rt.so'}")
handle = ctypes.c_void_p()
assert chip.tangStreamCreate(ctypes.byref(handle)) == 0
stream = torch.dipu.ExternalStream(handle.value)
assert stream.native_handle == handle.value and stream == torch.dipu.ExternalStream(handle.value)
with torch.dipu.stream(stream):
    assert torch.dipu.current_stream() == stream
    x = torch.full((1000,), 2.0, device="dipu")
    y = x * 3.0
    del x
chip.tangStreamSynchronize(handle)
print(y.sum().item(), stream.query())
pool = torch.dipu.Stream()
print(torch.dipu.ExternalStream(pool.native_handle) == pool)
try:
    torch.dipu.ExternalStream(0)
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""
    told = asynchronous(program).split("\n")
    assert told == ["6000.0 True", "True", "an external stream needs the vendor's handle, which is not null"]


def test_the_backward_pass_runs_on_the_streams_of_the_forward_pass(asynchronous: Callable[..., str]) -> None:
    program = """
x = torch.ones(1000, device="dipu", requires_grad=True)
side.wait_stream(torch.dipu.current_stream())
for _ in range(10):
    with torch.dipu.stream(side):
        y = (x * 2.0).relu()
    torch.dipu.current_stream().wait_stream(side)
    (y * 3.0).sum().backward()
print(x.grad.unique().tolist())
"""
    assert asynchronous(BUSY + program) == "[60.0]"

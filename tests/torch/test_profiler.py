"""torch.profiler on the device: host ranges, device times on streams, memory, stacks, the exported trace."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def profile(torch: Any) -> Callable[..., Any]:
    activity = torch.profiler.ProfilerActivity

    def make(**options: Any) -> Any:
        return torch.profiler.profile(activities=[activity.CPU, activity.PrivateUse1], **options)

    return make


def device_events(torch: Any, profiler: Any) -> list[Any]:
    return [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.PrivateUse1]


def test_device_time_of_each_function_lies_under_its_operator(torch: Any, profile: Callable[..., Any]) -> None:
    x = torch.randn(256, 256).to("dipu")
    torch.dipu.synchronize()
    with profile() as profiler:
        y = x @ x
        torch.relu(y)
    names = [event.name for event in device_events(torch, profiler)]
    assert "diopiMm" in names and "diopiRelu" in names
    rows = {(row.key, row.device_type): row for row in profiler.key_averages()}
    types = torch.autograd.DeviceType  # whose names follow the device's from torch 2.13 on
    mm = rows["aten::matmul", types.CPU]
    assert (
        mm.device_time_total > 0 and mm.device_time_total == rows["diopiMm", types.PrivateUse1].self_device_time_total
    )
    assert mm.count == 1 and mm.cpu_time_total > 0
    # 2 * 256**3 operations cannot take less than a microsecond, nor 10 seconds
    assert 1 < mm.device_time_total < 1e7
    assert "Self DIPU" in profiler.key_averages().table(sort_by="self_device_time_total")


def test_device_work_lies_within_the_profile_and_after_its_call(torch: Any, profile: Callable[..., Any]) -> None:
    x = torch.randn(64, 64).to("dipu")
    with profile() as profiler:
        for _ in range(50):
            x = x @ x.t() * 0.01
    work = device_events(torch, profiler)
    on_host = torch.autograd.DeviceType.CPU
    for name in {event.name for event in work}:
        calls = [event for event in profiler.events() if event.name == name and event.device_type == on_host]
        runs = [event for event in work if event.name == name]
        assert len(runs) == len(calls) >= 50
        assert all(run.time_range.start >= call.time_range.start for run, call in zip(runs, calls, strict=True))
    ordered = sorted(work, key=lambda event: event.time_range.start)
    overlaps = [a.name for a, b in itertools.pairwise(ordered) if a.time_range.end > b.time_range.start + 5]
    assert overlaps == []  # one stream does one thing at a time; clocks agree to 5 us


def test_copies(torch: Any, profile: Callable[..., Any]) -> None:
    x = torch.randn(1000)
    with profile() as profiler:
        x.to("dipu").cpu()
    copies = {event.name: event for event in device_events(torch, profiler) if event.name.startswith("copy")}
    assert set(copies) == {"copy, host to device", "copy, device to host"}


def test_streams_and_devices_of_events(torch: Any, profile: Callable[..., Any]) -> None:
    if torch.dipu.device_count() < 2:
        pytest.skip("one device")
    side = torch.dipu.Stream(1)
    x, y = torch.ones(8, device="dipu:0"), torch.ones(8, device="dipu:1")
    torch.dipu.synchronize(1)
    with profile() as profiler:
        x.mul_(2.0)
        with torch.dipu.stream(side):
            y.mul_(2.0)
        torch.dipu.synchronize(1)
    places = {(event.device_index, event.device_resource_id) for event in device_events(torch, profiler)}
    assert places == {(0, 0), (1, side.stream_id)}


def test_exported_trace(torch: Any, profile: Callable[..., Any], tmp_path: Path) -> None:
    x = torch.randn(32, 32).to("dipu")
    with profile(record_shapes=True, with_stack=True, profile_memory=True) as profiler:
        torch.softmax(x @ x, 1).cpu()
    file = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(file))
    events = json.loads(file.read_text())["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    assert {"diopiMm", "diopiSoftmax"} <= {event["name"] for event in kernels}
    for event in kernels:
        assert event["args"]["stream"] == event["tid"] == 0 and event["pid"] == event["args"]["device"] == 0
        assert event["dur"] >= 0
    assert [event["args"]["bytes"] for event in events if event.get("cat") == "gpu_memcpy"] == [32 * 32 * 4]
    calls = {event["args"]["correlation"]: event for event in events if event.get("cat") == "privateuse1_runtime"}
    assert all(calls[event["args"]["correlation"]]["name"] == event["name"] for event in kernels)
    lines = [event for event in events if event.get("cat") == "ac2g"]
    assert sum(event["ph"] == "s" for event in lines) == sum(event["ph"] == "f" for event in lines) >= len(kernels)
    # torch ends the process where a line of another profiler has the same number, and those count from 1.
    assert all(event["id"] > 2**30 for event in lines)
    rows = {event["args"]["name"] for event in events if event.get("name") == "thread_name"}
    assert "stream 0" in rows
    mm = next(event for event in events if event.get("name") == "aten::matmul")
    assert mm["args"]["Input Dims"] == [[32, 32], [32, 32]]
    memory = [
        event["args"] for event in events if event.get("name") == "[memory]" and event["args"]["Device Type"] == 20
    ]
    assert any(event["Bytes"] > 0 for event in memory) and any(event["Bytes"] < 0 for event in memory)


def test_memory_of_operators(torch: Any, profile: Callable[..., Any]) -> None:
    x = torch.ones(512, 512, device="dipu")
    with profile(profile_memory=True) as profiler:
        y = x + x
    add = next(row for row in profiler.key_averages() if row.key == "aten::add")
    assert add.self_device_memory_usage == 512 * 512 * 4
    del y


def test_memory_without_device_times(torch: Any) -> None:
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
        x = torch.ones(512, 512, device="dipu")
    memory = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    assert [event.nbytes() for event in memory if event.device_type() == torch.autograd.DeviceType.PrivateUse1] == [
        x.nbytes
    ]


def test_the_backward_threads_are_seen(torch: Any, profile: Callable[..., Any]) -> None:
    net = torch.nn.Linear(16, 16).to("dipu")
    x = torch.randn(4, 16, device="dipu")
    with profile() as profiler:
        net(x).sum().backward()
    rows = {row.key: row for row in profiler.key_averages() if row.device_type.name == "CPU"}
    assert rows["LinearBackward0"].device_time_total > 0


def test_profiles_follow_one_another(torch: Any, profile: Callable[..., Any]) -> None:
    x = torch.ones(8, device="dipu")
    for name, run in (("diopiRelu", torch.relu), ("diopiExp", torch.exp)):
        with profile() as profiler:
            run(x)
        assert [event.name for event in device_events(torch, profiler)] == [name]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        torch.relu(x)
    assert device_events(torch, profiler) == []


@pytest.mark.filterwarnings("ignore:.*clears events at the end of each cycle")
def test_a_schedule(torch: Any, profile: Callable[..., Any]) -> None:
    x = torch.ones(8, device="dipu")
    counts: list[int] = []
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    ready = lambda profiler: counts.append(len(device_events(torch, profiler)))  # noqa: E731
    with profile(schedule=schedule, on_trace_ready=ready) as profiler:
        for _ in range(8):
            torch.relu(x)
            profiler.step()
    assert counts == [2, 2]


def test_without_kineto_events_give_device_times(torch: Any) -> None:
    x = torch.randn(128, 128).to("dipu")
    with torch.autograd.profiler.profile(use_device="dipu", use_kineto=False) as profiler:
        x @ x
    mm = next(row for row in profiler.key_averages() if row.key == "aten::matmul")
    assert mm.device_time_total > 0


ASYNCHRONOUS = """
import torch, torch_dipu; torch_dipu.start()
activity = torch.profiler.ProfilerActivity
x = torch.randn(512, 512).to("dipu")
with torch.profiler.profile(activities=[activity.CPU, activity.PrivateUse1]) as profiler:
    for _ in range(5):
        y = x @ x
    torch.dipu.synchronize()
work = [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.PrivateUse1 and e.name == "diopiMm"]
calls = [e for e in profiler.events() if e.device_type.name == "CPU" and e.name == "diopiMm"]
waits = sum(w.time_range.start > c.time_range.end for w, c in zip(work, calls))
print(len(work), waits >= 3, min(w.time_range.elapsed_us() for w in work) > 100)
"""


def test_work_runs_after_its_call_in_the_asynchronous_mode(run_python: Callable[..., Any], libraries: Path) -> None:
    if not (libraries / "libdroplet_rt.so").exists():
        pytest.skip("droplet is not built")
    result = run_python(ASYNCHRONOUS, DROPLET_ASYNC="1")
    assert result.stdout.strip() == "5 True True", result.stderr


EVENTLESS = """
import torch, torch_dipu; torch_dipu.start()
activity = torch.profiler.ProfilerActivity
x = torch.tensor([-1.0, 2.0]).to("dipu")
with torch.profiler.profile(activities=[activity.CPU, activity.PrivateUse1]) as profiler:
    torch.relu(x)
print([e.name for e in profiler.events() if e.device_type == torch.autograd.DeviceType.PrivateUse1])
"""


def test_a_vendor_without_events(run_python: Callable[..., Any], fake_vendor: Callable[..., Path]) -> None:
    result = run_python(EVENTLESS, DIPU_VENDOR_LIBRARY=str(fake_vendor("FAKE_FORM=1")))
    assert result.stdout.strip() == "['diopiRelu']", result.stderr

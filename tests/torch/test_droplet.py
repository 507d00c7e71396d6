"""The backend over droplet: memory that the host cannot touch, full memory, faults on demand, asynchronous streams."""

import signal
from collections.abc import Callable
from typing import Any


def test_the_host_cannot_read_device_memory(droplet: Callable[..., Any]) -> None:
    result = droplet("import ctypes; ctypes.string_at(torch.ones(4).dipu().data_ptr(), 4)")
    assert result.returncode == -signal.SIGSEGV


def test_a_refused_call_tells_the_reason_in_torchs_words(droplet: Callable[..., Any]) -> None:
    program = """
mask, source = torch.ones(4, dtype=torch.bool, device="dipu"), torch.ones(2, device="dipu")
try:
    torch.zeros(4, device="dipu").masked_scatter(mask, source)
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""
    assert droplet(program).stdout.strip() == "Number of elements of source < number of ones in mask"


def test_full_memory_is_an_error_and_the_process_goes_on(droplet: Callable[..., Any]) -> None:
    program = """
kept = []
try:
    while True:
        kept.append(torch.empty(1 << 26, dtype=torch.uint8, device="dipu"))
except torch.OutOfMemoryError as error:
    print(len(kept), str(error).splitlines()[0])
del kept
print((torch.ones(4, device="dipu") + 1).sum().item())
"""
    first, second = droplet(program, DROPLET_MEMORY_MB="256").stdout.splitlines()
    assert first.startswith("4 dipu:0 is out of memory: tried to allocate 64.00 MiB; 256.00 MiB are in use"), first
    assert "of 256.00 MiB, 0 bytes free" in first and second == "8.0"


def test_a_sort_without_memory_for_its_work_is_out_of_memory(droplet: Callable[..., Any]) -> None:
    program = """
x = torch.arange(1 << 20, device="dipu").flip(0)
full = []
try:
    while True:
        full.append(torch.empty(1 << 20, dtype=torch.uint8, device="dipu"))
except torch.OutOfMemoryError:
    pass
out = torch.empty(0, device="dipu"), torch.empty(0, dtype=torch.int64, device="dipu")
del full[:16]
try:
    torch.sort(x)
except torch.OutOfMemoryError as error:
    print(str(error).splitlines()[0], "diopiSort" in str(error))
del full
print(torch.sort(x).values[:3].tolist())
"""
    first, second = droplet(program, DROPLET_MEMORY_MB="64").stdout.splitlines()
    assert first.startswith("dipu:0 is out of memory: tried to allocate") and first.endswith("True"), first
    assert second == "[0, 1, 2]"


def test_one_allocation_that_fails_is_tried_again(droplet: Callable[..., Any]) -> None:
    program = """
x = [torch.full((100_000,), float(i), device="dipu") for i in range(6)]
print([t[0].item() for t in x], torch.dipu.memory_stats()["num_alloc_retries"])
"""
    result = droplet(program, DROPLET_FAULT="malloc:3")
    assert result.stdout.strip() == "[0.0, 1.0, 2.0, 3.0, 4.0, 5.0] 1", result.stderr


def test_a_failing_launch_is_an_error_with_the_chips_text(droplet: Callable[..., Any]) -> None:
    program = """
x = torch.ones(4).dipu()
for step in range(4):
    try:
        x = x + 1
    except RuntimeError as error:
        print(step, str(error).splitlines()[0])
        break
"""
    result = droplet(program, DROPLET_FAULT="launch:3")
    assert result.stdout.startswith("2 diopiAdd") and "a kernel failed on demand" in result.stdout, result.stderr


def test_an_asynchronous_failure_shows_where_the_host_waits(droplet: Callable[..., Any]) -> None:
    program = """
x = torch.ones(4).dipu()
side = torch.dipu.Stream()
try:
    for step in range(4):
        y = x + 1
        y.record_stream(side)
        del y  # memory goes back to a device in error, which must not end the process
    torch.dipu.synchronize()
except RuntimeError as error:
    print(str(error).splitlines()[0])
print((torch.ones(4, device="dipu:1") + 1).tolist(), (torch.ones(2) + 1).tolist())
"""
    result = droplet(program, DROPLET_ASYNC="1", DROPLET_FAULT="launch:3")
    first, second = result.stdout.splitlines()
    assert "device 0 is in error: a kernel failed on demand" in first and second == "[2.0, 2.0, 2.0, 2.0] [2.0, 2.0]"


def test_a_failure_in_a_backward_pass_reaches_the_caller(droplet: Callable[..., Any]) -> None:
    program = """
x = torch.ones(1 << 18, device="dipu", requires_grad=True)
total = (x * 2.0).exp().sum()
full = []
try:
    while True:
        full.append(torch.empty(1 << 20, dtype=torch.uint8, device="dipu"))
except torch.OutOfMemoryError:
    pass
try:
    total.backward()
except torch.OutOfMemoryError as error:
    print(str(error).splitlines()[0])
del full
(x * 2.0).exp().sum().backward()
print(round(x.grad[-1].item(), 2))
"""
    result = droplet(program, DROPLET_MEMORY_MB="16")
    first, second = result.stdout.splitlines()
    assert first.startswith("dipu:0 is out of memory: tried to allocate 1.00 MiB") and second == "14.78", result.stderr


def test_threads_have_devices_and_streams_of_their_own(droplet: Callable[..., Any]) -> None:
    program = """
import threading
def work(device):
    with torch.dipu.stream(torch.dipu.Stream(device)):
        x = torch.ones(1000, device="dipu")
        for _ in range(50):
            x = x + 1
        sums.append((x.device.index, x.sum().item()))
    assert torch.dipu.current_device() == 0
sums = []
threads = [threading.Thread(target=work, args=(index % 2,)) for index in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sorted(sums))
"""
    for mode in ("0", "1"):
        result = droplet(program, DROPLET_ASYNC=mode)
        assert result.stdout.strip() == str([(0, 51000.0)] * 2 + [(1, 51000.0)] * 2), result.stderr


def test_a_tensor_crosses_streams_in_the_asynchronous_mode(droplet: Callable[..., Any]) -> None:
    program = """
side = torch.dipu.Stream()
x = torch.zeros(100_000, device="dipu")
for step in range(20):
    x = x + 1
    side.wait_stream(torch.dipu.current_stream())
    with torch.dipu.stream(side):
        y = x * 2
        x.record_stream(side)
    torch.dipu.current_stream().wait_stream(side)
    x = x + 0
    y.record_stream(torch.dipu.current_stream())
print(y[0].item(), y.max().item(), y.min().item())
"""
    assert droplet(program, DROPLET_ASYNC="1").stdout.strip() == "40.0 40.0 40.0"


def test_debug_settings_of_the_environment(droplet: Callable[..., Any]) -> None:
    program = """
x = torch.ones(2).dipu()
x = (x + x) * 2
print([(row.operator, row.cause) for row in torch.dipu.fallback.report()])
print([(row.operator, row.differences) for row in torch.dipu.debug.comparisons()])
"""
    result = droplet(
        program,
        DIPU_FORCE_FALLBACK_OPS_LIST=r" mm , add\..*",
        DIPU_AUTOCOMPARE_OPS_LIST=r"mul\..*",
        DIPU_DUMP_OP_ARGS="2",
        DIPU_DUMP_OPS_LIST=r"mul\.Tensor",
        DIPU_LOG_FALLBACK="1",
        DIPU_SYNCHRONIZE_OPS_LIST="mul.*",
    )
    assert result.stdout.splitlines() == ["[('aten::add.Tensor', 'forced')]", "[('aten::mul.Tensor', 0)]"]
    assert "dipu: aten::add.Tensor falls back to the CPU: forced" in result.stderr
    assert "dipu: aten::mul.Tensor\n  self: Tensor[2] Float dipu:0" in result.stderr


def test_strict_mode_of_the_environment(droplet: Callable[..., Any]) -> None:
    program = """
try:
    torch.lgamma(torch.ones(2).dipu())
except NotImplementedError as error:
    print("aten::lgamma" in str(error))
"""
    assert droplet(program, DIPU_STRICT_FALLBACK="1").stdout.strip() == "True"

"""Device memory: statistics, snapshots with stacks, limits, raw allocations, the check, reuse in stream order."""

import gc
from collections.abc import Callable
from typing import Any

import pytest


def test_accelerator_functions(torch: Any) -> None:
    accelerator = torch.accelerator
    gc.collect()
    accelerator.empty_cache()
    accelerator.reset_peak_memory_stats()
    accelerator.reset_accumulated_memory_stats()
    before = accelerator.memory_allocated()
    x = torch.empty(1000, device="dipu")
    assert accelerator.memory_allocated() == accelerator.max_memory_allocated() == before + 4096
    assert accelerator.memory_reserved() == accelerator.max_memory_reserved() >= before + 4096
    del x
    stats = accelerator.memory_stats()
    assert stats["allocated_bytes.all.allocated"] == 4096 and stats["allocation.all.current"] * 512 <= before
    assert stats["requested_bytes.all.peak"] == stats["requested_bytes.all.current"] + 4000
    assert accelerator.max_memory_allocated() == before + 4096
    free, total = accelerator.get_memory_info()
    assert 0 < free <= total and (free, total) == torch.dipu.mem_get_info()


@pytest.mark.parametrize("write", ["index_add_", "index_copy_"])
def test_what_is_written_in_place_takes_no_copy(torch: Any, write: str) -> None:
    """A cache of keys and values is written so, token by token."""
    cache, token = torch.zeros(1000, 1000, device="dipu"), torch.ones(1, 1000, device="dipu")
    place = torch.tensor([7], device="dipu")
    before = torch.dipu.memory_allocated()
    torch.dipu.reset_peak_memory_stats()
    assert getattr(cache, write)(0, place, token) is cache
    assert torch.dipu.max_memory_allocated() - before < 100_000
    assert torch.equal(cache.sum(1).cpu().nonzero(), torch.tensor([[7]]))


def test_statistics_have_the_keys_of_other_accelerators(torch: Any) -> None:
    stats = torch.dipu.memory_stats()
    sizes = [f"{kind}_bytes" for kind in ("allocated", "reserved", "active", "requested")]
    for key in ["allocation", "segment", "active", *sizes]:
        for metric in ("current", "peak", "allocated", "freed"):
            assert stats[f"{key}.all.{metric}"] >= 0
    assert {"num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free"} <= set(stats)
    nested = torch.dipu.memory_stats_as_nested_dict()
    assert nested["segment"]["all"]["peak"] == stats["segment.all.peak"] and nested["num_ooms"] == stats["num_ooms"]


def test_a_block_is_at_most_a_quarter_larger_than_what_was_asked_for(torch: Any) -> None:
    for size in (1, 511, 513, 2049, 5000, 70_000, 1_000_001, (1 << 22) + 1, 30_000_001):
        x = torch.empty(size, dtype=torch.uint8, device="dipu")
        block = next(row for row in torch.dipu.memory_snapshot() if row["address"] == x.data_ptr())
        assert block["requested_size"] == size <= block["total_size"] <= max(512 * -(-size // 512), size * 1.25 + 512)


def test_snapshots_tell_where_memory_was_allocated(torch: Any) -> None:
    def made_here() -> Any:
        return torch.empty(12345, device="dipu")

    torch.dipu.record_memory_history()
    try:
        x = made_here()
    finally:
        torch.dipu.record_memory_history(False)
    y = torch.empty(54321, device="dipu")
    rows = {row["address"]: row for row in torch.dipu.memory_snapshot()}
    frames = rows[x.data_ptr()]["frames"]
    assert frames[0]["name"] == "made_here" and frames[0]["filename"] == __file__ and frames[0]["line"] > 1
    assert rows[y.data_ptr()]["frames"] == []
    from torch.cuda import _memory_viz

    text = _memory_viz.segsum({"segments": torch.dipu.memory_snapshot(), "device_traces": []})
    assert isinstance(text, str) and text


def test_a_fraction_of_the_memory(torch: Any) -> None:
    total = torch.dipu.mem_get_info()[1]
    torch.dipu.empty_cache()
    room = torch.dipu.memory_reserved() + (64 << 20)
    torch.dipu.set_per_process_memory_fraction(room / total)
    try:
        assert torch.dipu.get_per_process_memory_fraction() == room / total
        cached = torch.empty(40 << 20, dtype=torch.uint8, device="dipu")
        with pytest.raises(torch.OutOfMemoryError, match="this process may reserve"):
            torch.empty(32 << 20, dtype=torch.uint8, device="dipu")
        del cached
        assert torch.empty(48 << 20, dtype=torch.uint8, device="dipu").numel() == 48 << 20  # the cache was emptied
    finally:
        torch.dipu.set_per_process_memory_fraction(1.0)
        torch.dipu.reset_accumulated_memory_stats()
    with pytest.raises(ValueError, match="between 0 and 1"):
        torch.dipu.set_per_process_memory_fraction(1.5)


def test_memory_without_a_tensor(torch: Any) -> None:
    before = torch.dipu.memory_allocated()
    pointer = torch.dipu.caching_allocator_alloc(4096)
    assert torch.dipu.memory_allocated() == before + 4096
    torch.dipu.caching_allocator_delete(pointer)
    assert torch.dipu.memory_allocated() == before
    with pytest.raises(RuntimeError, match="it was freed already"):
        torch.dipu.caching_allocator_delete(pointer)
    with pytest.raises(RuntimeError, match="the allocator did not give this memory"):
        torch.dipu.caching_allocator_delete(64)


def test_pinned_memory_is_counted(torch: Any) -> None:
    # What earlier tests freed is given back when the next block is asked for.
    gc.collect()
    torch.dipu.synchronize()
    first = torch.empty(1, dtype=torch.uint8, pin_memory=True)
    torch.dipu.reset_peak_host_memory_stats()
    before = torch.dipu.host_memory_stats()
    x = torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True)
    after = torch.dipu.host_memory_stats()
    assert after["active_bytes.current"] - before["active_bytes.current"] == 1 << 20 == x.numel() * first.numel()
    assert after["allocated_bytes.peak"] >= 1 << 20


def test_many_sizes_do_not_fill_the_device_with_cached_blocks(droplet: Callable[..., Any]) -> None:
    program = """
total = 0
for turn in range(4):
    for mib in range(1, 100, 3):
        x = torch.empty(mib << 20, dtype=torch.uint8, device="dipu")
        total += x.numel() >> 20
        del x
stats = torch.dipu.memory_stats()
print(total, stats["num_ooms"], stats["num_alloc_retries"] > 0)
"""
    result = droplet(program, DROPLET_MEMORY_MB="128")
    assert result.stdout.strip() == f"{4 * sum(range(1, 100, 3))} 0 True", result.stderr


def test_memory_that_waits_for_a_stream_is_not_lost_when_memory_is_full(droplet: Callable[..., Any]) -> None:
    program = """
side = torch.dipu.Stream()
for turn in range(20):
    x = torch.ones(60 << 18, device="dipu")  # 60 MiB of 100
    side.wait_stream(torch.dipu.current_stream())
    with torch.dipu.stream(side):
        y = x.sum()
    x.record_stream(side)
    del x
    side.synchronize()
    assert y.item() == 60 << 18
print(torch.dipu.memory_stats()["num_ooms"])
"""
    result = droplet(program, DROPLET_MEMORY_MB="100", DROPLET_ASYNC="1")
    assert result.stdout.strip() == "0", result.stderr


def test_blocks_are_reused_in_stream_order(droplet: Callable[..., Any]) -> None:
    program = """
a = torch.randn(700, 700).to("dipu")
side = torch.dipu.Stream()
x = torch.ones(700, 700, device="dipu")
side.wait_stream(torch.dipu.current_stream())
with torch.dipu.stream(side):
    for _ in range(5):
        a = a @ a * 0.01  # keeps the stream busy
    y = x + 1
address = x.data_ptr()
x.record_stream(side)
del x
z = torch.full((700, 700), 7.0, device="dipu")
print(z.data_ptr() != address)
side.synchronize()
print(torch.empty(700, 700, device="dipu").data_ptr() == address, y.cpu().unique().tolist())
"""
    result = droplet(program, DROPLET_ASYNC="1")
    assert result.stdout.split("\n")[:2] == ["True", "True [2.0]"], result.stdout + result.stderr


CHECKED = """
def leak():
    return torch.ones(1000, device="dipu")
import sys
sys.kept_for_ever = leak()
"""


def test_leaks_are_reported_at_exit_with_the_stack(droplet: Callable[..., Any]) -> None:
    program = CHECKED + "import ctypes; ctypes.pythonapi.Py_IncRef(ctypes.py_object(sys.kept_for_ever))\nx = leak()\n"
    result = droplet(program, DIPU_MEM_CHECK="1")
    assert result.returncode == 0 and "memory is still in use at exit" in result.stderr, result.stderr
    report = result.stderr.split("memory is still in use at exit\n")[1].splitlines()
    assert report[0].startswith("  4.00 KiB (4000 bytes asked for) at 0x") and report[0].endswith("on dipu:0, stream 0")
    assert report[1].strip() == "<string>:4 leak" and report[2].strip() == "<string>:6 <module>"
    assert report[-1] == "dipu memory check: leaks, 0 faults"
    assert sum("asked for" in line for line in report) == 1  # x itself is no leak


def test_no_report_without_the_check(droplet: Callable[..., Any]) -> None:
    result = droplet(CHECKED + "x = leak()\ntry: torch.dipu.memory_check()\nexcept RuntimeError as e: print(e)")
    assert "memory check" not in result.stderr and "start the process with DIPU_MEM_CHECK=1" in result.stdout


def test_nothing_to_report(droplet: Callable[..., Any]) -> None:
    program = "x = torch.ones(8, device='dipu'); y = (x + x).cpu(); print(torch.dipu.memory_check().faults)"
    result = droplet(program, DIPU_MEM_CHECK="1")
    assert result.stdout.strip() == "()" and result.stderr.strip() == "dipu memory check: no leak, 0 faults"


def test_faults_name_both_places(droplet: Callable[..., Any]) -> None:
    program = """
def allocate():
    return torch.dipu.caching_allocator_alloc(512)
def free(pointer):
    try:
        torch.dipu.caching_allocator_delete(pointer)
    except RuntimeError as error:
        print(str(error).splitlines()[0].split(": ")[1])
pointer = allocate()
free(pointer)
free(pointer)
x = torch.ones(64, device="dipu")
view = torch.empty(0, device="dipu").set_(torch._C._construct_storage_from_data_pointer(x.data_ptr(), x.device, 256))
view.add_(1.0)
assert len(torch.dipu.memory_check().faults) == 1
def use_after_free():
    view.add_(1.0)
del x
use_after_free()
for fault in torch.dipu.memory_check().faults:
    print(fault)
"""
    result = droplet(program, DIPU_MEM_CHECK="1")
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines[0] == "it was freed already", result.stderr
    first = lines[1 : lines.index("")]
    assert first[0].startswith("free: 0x") and "was freed: 512 bytes (512 bytes asked for)" in first[0]
    allocated, used = first[2 : first.index("used at")], first[first.index("used at") :]
    assert allocated[-2:] == ["<string>:4 allocate", "<string>:10 <module>"]
    assert [line for line in used if line.startswith("<string>")] == ["<string>:7 free", "<string>:12 <module>"]
    second = lines[lines.index("") + 1 :]
    assert second[0].startswith("vendor function: 0x") and any(line.endswith("use_after_free") for line in second)
    assert result.stderr.splitlines()[-1].startswith("dipu memory check: no leak, 2 faults")

"""Threads that allocate, compute and free on several streams and devices at once; every result is checked.

``python benchmarks/stress.py --seconds 60`` prints one JSON line: what was done, and what memory was left over. It ends
with status 1 when a result was wrong, a thread failed, or memory leaked.
"""

import argparse
import gc
import json
import random
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

SIZES = (1, 7, 100, 1000, 4096, 50_000)  # elements


@dataclass(slots=True, kw_only=True)
class Tally:
    rounds: int = 0
    wrong: int = 0
    errors: list[str] = field(default_factory=list)


def across_streams(torch: Any, streams: list[Any], generator: random.Random) -> bool:
    """A tensor made on one stream, used on a second while the first frees it, and read on a third."""
    size, value = generator.choice(SIZES), generator.randrange(1000)
    first, second, third = (generator.choice(streams) for _ in range(3))
    with torch.dipu.stream(first):
        x = torch.full((size,), float(value), device="dipu")
    second.wait_stream(first)
    with torch.dipu.stream(second):
        y = x * 2.0 + 1.0
        x.record_stream(second)
    del x
    with torch.dipu.stream(first):
        torch.full((size,), -1.0, device="dipu")  # would take the memory of x if it were free too early
    third.wait_stream(second)
    with torch.dipu.stream(third):
        total = y.double().sum()
        y.record_stream(third)
        del y
        return bool(total.item() == size * (2.0 * value + 1.0))


def through_pinned_memory(torch: Any, streams: list[Any], generator: random.Random) -> bool:
    """Copies that do not wait, in and out, with an event to wait for."""
    size, value = generator.choice(SIZES), generator.randrange(1000)
    host = torch.full((size,), value, dtype=torch.int32).pin_memory()
    back = torch.empty(size, dtype=torch.int32, pin_memory=True)
    with torch.dipu.stream(generator.choice(streams)):
        x = host.to("dipu", non_blocking=True)
        del host
        back.copy_(x + 1, non_blocking=True)
        event = torch.dipu.Event()
        event.record()
    event.synchronize()
    return bool((back == value + 1).all().item())


def by_two_threads(torch: Any, streams: list[Any], generator: random.Random) -> bool:
    """One tensor that two threads use on streams of their own, and mark so at the same time."""
    size, value = generator.choice(SIZES), generator.randrange(1000)
    totals: list[float] = []

    def use(x: Any, stream: Any) -> None:
        with torch.dipu.stream(stream):
            y = x * 3.0
            x.record_stream(stream)
            totals.append(y.double().sum().item())

    first, second, third = (generator.choice(streams) for _ in range(3))
    with torch.dipu.stream(first):
        x = torch.full((size,), float(value), device="dipu")
    for stream in (second, third):
        stream.wait_stream(first)
    helper = threading.Thread(target=use, args=(x, second))
    helper.start()
    use(x, third)
    del x
    helper.join()
    return totals == [3.0 * value * size] * 2


def between_devices(torch: Any, streams: list[Any], generator: random.Random) -> bool:
    """There and back again over every device."""
    size = generator.choice(SIZES)
    with torch.dipu.stream(generator.choice(streams)):
        x = start = torch.arange(size, device="dipu", dtype=torch.float32)
        for device in range(torch.dipu.device_count()):
            x = x.to(f"dipu:{device}") + 1.0
        x = x.to(start.device)
        return bool(torch.equal(x, start + float(torch.dipu.device_count())))


ROUNDS = (across_streams, across_streams, through_pinned_memory, between_devices, by_two_threads)


def work(torch: Any, number: int, stream_count: int, until: float, tally: Tally) -> None:
    """The life of one thread."""
    generator = random.Random(number)
    device = number % torch.dipu.device_count()
    try:
        torch.dipu.set_device(device)
        streams = [torch.dipu.Stream(device, priority=-(index % 2)) for index in range(stream_count)]
        while time.monotonic() < until:
            tally.wrong += not generator.choice(ROUNDS)(torch, streams, generator)
            tally.rounds += 1
    except Exception as error:
        tally.errors.append(f"{type(error).__name__}: {str(error).splitlines()[0]}")


def watch(torch: Any, until: float, tally: Tally) -> None:
    """What a monitor does: read figures and snapshots, give the cache back, while the others work."""
    try:
        turn = 0
        while time.monotonic() < until:
            turn += 1
            device = turn % torch.dipu.device_count()
            torch.dipu.memory_summary(device)
            blocks = torch.dipu.memory_snapshot(device)
            tally.wrong += any(block["requested_size"] > block["total_size"] for block in blocks)
            if turn % 10 == 0:
                torch.dipu.empty_cache()
            time.sleep(0.01)
    except Exception as error:
        tally.errors.append(f"{type(error).__name__}: {str(error).splitlines()[0]}")


def run(torch: Any, *, threads: int, streams: int, seconds: float) -> dict[str, Any]:
    """Run the threads; returns the counts, and the bytes that each device has more in use than before."""
    devices = range(torch.dipu.device_count())
    torch.dipu.empty_cache()
    before = [torch.dipu.memory_allocated(device) for device in devices]
    until = time.monotonic() + seconds
    tallies = [Tally() for _ in range(threads)]
    running = [
        threading.Thread(target=work, args=(torch, number, streams, until, tally))
        for number, tally in enumerate(tallies)
    ]
    tallies.append(Tally())
    running.append(threading.Thread(target=watch, args=(torch, until, tallies[-1])))
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    for device in devices:
        torch.dipu.synchronize(device)
    gc.collect()
    torch.dipu.empty_cache()
    return {
        "threads": threads,
        "streams": streams,
        "seconds": seconds,
        "rounds": sum(tally.rounds for tally in tallies),
        "wrong": sum(tally.wrong for tally in tallies),
        "errors": [error for tally in tallies for error in tally.errors],
        "leaked": [torch.dipu.memory_allocated(device) - old for device, old in zip(devices, before, strict=True)],
        "kept": [torch.dipu.memory_reserved(device) - torch.dipu.memory_allocated(device) for device in devices],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--streams", type=int, default=4, help="of each thread")
    options = parser.parse_args()

    import torch

    import torch_dipu

    torch_dipu.start()
    told = run(torch, threads=options.threads, streams=options.streams, seconds=options.seconds)
    print(json.dumps(told))
    return int(bool(told["wrong"] or told["errors"] or any(told["leaked"]) or any(told["kept"])))


if __name__ == "__main__":
    sys.exit(main())

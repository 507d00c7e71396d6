"""Random collectives for SOAK_SECONDS: three groups, many sizes, dtypes and streams, each result held against the CPU.

All ranks draw the same calls. The values of a rank follow from the call's number, so that each rank knows what the
others send, and what it has to receive. Values are small whole numbers: sums are exact in every dtype.
"""

import itertools
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from ranks import DEVICE, RANK, SIZE, join

SECONDS = float(os.environ.get("SOAK_SECONDS", "600"))
SEED = int(os.environ.get("SOAK_SEED", "0"))
GROUPS = (tuple(range(SIZE)), tuple(range(SIZE - 1)), (1, SIZE - 1))
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
WHOLE = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
OTHERS = (torch.bool, torch.complex64)
PENDING = 12  # results that nobody has looked at yet
BLOCK = 100  # calls between two looks at the clock
OPS: dict[Any, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    dist.ReduceOp.SUM: torch.add,
    dist.ReduceOp.PRODUCT: torch.mul,
    dist.ReduceOp.MIN: torch.minimum,
    dist.ReduceOp.MAX: torch.maximum,
}

draw = random.Random(SEED)


@dataclass
class Call:
    """One call, the same on all ranks of its group."""

    number: int
    group: dist.ProcessGroup
    members: tuple[int, ...]
    dtype: torch.dtype
    count: int  # elements
    root: int  # a place in `members`
    asynchronous: bool
    strided: bool
    place: int = field(init=False)

    def __post_init__(self) -> None:
        self.place = self.members.index(RANK)

    @property
    def size(self) -> int:
        return len(self.members)

    def values(self, place: int, count: int, part: int = 0) -> torch.Tensor:
        """What a member gives, on the CPU."""
        generator = torch.Generator().manual_seed(((self.number * 8 + place) * 8 + part) * 1000 + SEED)
        low = 0 if self.dtype in (torch.uint8, torch.bool) else -2
        return torch.randint(low, 2 if self.dtype == torch.bool else 3, (count,), generator=generator).to(self.dtype)

    def on_device(self, values: torch.Tensor) -> torch.Tensor:
        if not self.strided:
            return values.to(DEVICE)
        wide = torch.zeros(len(values), 2, dtype=self.dtype, device=DEVICE)
        wide[:, 1] = values.to(DEVICE)
        return wide[:, 1]

    def empty(self, count: int) -> torch.Tensor:
        return self.on_device(torch.full((count,), 1, dtype=self.dtype))

    def options(self) -> dict[str, Any]:
        return {"group": self.group, "async_op": self.asynchronous}

    def reduction(self) -> tuple[Any, Callable[[list[torch.Tensor]], torch.Tensor]]:
        """An operation, and what it makes of all members' values."""
        kinds = {"complex": [dist.ReduceOp.SUM], "floating": [*OPS, dist.ReduceOp.AVG]}
        kind = "complex" if self.dtype.is_complex else "floating" if self.dtype.is_floating_point else "whole"
        op = random.Random(self.number).choice(kinds.get(kind, list(OPS)))
        if op == dist.ReduceOp.AVG:
            return op, lambda all_of_them: sum(one.double() for one in all_of_them).div(self.size).to(self.dtype)
        if self.dtype == torch.bool and op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT):
            logical = torch.logical_or if op == dist.ReduceOp.SUM else torch.logical_and
            return op, lambda all_of_them: reduce(logical, all_of_them)
        return op, lambda all_of_them: reduce(OPS[op], all_of_them)


# What a collective gives: its work, the tensors that it wrote, and what they have to be.
Result = tuple[Any, list[torch.Tensor], list[torch.Tensor]]


def all_reduce(call: Call) -> Result:
    op, reduced = call.reduction()
    ours = call.on_device(call.values(call.place, call.count))
    work = dist.all_reduce(ours, op, **call.options())
    return work, [ours], [reduced([call.values(place, call.count) for place in range(call.size)])]


def reduce_(call: Call) -> Result:
    op, reduced = call.reduction()
    ours = call.on_device(call.values(call.place, call.count))
    work = dist.reduce(ours, call.members[call.root], op, **call.options())
    wanted = [reduced([call.values(place, call.count) for place in range(call.size)])]
    return work, [ours], wanted if call.place == call.root else [call.values(call.place, call.count)]


def broadcast(call: Call) -> Result:
    ours = call.on_device(call.values(call.place, call.count))
    work = dist.broadcast(ours, call.members[call.root], **call.options())
    return work, [ours], [call.values(call.root, call.count)]


def all_gather(call: Call) -> Result:
    """Of parts that are all different in size."""
    counts = [call.count + place for place in range(call.size)]
    parts = [call.empty(count) for count in counts]
    work = dist.all_gather(parts, call.on_device(call.values(call.place, counts[call.place])), **call.options())
    return work, parts, [call.values(place, counts[place]) for place in range(call.size)]


def all_gather_into_tensor(call: Call) -> Result:
    every = torch.empty(call.size * call.count, dtype=call.dtype, device=DEVICE)
    work = dist.all_gather_into_tensor(every, call.on_device(call.values(call.place, call.count)), **call.options())
    return work, [every], [torch.cat([call.values(place, call.count) for place in range(call.size)])]


def reduce_scatter(call: Call) -> Result:
    op, reduced = call.reduction()
    ours = torch.empty(call.count, dtype=call.dtype, device=DEVICE)
    every = call.on_device(call.values(call.place, call.size * call.count))
    work = dist.reduce_scatter_tensor(ours, every, op, **call.options())
    parts = [call.values(place, call.size * call.count).chunk(call.size)[call.place] for place in range(call.size)]
    return work, [ours], [reduced(parts)]


def all_to_all(call: Call) -> Result:
    """What a member sends to another depends on both."""

    def sent(source: int, destination: int) -> torch.Tensor:
        return call.values(source, call.count + (source + 2 * destination) % 3, destination)

    places = range(call.size)
    inputs = [sent(call.place, place) for place in places]
    wanted = [sent(place, call.place) for place in places]
    splits = [[len(part) for part in parts] for parts in (wanted, inputs)]
    output = torch.empty(sum(splits[0]), dtype=call.dtype, device=DEVICE)
    work = dist.all_to_all_single(output, torch.cat(inputs).to(DEVICE), *splits, **call.options())
    return work, [output], [torch.cat(wanted)]


def gather(call: Call) -> Result:
    receives = call.place == call.root
    parts = [call.empty(call.count) for _ in call.members] if receives else None
    ours = call.on_device(call.values(call.place, call.count))
    work = dist.gather(ours, parts, call.members[call.root], **call.options())
    return work, parts or [], [call.values(place, call.count) for place in range(call.size)] if receives else []


def scatter(call: Call) -> Result:
    ours = call.empty(call.count)
    sends = call.place == call.root
    parts = [call.on_device(call.values(call.root, call.count, place)) for place in range(call.size)] if sends else None
    work = dist.scatter(ours, parts, call.members[call.root], **call.options())
    return work, [ours], [call.values(call.root, call.count, call.place)]


def ring(call: Call) -> Result:
    """Messages to the next member, in one batch."""
    after, before = (call.place + 1) % call.size, (call.place - 1) % call.size
    received = call.empty(call.count)
    ours = call.on_device(call.values(call.place, call.count))
    messages = [
        dist.P2POp(dist.isend, ours, call.members[after], call.group),
        dist.P2POp(dist.irecv, received, call.members[before], call.group),
    ]
    works = dist.batch_isend_irecv(messages)
    return works, [received], [call.values(before, call.count)]


def message(call: Call) -> Result:
    """From the root to the next member."""
    receiver = (call.root + 1) % call.size
    if call.place == call.root:
        return (
            dist.isend(call.on_device(call.values(call.root, call.count)), call.members[receiver], call.group),
            [],
            [],
        )
    if call.place != receiver:
        return None, [], []
    received = call.empty(call.count)
    work = dist.irecv(received, call.members[call.root], call.group)
    return work, [received], [call.values(call.root, call.count)]


def coalesced(call: Call) -> Result:
    """Several sums in one launch."""
    dtype_can = call.dtype != torch.bool
    parts = [call.on_device(call.values(call.place, call.count + part, part)) for part in range(3)]
    with dist._coalescing_manager(call.group, DEVICE, async_ops=call.asynchronous) as manager:
        for part in parts:
            dist.all_reduce(part, dist.ReduceOp.SUM if dtype_can else dist.ReduceOp.MAX, group=call.group)
    combine = torch.add if dtype_can else torch.logical_or
    wanted = [
        reduce(combine, [call.values(place, call.count + part, part) for place in range(call.size)])
        for part in range(3)
    ]
    return manager if call.asynchronous else None, parts, wanted


COLLECTIVES = (
    *(all_reduce, reduce_, broadcast, all_gather, all_gather_into_tensor, reduce_scatter, all_to_all, gather, scatter),
    *(ring, message, coalesced),
)


@dataclass
class Pending:
    """A result that is looked at later, on the stream that the call was made on or another."""

    name: str
    call: Call
    result: Result
    stream: Any
    made_on: Any

    def wrong(self) -> str:
        """What is wrong with it; "" for nothing."""
        work, tensors, wanted = self.result
        stream = self.stream if work is not None else self.made_on  # a call that has waited has its own stream wait
        with torch.dipu.stream(stream):
            for one in work if isinstance(work, list) else [work] if work is not None else []:
                one.wait()
            found = [tensor.cpu() for tensor in tensors]
        for tensor, right in zip(found, wanted, strict=True):
            if not torch.allclose(
                tensor, right, rtol=1e-2 if tensor.dtype in (torch.float16, torch.bfloat16) else 1e-6, atol=0
            ):
                return f"{self.name}, call {self.call.number}, {self.call}: {tensor} instead of {right}"
        return ""


def soak() -> tuple[Counter[str], list[str]]:
    """How often each collective was looked at, and what was wrong."""
    groups = [dist.group.WORLD if len(members) == SIZE else dist.new_group(members) for members in GROUPS]
    streams = [torch.dipu.Stream() for _ in range(4)]
    counts: Counter[str] = Counter()
    faults: list[str] = []
    pending: list[Pending] = []
    mine = random.Random(RANK)  # in which order a rank looks is its own affair
    end = torch.zeros(1, dtype=torch.int32)
    begin, numbers = time.monotonic(), itertools.count()
    while not end:
        for number in itertools.islice(numbers, BLOCK):
            place = draw.randrange(len(GROUPS))
            collective, dtype = draw.choice(COLLECTIVES), draw.choice((*FLOATS, *WHOLE, *OTHERS))
            count, root = int(2 ** draw.uniform(0, 17)), draw.randrange(len(GROUPS[place]))
            asynchronous, strided = draw.random() < 0.7, draw.random() < 0.2
            if RANK not in GROUPS[place]:
                continue
            call = Call(number, groups[place], GROUPS[place], dtype, count, root, asynchronous, strided)
            stream = mine.choice(streams)
            with torch.dipu.stream(stream):
                result = collective(call)
            pending.append(Pending(collective.__name__, call, result, mine.choice(streams), stream))
            while len(pending) > PENDING:
                one = pending.pop(mine.randrange(len(pending)))
                counts[one.name] += 1
                faults += filter(None, [one.wrong()])
        end.fill_(time.monotonic() - begin > SECONDS)
        dist.broadcast(end, 0)
    for one in pending:
        counts[one.name] += 1
        faults += filter(None, [one.wrong()])
    return counts, faults


if __name__ == "__main__":
    join(timeout=120)
    found, wrong = soak()
    report = {"done": ["soak"], "failures": {"soak": "\n".join(wrong[:20])} if wrong else {}, "counts": found}
    (Path(os.environ["TEST_REPORT"]) / f"report-{RANK}.json").write_text(json.dumps(report))
    print(f"seed {SEED}, rank {RANK}: {sum(found.values())} results, {len(wrong)} wrong", dict(found))
    dist.destroy_process_group()

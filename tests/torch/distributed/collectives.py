"""Each collective on dipu beside the same one of Gloo on the CPU, and what Gloo lacks beside its definition."""

import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
from ranks import DEVICE, RANK, SIZE, join, run_checks

Op = dist.ReduceOp
OTHER = 1 - RANK
MOVED = (
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.bool,
    torch.int8,
    torch.int16,
    torch.int64,
    torch.complex64,
    torch.float8_e4m3fn,
)


def values(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Small whole numbers on the CPU, different on each rank, so that every dtype holds them and their sums."""
    generator = torch.Generator().manual_seed(100 * seed + RANK)
    drawn = torch.randint(0, 5, shape, generator=generator)
    return (drawn > 2) if dtype == torch.bool else drawn.to(dtype)


THROUGH_HOST = os.environ.get("DIPU_COLLECTIVES") == "host"


def equal(on_dipu: torch.Tensor, expected: torch.Tensor) -> None:
    assert on_dipu.device == DEVICE, on_dipu.device
    assert on_dipu.dtype == expected.dtype
    assert torch.equal(on_dipu.cpu().float(), expected.float()), (on_dipu.cpu(), expected)


def raises(kind: type[Exception], text: str, call: Callable[[], object]) -> None:
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"nothing was raised; expected '{text}'")


def check_all_reduce() -> None:
    for dtype in (
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int8,
        torch.uint8,
        torch.int32,
        torch.int64,
    ):
        operations = [Op.SUM, Op.PRODUCT, Op.MIN, Op.MAX]
        if not dtype.is_floating_point:
            operations += [Op.BAND, Op.BOR, Op.BXOR]
        for op in operations:
            on_cpu = values(3, 5, dtype=dtype)
            on_dipu = on_cpu.to(DEVICE)
            dist.all_reduce(on_cpu, op)
            dist.all_reduce(on_dipu, op)
            equal(on_dipu, on_cpu)


def check_all_reduce_in_dtypes_that_gloo_lacks() -> None:
    for dtype in (torch.int16, torch.uint16, torch.uint32, torch.float8_e4m3fn, torch.float8_e5m2):
        for op in (Op.SUM, Op.MAX):
            expected = values(7)
            dist.all_reduce(expected, op)
            on_dipu = values(7).to(dtype).to(DEVICE)
            dist.all_reduce(on_dipu, op)
            equal(on_dipu, expected.to(dtype))


def check_all_reduce_of_bools_gives_bools() -> None:
    both = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
    expected = {Op.SUM: both[0] | both[1], Op.PRODUCT: both[0] & both[1], Op.BXOR: both[0] ^ both[1]}
    for op, result in expected.items():
        on_dipu = both[RANK].to(DEVICE)
        dist.all_reduce(on_dipu, op)
        equal(on_dipu, result)
        assert torch.equal(on_dipu.view(torch.uint8).cpu(), result.view(torch.uint8))


def check_all_reduce_of_complex_numbers() -> None:
    on_dipu = torch.tensor([1 + 2j, 3 - 1j]).mul(RANK + 1).to(DEVICE)
    dist.all_reduce(on_dipu)
    assert torch.equal(on_dipu.cpu(), torch.tensor([3 + 6j, 9 - 3j]))


def check_average_and_premultiplied_sum() -> None:
    # 60000 + 60000 overflows float16; the average does not.
    large = torch.full((4,), 60000.0, dtype=torch.float16, device=DEVICE)
    dist.all_reduce(large, Op.AVG)
    equal(large, torch.full((4,), 60000.0, dtype=torch.float16))
    whole = torch.tensor([1 + RANK, -3 - RANK], device=DEVICE)
    dist.all_reduce(whole, Op.AVG)
    equal(whole, torch.tensor([1, -3]))
    factors = (0.5, torch.tensor([0.5]), torch.tensor([0.5], device=DEVICE))
    for factor in factors:
        tensor = torch.full((3,), 2.0 + RANK, device=DEVICE)
        dist.all_reduce(tensor, dist._make_nccl_premul_sum(factor))
        equal(tensor, torch.full((3,), 2.5))


def check_undefined_reductions_are_refused() -> None:
    raises(RuntimeError, "BAND is not defined", lambda: dist.all_reduce(torch.ones(2, device=DEVICE), Op.BAND))
    bools = torch.ones(2, device=DEVICE, dtype=torch.bool)
    raises(RuntimeError, "AVG is not defined", lambda: dist.all_reduce(bools, Op.AVG))
    raises(RuntimeError, "UInt64", lambda: dist.all_reduce(torch.zeros(2, dtype=torch.uint64, device=DEVICE)))


def check_wrong_arguments_are_refused() -> None:
    elsewhere = torch.ones(2, device=f"dipu:{1 - DEVICE.index}")
    ours = torch.ones(2, device=DEVICE)
    raises(RuntimeError, "lie on one device", lambda: dist.all_gather([ours, elsewhere], ours))
    raises(RuntimeError, "2 elements", lambda: dist.all_gather([torch.ones(3, device=DEVICE)] * 2, ours))
    raises(RuntimeError, "split sizes", lambda: dist.all_to_all_single(ours, ours, [1, 2], [1, 1]))
    raises(RuntimeError, "conj", lambda: dist.broadcast(torch.ones(2, dtype=torch.cfloat, device=DEVICE).conj(), 0))


def check_all_reduce_coalesced() -> None:
    on_cpu = [values(4), values(2, 3, seed=1), values(0)]
    on_dipu = [tensor.to(DEVICE) for tensor in on_cpu]
    with dist._coalescing_manager(async_ops=True) as manager:
        for tensor in on_dipu:
            dist.all_reduce(tensor)
    manager.wait()
    for tensor, expected in zip(on_dipu, on_cpu, strict=True):
        dist.all_reduce(expected)
        equal(tensor, expected)


def check_strided_tensors() -> None:
    for make in (lambda t: t.t(), lambda t: t[:, ::2], lambda t: t[1:, 1:3]):
        base = values(4, 6)
        on_dipu = base.to(DEVICE)
        expected = make(base).contiguous()
        dist.all_reduce(expected)
        make(base).copy_(expected)
        dist.all_reduce(make(on_dipu))
        equal(on_dipu, base)
    column, expected = values(4, 2).to(DEVICE), values(4, 2)
    dist.broadcast(column[:, 0], 1)
    first = expected[:, 0].contiguous()
    dist.broadcast(first, 1)
    expected[:, 0] = first
    equal(column, expected)


def check_broadcast() -> None:
    for dtype in MOVED:
        for root in range(SIZE):
            on_cpu = values(2, 3, dtype=dtype)
            on_dipu = on_cpu.to(DEVICE)
            moved = on_cpu.view(torch.uint8)
            dist.broadcast(moved, root)
            dist.broadcast(on_dipu, root)
            assert torch.equal(on_dipu.cpu().view(torch.uint8), moved)


def check_reduce() -> None:
    for root in range(SIZE):
        for op in (Op.SUM, Op.MAX, Op.AVG):
            before = values(5)
            on_cpu = before.clone()
            on_dipu = before.to(DEVICE)
            dist.all_reduce(on_cpu, op)
            dist.reduce(on_dipu, root, op)
            equal(on_dipu, on_cpu if root == RANK else before)


def check_all_gather() -> None:
    for dtype in MOVED:
        mine = values(2, 3, dtype=dtype)
        parts = [torch.empty_like(mine, device=DEVICE) for _ in range(SIZE)]
        expected = [torch.empty_like(mine).view(torch.uint8) for _ in range(SIZE)]
        dist.all_gather(parts, mine.to(DEVICE))
        dist.all_gather(expected, mine.view(torch.uint8))
        for part, right in zip(parts, expected, strict=True):
            assert torch.equal(part.cpu().view(torch.uint8), right)


def check_all_gather_into_tensor() -> None:
    mine = values(2, 3)
    on_cpu = torch.empty(4, 3)
    dist.all_gather_into_tensor(on_cpu, mine)
    for shape in ((4, 3), (2, 2, 3)):
        on_dipu = torch.empty(shape, device=DEVICE)
        dist.all_gather_into_tensor(on_dipu, mine.to(DEVICE))
        equal(on_dipu, on_cpu.view(shape))
    strided = torch.zeros(4, 6, device=DEVICE)
    dist.all_gather_into_tensor(strided[:, ::2], mine.to(DEVICE))
    equal(strided[:, ::2], on_cpu)
    assert not strided[:, 1::2].any()


def check_all_gather_into_tensor_coalesced() -> None:
    mine = [values(2, 3).to(DEVICE), values(5, seed=1, dtype=torch.float16).to(DEVICE)]
    gathered = [torch.empty(4, 3, device=DEVICE), torch.empty(10, dtype=torch.float16, device=DEVICE)]
    with dist._coalescing_manager():
        for output, tensor in zip(gathered, mine, strict=True):
            dist.all_gather_into_tensor(output, tensor)
    for output, tensor in zip(gathered, mine, strict=True):
        expected = torch.empty(output.shape, dtype=output.dtype)
        dist.all_gather_into_tensor(expected, tensor.cpu())
        equal(output, expected)


def check_coalesced_tensors_of_which_some_are_strided() -> None:
    mine = [values(3), values(2, 3, seed=1)]
    spread = torch.zeros(4, 6, device=DEVICE)
    gathered = [torch.empty(1, 3 * SIZE, device=DEVICE), spread[:, ::2]]  # one row: its parts are not rows
    with dist._coalescing_manager():
        for output, tensor in zip(gathered, mine, strict=True):
            dist.all_gather_into_tensor(output, tensor.to(DEVICE))
    for output, tensor in zip(gathered, mine, strict=True):
        expected = torch.empty(output.numel())
        dist.all_gather_into_tensor(expected, tensor.flatten())
        equal(output, expected.view(output.shape))
    assert not spread[:, 1::2].any()


def check_reduce_scatter() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int16, torch.int64):
        for op in (Op.SUM, Op.AVG, Op.MAX):
            total = values(4, 3).double()
            dist.all_reduce(total, Op.SUM if op == Op.AVG else op)
            if op == Op.AVG:
                total = total / SIZE if dtype.is_floating_point else (total / SIZE).trunc()
            expected = total[2 * RANK : 2 * RANK + 2].to(dtype)
            output = torch.empty(2, 3, dtype=dtype, device=DEVICE)
            whole = values(4, 3).to(dtype).to(DEVICE)
            dist.reduce_scatter_tensor(output, whole, op)
            equal(output, expected)
            output = torch.empty(2, 3, dtype=dtype, device=DEVICE)
            dist.reduce_scatter(output, list(whole.chunk(SIZE)), op)
            equal(output, expected)


def check_reduce_scatter_tensor_coalesced() -> None:
    whole = [values(4, 3), values(6, seed=1)]
    outputs = [torch.empty(2, 3, device=DEVICE), torch.empty(3, device=DEVICE)]
    with dist._coalescing_manager():
        for output, tensor in zip(outputs, whole, strict=True):
            dist.reduce_scatter_tensor(output, tensor.to(DEVICE))
    for output, tensor in zip(outputs, whole, strict=True):
        dist.all_reduce(tensor)
        equal(output, tensor.chunk(SIZE)[RANK])


def check_gather_and_scatter() -> None:
    for root in range(SIZE):
        mine = values(3)
        parts = [torch.empty(3) for _ in range(SIZE)]
        dist.all_gather(parts, mine)
        gathered = [torch.empty(3, device=DEVICE) for _ in range(SIZE)] if root == RANK else None
        dist.gather(mine.to(DEVICE), gathered, root)
        for part, expected in zip(gathered or [], parts, strict=root == RANK):
            equal(part, expected)
        received = torch.empty(3, device=DEVICE)
        dist.scatter(received, [part.to(DEVICE) for part in parts] if root == RANK else None, root)
        equal(received, parts[RANK])


def check_all_to_all() -> None:
    sent = [values(RANK + rank + 1, seed=rank) for rank in range(SIZE)]
    received = [torch.empty(RANK + rank + 1, device=DEVICE) for rank in range(SIZE)]
    dist.all_to_all(received, [tensor.to(DEVICE) for tensor in sent])
    expected = torch.empty(sum(RANK + rank + 1 for rank in range(SIZE)))
    splits = [RANK + rank + 1 for rank in range(SIZE)]
    dist.all_to_all_single(expected, torch.cat(sent), splits, splits)
    equal(torch.cat(received), expected)


def check_all_to_all_single() -> None:
    mine = values(4, 3)
    on_cpu, on_dipu = torch.empty(4, 3), torch.empty(4, 3, device=DEVICE)
    dist.all_to_all_single(on_cpu, mine)
    dist.all_to_all_single(on_dipu, mine.to(DEVICE))
    equal(on_dipu, on_cpu)
    # Rank 0 sends three rows to rank 1 and nothing else is sent.
    rows = values(3, 2) if RANK == 0 else values(0, 2)
    output = torch.empty(0 if RANK == 0 else 3, 2, device=DEVICE)
    dist.all_to_all_single(output, rows.to(DEVICE), [0, 0] if RANK == 0 else [3, 0], [0, 3] if RANK == 0 else [0, 0])
    if RANK == 1:
        generator = torch.Generator().manual_seed(0)
        equal(output, torch.randint(0, 5, (3, 2), generator=generator).float())


def check_send_and_receive() -> None:
    for dtype in MOVED:
        tensor = values(2, 3, dtype=dtype).to(DEVICE)
        received = torch.empty_like(tensor)
        if RANK == 0:
            dist.send(tensor, 1, tag=3)
            dist.recv(received, 1)
        else:
            assert dist.recv(received, 0, tag=3) == 0
            dist.send(tensor, 0)
        expected = [torch.empty(2, 3, dtype=dtype).view(torch.uint8) for _ in range(SIZE)]
        dist.all_gather(expected, tensor.cpu().view(torch.uint8))
        assert torch.equal(received.cpu().view(torch.uint8), expected[OTHER])


def check_receive_from_any_rank() -> None:
    if RANK == 0:
        dist.send(torch.full((3,), 7.0, device=DEVICE), 1, tag=5)
    else:
        received = torch.empty(3, device=DEVICE)
        if not THROUGH_HOST:
            raises(RuntimeError, "give both calls a tag, or set DIPU_COLLECTIVES=host", lambda: dist.recv(received))
        assert dist.recv(received, tag=5) == 0
        equal(received, torch.full((3,), 7.0))


def check_receives_may_end_in_any_order() -> None:
    first, second = torch.empty(2, device=DEVICE), torch.empty(2, device=DEVICE)
    if RANK == 0:
        late, early = dist.irecv(first, 1, tag=1), dist.irecv(second, 1, tag=2)
        early.wait()
        equal(second, torch.full((2,), 2.0))
        assert not late.is_completed()
        dist.send(second, 1)
        late.wait()
        equal(first, torch.ones(2))
    else:
        dist.send(torch.full((2,), 2.0, device=DEVICE), 0, tag=2)
        dist.recv(second, 0)
        dist.send(torch.ones(2, device=DEVICE), 0, tag=1)


def check_batched_sends_and_receives() -> None:
    received = torch.empty(1000, device=DEVICE)
    mine = torch.full((1000,), float(RANK), device=DEVICE)
    # Both ranks receive first: neither may keep the other from sending.
    works = dist.batch_isend_irecv([dist.P2POp(dist.irecv, received, OTHER), dist.P2POp(dist.isend, mine, OTHER)])
    for work in works:
        work.wait()
    equal(received, torch.full((1000,), float(OTHER)))


def check_objects() -> None:
    gathered = [None] * SIZE
    dist.all_gather_object(gathered, {"rank": RANK})
    assert gathered == [{"rank": rank} for rank in range(SIZE)]
    objects = [f"from {RANK}"]
    dist.broadcast_object_list(objects, 1, device=DEVICE)
    assert objects == ["from 1"]


def check_empty_tensors() -> None:
    empty = torch.empty(0, 3, device=DEVICE)
    dist.all_reduce(empty)
    dist.broadcast(empty, 0)
    gathered = torch.empty(0, 3, device=DEVICE)
    dist.all_gather_into_tensor(gathered, empty)


def check_work_and_future() -> None:
    tensor = torch.full((5,), RANK + 1.0, device=DEVICE)
    work = dist.all_reduce(tensor, async_op=True)
    doubled = work.get_future().then(lambda future: [2 * future.value()[0]])
    assert work.wait()
    equal(tensor, torch.full((5,), 3.0))  # waits for the stream, which waits for the collective
    assert work.is_completed() and work.is_success()
    equal(doubled.wait()[0], torch.full((5,), 6.0))
    assert work.result()[0].data_ptr() == tensor.data_ptr()


def check_a_callback_may_wait_for_another_collective() -> None:
    def second(future: torch.futures.Future) -> list[torch.Tensor]:
        return dist.all_reduce(future.value()[0], async_op=True).get_future().wait()

    result = dist.all_reduce(torch.ones(3, device=DEVICE), async_op=True).get_future().then(second).wait()
    equal(result[0], torch.full((3,), 4.0))


def check_callbacks_may_wait_when_the_collective_ends_at_once() -> None:
    alone = [dist.new_group([rank]) for rank in range(SIZE)][RANK]
    tensor = torch.ones(2, device=DEVICE)

    def second(future: torch.futures.Future) -> list[torch.Tensor]:
        return dist.all_reduce(future.value()[0] + 1, group=alone, async_op=True).get_future().wait()

    for _ in range(300):
        result = dist.all_reduce(tensor, group=alone, async_op=True).get_future().then(second).wait()
    equal(result[0], torch.full((2,), 2.0))


def check_many_at_once_in_any_order_of_waiting() -> None:
    tensors = [torch.full((100 + i,), float(RANK + i), device=DEVICE) for i in range(30)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i in reversed(range(30)):
        works[i].wait()
        equal(tensors[i], torch.full((100 + i,), 2.0 * i + 1))


def check_the_collective_reads_after_work_on_the_current_stream() -> None:
    size = 1 << 18
    for _ in range(5):
        stream = torch.dipu.Stream(DEVICE)
        stream.wait_stream(torch.dipu.current_stream())
        with torch.dipu.stream(stream):
            tensor = torch.zeros(size, device=DEVICE)
            for _ in range(20):
                tensor.add_(1.0)
            work = dist.all_reduce(tensor, async_op=True)
        # Another stream than the one that called.
        work.wait()
        equal(tensor[-1:], torch.tensor([40.0]))
        assert float((tensor - 40).abs().max()) == 0


def check_outputs_are_written_after_what_still_reads_them() -> None:
    for receive in (
        lambda ours, zeros: dist.all_gather([zeros.clone() if rank == RANK else ours for rank in range(SIZE)], zeros),
        lambda ours, zeros: dist.broadcast(ours if RANK == 1 else zeros, 0),
        lambda ours, zeros: dist.recv(ours, 0) if RANK == 1 else dist.send(zeros, 1),
    ):
        ours, zeros = torch.ones(1 << 20, device=DEVICE), torch.zeros(1 << 20, device=DEVICE)
        total = torch.zeros(1 << 20, device=DEVICE)
        dist.barrier(device_ids=[DEVICE.index])
        for _ in range(100 if RANK == 1 else 0):
            total.add_(ours)
        receive(ours, zeros)
        if RANK == 1:
            assert float(total.min()) == 100
            assert not ours.any()


def check_tensors_live_until_the_end() -> None:
    works = []
    for i in range(20):
        tensor = torch.full((50000,), float(i), device=DEVICE)
        works.append(dist.all_reduce(tensor, async_op=True))
        del tensor
        torch.full((50000,), -1.0, device=DEVICE)  # would take its memory
    for i, work in enumerate(works):
        equal(work.result()[0] if work.wait() else torch.empty(0), torch.full((50000,), 2.0 * i))


def check_no_gradient_and_no_version_is_touched() -> None:
    leaf = torch.ones(3, device=DEVICE, requires_grad=True)
    version = leaf._version
    dist.all_reduce(leaf)
    assert leaf._version == version and leaf.grad_fn is None
    equal(leaf.detach(), torch.full((3,), 2.0))


def check_barrier_waits_for_the_slowest() -> None:
    dist.barrier(device_ids=[DEVICE.index])
    begin = time.monotonic()
    if RANK == 1:
        time.sleep(0.5)
    dist.barrier(device_ids=[DEVICE.index])
    assert time.monotonic() - begin > 0.4


def check_a_barrier_of_no_device_is_of_the_group_s() -> None:
    """Whatever the current device is: the ranks use different ones."""
    group = dist.new_group(backend="dicl", timeout=timedelta(seconds=10))
    dist.all_reduce(torch.ones(1, device=DEVICE), group=group)
    with torch.dipu.device(0):
        dist.barrier(group=group)


def check_reduce_scatter_of_uneven_parts() -> None:
    for dtype in (torch.float32, torch.int16, torch.complex64):
        for sizes in ((3, 5), (4, 0)):
            parts = [
                torch.full((size,), RANK + 2 * rank, dtype=dtype, device=DEVICE) for rank, size in enumerate(sizes)
            ]
            output = torch.empty(sizes[RANK], dtype=dtype, device=DEVICE)
            dist.reduce_scatter(output, parts)
            equal(output, torch.full((sizes[RANK],), 1 + 4 * RANK, dtype=dtype))


def check_monitored_barrier() -> None:
    dist.group.WORLD._get_backend(DEVICE).monitored_barrier()


def check_profiles_name_the_collective() -> None:
    """Once, also where the work on the device is seen, which has a name of its own."""
    tensor, activity = torch.ones(4, device=DEVICE), torch.profiler.ProfilerActivity
    for activities in ([activity.CPU], [activity.CPU, activity.PrivateUse1]):
        with torch.profiler.profile(activities=activities) as profile:
            dist.all_reduce(tensor)
        events = {event.key: event for event in profile.key_averages()}
        assert events["dicl:all_reduce"].count == 1, sorted(events)
    assert ("all_reduce" in events) == (not THROUGH_HOST), sorted(events)


def check_subgroups() -> None:
    both = dist.new_group([0, 1])
    alone = [dist.new_group([rank]) for rank in range(SIZE)]
    tensor = torch.ones(3, device=DEVICE)
    dist.all_reduce(tensor, group=alone[RANK])
    equal(tensor, torch.ones(3))
    dist.all_reduce(tensor, group=both)
    equal(tensor, torch.full((3,), 2.0))
    dist.destroy_process_group(both)
    dist.all_reduce(tensor)
    equal(tensor, torch.full((3,), 4.0))


def check_groups_of_several_threads() -> None:
    groups = [dist.new_group() for _ in range(3)]
    tensors = [torch.full((1000,), float(i), device=DEVICE) for i in range(3)]
    torch.dipu.synchronize()  # the threads' streams do not wait for this one's

    def work(i: int) -> None:
        torch.dipu.set_device(DEVICE)
        # On one stream of several threads, ranks would wait for each other's collectives in different orders.
        with torch.dipu.stream(torch.dipu.Stream()):
            for _ in range(5):
                dist.all_reduce(tensors[i], group=groups[i])
            torch.dipu.current_stream().synchronize()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(3):
        equal(tensors[i], torch.full((1000,), 32.0 * i))


def check_functional_collectives() -> None:
    from torch.distributed import _functional_collectives as functional

    tensor = torch.full((4,), RANK + 1.0, device=DEVICE)
    equal(functional.all_reduce(tensor, "sum", dist.group.WORLD) + 0, torch.full((4,), 3.0))
    gathered = functional.all_gather_tensor(tensor, 0, dist.group.WORLD)
    equal(gathered + 0, torch.tensor([1.0] * 4 + [2.0] * 4))
    equal(functional.reduce_scatter_tensor(gathered, "avg", 0, dist.group.WORLD) + 0, torch.full((4,), RANK + 1.0))


def check_a_group_ends_while_its_threads_need_python() -> None:
    group, began, seen = dist.new_group(list(range(SIZE))), threading.Event(), []

    def slow(_: torch.futures.Future[list[torch.Tensor]]) -> None:
        began.set()
        time.sleep(0.2)
        seen.append(RANK)

    if RANK == 0:
        dist.send(torch.zeros(3, device=DEVICE), 1, group)
    elif RANK == 1:
        dist.irecv(torch.ones(3, device=DEVICE), 0, group).get_future().then(slow)
        assert began.wait(10)
    dist.destroy_process_group(group)
    del group
    assert seen == [1] * (RANK == 1)


def check_the_group_can_be_made_again() -> None:
    for name, choice in (("dicl", {}), (None, {}), (None, {"device_id": DEVICE})):
        dist.destroy_process_group()
        store = dist.FileStore(f"{os.environ['TEST_STORE']}-{name}-{len(choice)}", SIZE)
        dist.init_process_group(name, store=store, rank=RANK, world_size=SIZE, **choice)
        tensor = torch.ones(3, device=DEVICE)
        dist.all_reduce(tensor)
        equal(tensor, torch.full((3,), 2.0))
        gathered = [None] * SIZE
        dist.all_gather_object(gathered, RANK)
        assert gathered == list(range(SIZE))


if __name__ == "__main__":
    join()
    run_checks(dict(globals()))
    dist.destroy_process_group()

"""What the other ranks see when one is late, aborts or is killed: an error within the timeout; then they go on."""

import ctypes
import os
import signal
import threading
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from ranks import DEVICE, RANK, SIZE, join, run_checks

THROUGH_HOST = os.environ.get("DIPU_COLLECTIVES") == "host"


def error_of(call) -> tuple[str, float]:
    """The text of the DistBackendError that `call` raises, and the seconds until then."""
    begin = time.monotonic()
    try:
        call()
    except dist.DistBackendError as error:
        return str(error), time.monotonic() - begin
    raise AssertionError("no error")


def meet(group: dist.ProcessGroup) -> None:
    """Let the ranks make the communicators that they use."""
    dist.all_reduce(torch.ones(1, device=DEVICE), group=group)
    for sender in range(SIZE):
        if sender == RANK:
            dist.send(torch.ones(1, device=DEVICE), 1 - sender, group=group)
        else:
            dist.recv(torch.ones(1, device=DEVICE), sender, group=group)
    torch.dipu.synchronize()


def check_a_late_rank_is_a_timeout() -> None:
    group = dist.new_group(timeout=timedelta(seconds=1))
    tensor = torch.ones(4, device=DEVICE)
    if RANK == 0:
        text, seconds = error_of(lambda: dist.all_reduce(tensor, group=group))
        assert "dicl:all_reduce failed on rank 0 of 2" in text and "imed out" in text, text
        assert "destroy_process_group()" in text
        assert 0.5 < seconds < 5, seconds
    dist.barrier(device_ids=[DEVICE.index])
    # The default group is as it was.
    dist.all_reduce(tensor)
    assert tensor.tolist() == [2.0] * 4


def check_a_late_rank_is_told_by_the_next_call_that_waits() -> None:
    group = dist.new_group(timeout=timedelta(seconds=1))
    meet(group)
    if RANK == 0:

        def train() -> float:
            tensor = torch.ones(4, 2, device=DEVICE)
            dist.all_reduce(tensor, group=group)
            return tensor.sum().item()

        text, seconds = error_of(train)
        assert "dicl:all_reduce failed on rank 0 of 2: timed out after 1000 ms" in text or THROUGH_HOST, text
        assert "Float[4, 2]" in text or THROUGH_HOST, text
        assert 0.5 < seconds < 5, seconds
        again, _ = error_of(train)
        assert "dicl:all_reduce failed on rank 0 of 2" in again, again
        assert torch.ones(2, device=DEVICE).sum().item() == 2  # told once, the device is of use
    dist.barrier(device_ids=[DEVICE.index])


def check_a_receive_without_a_sender_is_a_timeout() -> None:
    group = dist.new_group(timeout=timedelta(seconds=1))
    if RANK == 0:
        # By the vendor's library, a pair of ranks meets at its first message.
        text, seconds = error_of(lambda: dist.irecv(torch.empty(4, device=DEVICE), 1, group=group).wait())
        assert "dicl:recv failed on rank 0 of 2" in text and "imed out" in text, text
        assert seconds < 5
    dist.barrier(device_ids=[DEVICE.index])


def check_waiting_has_a_timeout_of_its_own() -> None:
    dist.all_reduce(torch.ones(1, device=DEVICE))
    tensor = torch.ones(4, device=DEVICE)
    if RANK == 0:
        work = dist.all_reduce(tensor, async_op=True)
        try:
            work.wait(timedelta(milliseconds=200))
        except RuntimeError as error:
            assert "timed out" in str(error).lower(), error
        else:
            raise AssertionError("no timeout")
    dist.barrier(group=dist.new_group(backend="gloo"))
    if RANK == 0:
        work.wait()
    else:
        dist.all_reduce(tensor)
    assert tensor.tolist() == [2.0] * 4


def check_abort_ends_what_waits() -> None:
    group = dist.new_group()
    meet(group)
    if RANK == 0:
        backend = group._get_backend(DEVICE)
        collective = dist.all_reduce(torch.ones(4, device=DEVICE), group=group, async_op=True)
        receive = dist.irecv(torch.empty(4, device=DEVICE), 1, group=group)
        begin = time.monotonic()
        backend.abort()
        for work in (collective, receive):
            text, _ = error_of(work.wait)
            assert "aborted" in text, text
        text, _ = error_of(lambda: dist.all_reduce(torch.ones(4, device=DEVICE), group=group))
        assert "aborted" in text and "destroy_process_group()" in text, text
        dist.destroy_process_group(group)
        del backend, group
        assert time.monotonic() - begin < 3
    dist.barrier(device_ids=[DEVICE.index])


def check_an_abort_waits_for_the_call_of_another_thread() -> None:
    """A call that adds thousands of tensors is still using the communicator when it is aborted."""
    tensors = [torch.ones(2, device=DEVICE)] * 5000
    for number in range(10):
        group = dist.new_group([0])
        if RANK == 0:
            dist.all_reduce(tensors[0], group=group)
            texts: list[str] = []

            def calls(group=group, texts=texts) -> None:
                texts.append(error_of(lambda: [dist.all_reduce_coalesced(tensors, group=group) for _ in range(100)])[0])

            thread = threading.Thread(target=calls)
            thread.start()
            time.sleep(0.003 * number)
            group._get_backend(DEVICE).abort()
            thread.join()
            assert "aborted" in texts[0], texts
            dist.destroy_process_group(group)
    dist.barrier(group=dist.new_group(backend="gloo"))  # some libraries take a second for a communicator


def check_destroying_waits_for_a_collective_and_its_callback() -> None:
    group = dist.new_group()
    done = []
    if RANK == 1:
        time.sleep(0.5)
    tensor = torch.ones(4, device=DEVICE)
    work = dist.all_reduce(tensor, group=group, async_op=True)
    future = work.get_future().then(lambda _: done.append(1))
    dist.destroy_process_group(group)
    del group
    future.wait()
    assert done == [1] and tensor.tolist() == [2.0] * 4
    dist.barrier(device_ids=[DEVICE.index])


def check_destroying_ends_a_receive() -> None:
    group = dist.new_group()
    meet(group)
    if RANK == 0:
        work = dist.irecv(torch.empty(4, device=DEVICE), 1, group=group)
        begin = time.monotonic()
        dist.destroy_process_group(group)
        del group
        text, _ = error_of(work.wait)
        assert "aborted" in text and time.monotonic() - begin < 3, text
    dist.barrier(device_ids=[DEVICE.index])


def check_a_device_that_fails_is_the_error_of_the_work() -> None:
    if not THROUGH_HOST:
        return  # of work on a stream, the device tells itself
    tensor = torch.ones(4, device=DEVICE)
    if RANK == 0:
        # The other device of this rank, which is of no use afterwards.
        received = torch.ones(4, 2, device="dipu:1")[:, 0]
        work = dist.irecv(received, 1)
        # The received elements are spread by a kernel.
        chip = ctypes.CDLL(str(Path(os.environ["DIPU_LIBRARY_DIR"]) / "libdroplet_rt.so"))
        assert chip.tangSetFaultPlan(b"launch:1") == 0
        dist.send(tensor, 1)
        text, _ = error_of(work.wait)
        assert "dicl:recv failed on rank 0 of 2" in text and "failed on demand" in text, text
    else:
        dist.recv(tensor, 0)
        dist.send(tensor, 0)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [2.0] * 4


def check_a_callback_that_fails_is_no_failure_of_the_collective() -> None:
    tensor = torch.ones(4, device=DEVICE)
    work = dist.all_reduce(tensor, async_op=True)
    future = work.get_future().then(lambda done: 1 / 0)
    try:
        future.wait()
    except Exception as error:
        assert "division by zero" in str(error)
    else:
        raise AssertionError("no error")
    work.wait()
    dist.all_reduce(tensor)
    assert tensor.tolist() == [4.0] * 4


def check_a_killed_rank_is_an_error_and_the_other_goes_on() -> None:
    dist.barrier(device_ids=[DEVICE.index])
    if RANK == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    tensor = torch.ones(1 << 16, device=DEVICE)
    text, seconds = error_of(lambda: [(dist.all_reduce(tensor), torch.dipu.synchronize()) for _ in range(3)])
    assert "dicl:all_reduce failed on rank 0 of 2" in text, text
    assert seconds < 12, seconds  # the group's timeout and two: a library may not see that a process has ended
    dist.destroy_process_group()
    assert float((tensor * 2).sum()) > 0
    store = dist.FileStore(f"{os.environ['TEST_STORE']}-alone", 1)
    dist.init_process_group("dicl", store=store, rank=0, world_size=SIZE - 1)
    one = torch.ones(3, device=DEVICE)
    dist.all_reduce(one)
    assert one.tolist() == [1.0] * 3


if __name__ == "__main__":
    join()
    run_checks(dict(globals()))
    dist.destroy_process_group()

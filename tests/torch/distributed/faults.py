"""One fault of droplet's fabric in one collective: what every rank sees, and that a new group works afterwards.

The environment names the fault in DROPLET_FAULT, the rank that has it in FAULTY_RANK, and the collective in COLLECTIVE.
"""

import os
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from ranks import DEVICE, RANK, SIZE, join, run_checks

FAULTY = int(os.environ.get("FAULTY_RANK", "0"))
PLAN = os.environ.get("RANK_FAULT", "")
TIMEOUT = 2.0
RECORD = 15  # s that the flight record of a failure may take


def collective() -> Callable[[], object]:
    """The collective of the environment, on float32 tensors."""
    ours, all_of_them = torch.ones(8, device=DEVICE), torch.ones(8 * SIZE, device=DEVICE)
    parts = list(all_of_them.chunk(SIZE))

    def message() -> None:
        (dist.send if RANK == 0 else dist.recv)(ours, 1 - RANK)

    return {
        "all_reduce": lambda: dist.all_reduce(ours),
        "broadcast": lambda: dist.broadcast(ours, 0),
        "reduce": lambda: dist.reduce(ours, 0),
        "all_gather": lambda: dist.all_gather_into_tensor(all_of_them, ours),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(ours, all_of_them),
        "all_to_all": lambda: dist.all_to_all_single(torch.empty_like(all_of_them), all_of_them),
        "gather": lambda: dist.gather(ours, parts if RANK == 0 else None, 0),
        "scatter": lambda: dist.scatter(ours, parts if RANK == 0 else None, 0),
        "message": message,
    }[os.environ["COLLECTIVE"]]


def check_a_fault_is_an_error_on_every_rank_and_a_new_group_works() -> None:
    call = collective()
    call()  # makes the communicators
    torch.dipu.synchronize()
    if RANK == FAULTY:
        import ctypes
        from pathlib import Path

        chip = ctypes.CDLL(str(Path(os.environ["DIPU_LIBRARY_DIR"]) / "libdroplet_rt.so"))
        assert chip.tangSetFaultPlan(PLAN.encode()) == 0
    slow = PLAN.startswith("slow-link")
    begin = time.monotonic()
    error = None
    try:
        for _ in range(4):
            call()
            torch.dipu.synchronize()
        # A rank that only sends is done before the other one fails; it learns from the next call of all.
        dist.barrier(device_ids=[DEVICE.index])
    except dist.DistBackendError as caught:
        error = caught
    assert (error is None) == slow, error
    assert time.monotonic() - begin < TIMEOUT + RECORD or slow, time.monotonic() - begin
    if error is not None:
        assert "failed on rank" in str(error), error
    dist.destroy_process_group()
    left = SIZE - 1 if PLAN.startswith("rank-die") else SIZE
    store = dist.FileStore(f"{os.environ['TEST_STORE']}-again", left)
    rank = RANK if left == SIZE or RANK < FAULTY else RANK - 1
    dist.init_process_group("dicl", store=store, rank=rank, world_size=left)
    again = torch.ones(3, device=DEVICE)
    dist.all_reduce(again)
    assert again.tolist() == [float(left)] * 3


if __name__ == "__main__":
    join(timeout=TIMEOUT)
    run_checks(dict(globals()))
    dist.destroy_process_group()

"""What one of four ranks does wrong for torch's flight recorder to find; TEST_FAULT says what, FAULTY_RANK who."""

import os
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from ranks import DEVICE, RANK, SIZE, join, run_checks

FAULT = os.environ["TEST_FAULT"]
FAULTY = int(os.environ["FAULTY_RANK"]) == RANK


def check_calls_before_the_fault() -> None:
    ours = torch.ones(4, device=DEVICE)
    dist.all_reduce(ours)
    gathered = [torch.empty(4, device=DEVICE) for _ in range(SIZE)]
    dist.all_gather(gathered, ours)
    part = torch.empty(4, device=DEVICE)
    dist.reduce_scatter(part, gathered)
    torch.dipu.synchronize()
    assert part.tolist() == [SIZE * SIZE] * 4


def check_the_fault() -> None:
    backend = dist.distributed_c10d._get_default_group()._get_backend(DEVICE)
    if hasattr(backend, "set_timeout"):  # else the time of join() goes by
        backend.set_timeout(timedelta(seconds=4))
    ours = torch.ones(6, device=DEVICE)
    if FAULTY and FAULT == "missing":
        record = Path(f"{os.environ['TORCH_FR_DUMP_TEMP_FILE']}{RANK}")
        while not record.exists():  # it comes when the others' time is up
            time.sleep(0.1)
        return
    try:
        if FAULTY and FAULT == "other":
            dist.broadcast(ours, 0)
        else:
            dist.all_reduce(ours)
        torch.dipu.synchronize()
        if FAULTY:
            dist.barrier()
            torch.dipu.synchronize()
    except dist.DistBackendError as error:
        assert "dicl:" in str(error)
    else:
        raise AssertionError("no error")


if __name__ == "__main__":
    join("dipu:dicl", timeout=30)
    run_checks(dict(globals()))

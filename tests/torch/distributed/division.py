"""Groups that torch.distributed.split_group divides, with four ranks, each bound to its device."""

import copy
from datetime import timedelta

import torch
import torch.distributed as dist
from ranks import DEVICE, RANK, SIZE, join, run_checks

PAIR = RANK // 2 * 2


def check_a_part_is_a_group_of_its_own() -> None:
    group = dist.split_group(split_ranks=[[0, 1], [2, 3]])
    assert group.size() == 2 and group.rank() == RANK % 2 and group._get_backend(DEVICE).name() == "dicl"
    ours = torch.full((3,), float(RANK), device=DEVICE)
    dist.all_reduce(ours, group=group)
    assert ours.tolist() == [2.0 * PAIR + 1] * 3
    received = torch.empty(3, device=DEVICE)
    other = PAIR + (1 - RANK % 2)
    messages = [dist.P2POp(dist.isend, ours + RANK, other, group), dist.P2POp(dist.irecv, received, other, group)]
    for work in dist.batch_isend_irecv(messages):
        work.wait()
    assert torch.equal(received, ours + other)
    on_host = torch.ones(1)
    dist.all_reduce(on_host, group=group)  # by Gloo, which is divided as well
    assert on_host.item() == 2
    whole = torch.ones(1, device=DEVICE)
    dist.all_reduce(whole)
    assert whole.item() == SIZE


def check_a_part_can_be_divided() -> None:
    half = dist.split_group(split_ranks=[[0, 2], [1, 3]])
    part = dist.split_group(half, split_ranks=[[0], [1]])
    ours = torch.full((1,), float(RANK), device=DEVICE)
    dist.all_reduce(ours, group=part)
    assert ours.item() == RANK
    dist.all_reduce(ours, group=half)
    assert ours.item() == (2.0 if RANK % 2 == 0 else 4.0)


def check_a_part_has_its_own_timeout() -> None:
    group = dist.split_group(split_ranks=[[0, 1], [2, 3]], timeout=timedelta(seconds=1))
    if RANK == 0:
        try:
            dist.all_reduce(torch.ones(1, device=DEVICE), group=group)
            torch.dipu.synchronize()
        except dist.DistBackendError as error:
            assert "dicl:all_reduce failed on rank 0 of 2" in str(error), error
        else:
            raise AssertionError("no timeout")
    dist.barrier(device_ids=[DEVICE.index])


def check_options_can_be_copied() -> None:
    options = dist.group.WORLD._get_backend(DEVICE).options
    copied = copy.deepcopy(options)
    assert type(copied) is type(options) and copied is not options
    assert copied._timeout == timedelta(seconds=20) and copied.backend == "dicl"


def check_new_groups_of_some_ranks() -> None:
    """torch takes another way for them where the default group is bound to a device."""
    group = dist.new_group([0, 2])
    if RANK in (0, 2):
        ours = torch.ones(1, device=DEVICE)
        dist.all_reduce(ours, group=group)
        assert ours.item() == 2
    dist.barrier(device_ids=[DEVICE.index])


def check_ranks_of_no_part_get_no_group() -> None:
    """The last: torch has other names for later groups on these ranks, by which Gloo's meet (left_out.py)."""
    group = dist.split_group(split_ranks=[[1, 3]])
    # The latter from torch 2.14 on.
    assert (group in (None, dist.GroupMember.NON_GROUP_MEMBER)) == (RANK not in (1, 3))
    if RANK in (1, 3):
        ours = torch.full((1,), float(RANK), device=DEVICE)
        dist.all_reduce(ours, group=group)
        assert ours.item() == 4


if __name__ == "__main__":
    join(timeout=20, device_id=DEVICE)
    run_checks(dict(globals()))
    dist.destroy_process_group()

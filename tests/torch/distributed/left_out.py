"""Groups that are divided again after a division that left ranks out, with four ranks of dicl alone."""

import torch
import torch.distributed as dist
from ranks import DEVICE, RANK, join, run_checks


def divided(*parts: list[int]) -> None:
    """Divide the group of all ranks, and sum the ranks of each part."""
    group = dist.split_group(split_ranks=list(parts))
    own = next((part for part in parts if RANK in part), None)
    if own is None:
        assert group in (None, dist.GroupMember.NON_GROUP_MEMBER)
        return
    ours = torch.full((1,), float(RANK), device=DEVICE)
    dist.all_reduce(ours, group=group)
    assert ours.item() == sum(own)


def check_parts_after_one_without_two_ranks() -> None:
    divided([1, 3])
    divided([0, 1], [2, 3])


def check_the_same_parts_again() -> None:
    divided([1, 3], [0, 2])
    divided([0, 1])
    divided([0, 1], [2, 3])


if __name__ == "__main__":
    join("dipu:dicl", timeout=10, device_id=DEVICE)
    run_checks(dict(globals()))
    dist.destroy_process_group()

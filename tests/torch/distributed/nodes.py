"""Ranks on two nodes: what crosses the link goes through the host, what stays on a node by the vendor's library."""

import torch
import torch.distributed as dist
from ranks import DEVICE, RANK, SIZE, join, run_checks

NODE = RANK // 2


def ways() -> dict[str, tuple[str, str]]:
    """How each collective went so far, and why."""
    return {row.collective: (row.way, row.cause) for row in torch.dipu.distributed.report()}


def check_all_ranks_are_there() -> None:
    torch.dipu.distributed.reset()
    ours = torch.full((5,), float(RANK), device=DEVICE)
    dist.all_reduce(ours)
    assert ours.tolist() == [6.0] * 5
    every = torch.empty(SIZE, device=DEVICE)
    dist.all_gather_into_tensor(every, torch.full((1,), float(RANK), device=DEVICE))
    assert every.tolist() == [0.0, 1.0, 2.0, 3.0]
    for collective in ("dicl:all_reduce", "dicl:all_gather"):
        way, cause = ways()[collective]
        assert way == "host" and cause.startswith(
            "this rank cannot join the vendor's communicator, e.g. because" if NODE else "another rank cannot join"
        ), cause


def check_the_ranks_of_a_node_use_the_library() -> None:
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    torch.dipu.distributed.reset()
    ours = torch.full((5,), float(RANK), device=DEVICE)
    dist.all_reduce(ours, group=groups[NODE])
    assert ours.tolist() == [4.0 * NODE + 1] * 5
    assert ways()["dicl:all_reduce"] == ("device", "")


def check_training() -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2).to(DEVICE)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    ddp(torch.full((1, 4), float(RANK), device=DEVICE)).sum().backward()
    assert torch.equal(model.weight.grad.cpu(), torch.full((2, 4), 1.5))


if __name__ == "__main__":
    join(timeout=60)
    run_checks(dict(globals()))
    dist.destroy_process_group()

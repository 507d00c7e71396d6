"""Collectives in compiled programs: what a program reads of them has arrived."""

from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from ranks import DEVICE, RANK, SIZE, join, run_checks
from torch.distributed.fsdp import fully_shard

_LENGTH = 200_000  # of a tensor: what is not waited for has not arrived


def same(function: Callable[[torch.Tensor], object], x: torch.Tensor) -> None:
    """A compiled function gives on dipu what the function gives on the CPU, several times."""
    torch.compiler.reset()
    compiled = torch.compile(function, backend="diopi", fullgraph=True)
    for step in range(4):
        expected = function(x + step)
        found = compiled((x + step).to(DEVICE))
        for one, other in zip(listed(found), listed(expected), strict=True):
            torch.testing.assert_close(one.cpu(), other.cpu())


def listed(value: object) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else list(value)


def own() -> torch.Tensor:
    """Of each rank another."""
    return torch.linspace(0, 1, _LENGTH) + RANK


def check_all_reduce() -> None:
    same(lambda x: funcol.all_reduce(x * 2, "sum", dist.group.WORLD) + 1, own())


def check_all_reduce_of_a_view() -> None:
    same(lambda x: funcol.all_reduce((x * 2).view(2, -1).t(), "sum", dist.group.WORLD) + 1, own())


def check_all_gather() -> None:
    same(lambda x: funcol.all_gather_tensor(x * 2, 0, dist.group.WORLD) + 1, own())


def check_reduce_scatter() -> None:
    same(lambda x: funcol.reduce_scatter_tensor(x * 2, "sum", 0, dist.group.WORLD) + 1, own())


def check_broadcast() -> None:
    same(lambda x: funcol.broadcast(x * 2, 1, dist.group.WORLD) + 1, own())


def check_all_to_all() -> None:
    same(lambda x: funcol.all_to_all_single(x * 2, None, None, dist.group.WORLD) + 1, own())


def check_several_at_once() -> None:
    def run(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first = funcol.all_reduce(x * 2, "sum", dist.group.WORLD)
        second = funcol.all_gather_tensor(x * 3, 0, dist.group.WORLD)
        y = (x + 1) * 5  # may take the place of what the collectives read, were that free
        return first + y, second + y.sum(), y

    same(run, own())


def check_results_that_leave_the_program() -> None:
    same(lambda x: (funcol.all_reduce(x * 2, "sum", dist.group.WORLD), x * 3), own())


def check_all_reduce_in_place() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        dist.all_reduce(y)
        return y + 1

    same(run, own())


def check_all_gather_into_tensor() -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        y = x.new_zeros(SIZE * x.numel())
        dist.all_gather_into_tensor(y, x * 2)
        return y + 1

    same(run, own())


def check_a_list_of_tensors() -> None:
    same(lambda x: [t + 1 for t in funcol.all_reduce_coalesced([x * 2, x * 3], "sum", dist.group.WORLD)], own())


def check_gradients() -> None:
    gradients = []
    for device, backend in ((torch.device("cpu"), None), (DEVICE, "diopi")):
        torch.compiler.reset()
        x = own().to(device).requires_grad_()

        def run(x: torch.Tensor) -> torch.Tensor:
            scale = funcol.all_reduce((x * 2).detach(), "sum", dist.group.WORLD)
            return (x * x * scale).sum()

        (run if backend is None else torch.compile(run, backend=backend))(x).backward()
        gradients.append(x.grad.cpu())
    torch.testing.assert_close(*gradients)


def trained(wrap: Callable[[torch.nn.Module], torch.nn.Module], compiled: bool) -> list[torch.Tensor]:
    """The parameters after three steps on data of this rank's own."""
    torch.manual_seed(3)
    torch.compiler.reset()
    blocks = [torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 16)) for _ in range(3)]
    model = wrap(torch.nn.Sequential(*blocks).to(DEVICE))
    run = torch.compile(model, backend="diopi") if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    torch.manual_seed(RANK)
    for _ in range(3):
        optimizer.zero_grad()
        run(torch.randn(8, 16).to(DEVICE)).square().mean().backward()
        optimizer.step()
    parameters = [parameter.detach() for parameter in model.parameters()]
    whole = [one.full_tensor() if hasattr(one, "full_tensor") else one for one in parameters]
    return [one.cpu() for one in whole]


def check_ddp_trains_as_it_does_eagerly() -> None:
    wrap = torch.nn.parallel.DistributedDataParallel
    for one, other in zip(trained(wrap, compiled=True), trained(wrap, compiled=False), strict=True):
        torch.testing.assert_close(one, other)


def check_fsdp2_trains_as_it_does_eagerly() -> None:
    def wrap(model: torch.nn.Module) -> torch.nn.Module:
        for block in model:
            fully_shard(block)
        return fully_shard(model)

    for one, other in zip(trained(wrap, compiled=True), trained(wrap, compiled=False), strict=True):
        torch.testing.assert_close(one, other)


if __name__ == "__main__":
    join(timeout=60)
    run_checks(globals())
    dist.destroy_process_group()

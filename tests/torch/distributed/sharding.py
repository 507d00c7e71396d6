"""Sharded training and checkpoints on dipu: FSDP2 and DTensor beside the CPU in one process."""

import copy
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
import torch.nn.functional as F
from ranks import DEVICE, RANK, SIZE, join, run_checks
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from training import Block, close, mine, mlp, mlp_batch, token_batch


def mesh() -> DeviceMesh:
    return init_device_mesh("dipu", (SIZE,))


def whole(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def sharded(model: nn.Module, **options: object) -> nn.Module:
    """A copy on dipu; each submodule with parameters of its own is a group of its own, as is the root."""
    local = copy.deepcopy(model).to(DEVICE)
    for module in local.children():
        if any(True for _ in module.parameters()):
            fully_shard(module, mesh=mesh(), **options)
    return fully_shard(local, mesh=mesh(), **options)


def train(model: nn.Module, single: nn.Module, batch, steps: int = 3, optimizer_type=torch.optim.SGD) -> None:
    optimizers = [optimizer_type(m.parameters(), lr=1e-2) for m in (model, single)]
    for step in range(steps):
        x, y = batch(step)
        loss = F.cross_entropy(model(mine(x)), mine(y).flatten())
        loss.backward()
        expected = F.cross_entropy(single(x), y.flatten())
        expected.backward()
        dist.all_reduce(loss := loss.detach().clone(), dist.ReduceOp.AVG)
        close(loss, expected)
        for ours, theirs in zip(model.parameters(), single.parameters(), strict=True):
            close(whole(ours.grad), theirs.grad)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    for ours, theirs in zip(model.parameters(), single.parameters(), strict=True):
        close(whole(ours), theirs, 1e-4)


def check_fully_sharded_mlp() -> None:
    torch.manual_seed(0)
    single = mlp()
    model = sharded(single)
    held = sum(parameter.to_local().numel() for parameter in model.parameters())
    assert held < 0.6 * sum(parameter.numel() for parameter in single.parameters())
    train(model, single, mlp_batch, optimizer_type=torch.optim.AdamW)


def check_fully_sharded_transformer_block() -> None:
    torch.manual_seed(0)
    single = Block()
    train(sharded(single), single, token_batch)


def check_sharded_until_the_backward_pass() -> None:
    torch.manual_seed(0)
    single = Block()
    train(sharded(single, reshard_after_forward=False), single, token_batch)


def check_mixed_precision_of_shards() -> None:
    torch.manual_seed(0)
    single = mlp()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = sharded(single, mp_policy=policy)
    x, y = mlp_batch(0)
    output = model(mine(x))
    assert output.dtype == torch.bfloat16
    F.cross_entropy(output.float(), mine(y)).backward()
    F.cross_entropy(single(x), y).backward()
    for ours, theirs in zip(model.parameters(), single.parameters(), strict=True):
        assert ours.grad.dtype == torch.float32
        close(whole(ours.grad), theirs.grad, 3e-2)


def check_parameters_that_live_on_the_cpu() -> None:
    torch.manual_seed(0)
    single = mlp()
    # The model moves first: torch cannot turn a parameter on the CPU into one on dipu in place.
    model = sharded(single, offload_policy=CPUOffloadPolicy())
    assert all(parameter.device.type == "cpu" for parameter in model.parameters())
    x, y = mlp_batch(0)
    F.cross_entropy(model(mine(x)), mine(y)).backward()
    F.cross_entropy(single(x), y).backward()
    for ours, theirs in zip(model.parameters(), single.parameters(), strict=True):
        close(whole(ours.grad), theirs.grad)


def check_parameters_made_without_memory() -> None:
    torch.manual_seed(0)
    single = mlp()
    with torch.device("meta"):
        model = mlp()
    fully_shard(model, mesh=mesh())
    model.to_empty(device=DEVICE)
    for ours, theirs in zip(model.parameters(), single.parameters(), strict=True):
        ours.data.copy_(distribute_tensor(theirs.detach().to(DEVICE), ours.device_mesh, ours.placements))
    train(model, single, mlp_batch)


def check_clipping_the_norm_of_sharded_gradients() -> None:
    torch.manual_seed(0)
    single = mlp()
    model = sharded(single)
    x, y = mlp_batch(0)
    F.cross_entropy(model(mine(x)), mine(y)).backward()
    F.cross_entropy(single(x), y).backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    close(whole(norm), nn.utils.clip_grad_norm_(single.parameters(), 0.1))
    for ours, theirs in zip(model.parameters(), single.parameters(), strict=True):
        close(whole(ours.grad), theirs.grad)


def check_distributed_tensors() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(6, 4), torch.randn(4, 5)
    rows = distribute_tensor(a.to(DEVICE), mesh(), [Shard(0)])
    assert rows.to_local().shape == (3, 4) and rows.to_local().device == DEVICE
    close(rows.full_tensor(), a)
    close(rows.redistribute(mesh(), [Shard(1)]).to_local(), a.chunk(SIZE, 1)[RANK])
    close(rows.redistribute(mesh(), [Replicate()]).to_local(), a)
    product = rows @ distribute_tensor(b.to(DEVICE), mesh(), [Replicate()])
    assert product.placements == (Shard(0),)
    close(product.full_tensor(), a @ b)
    inner = distribute_tensor(a.to(DEVICE), mesh(), [Shard(1)]) @ distribute_tensor(b.to(DEVICE), mesh(), [Shard(0)])
    assert inner.placements[0].is_partial()
    close(inner.full_tensor(), a @ b)
    close(inner.redistribute(mesh(), [Shard(0)]).to_local(), (a @ b).chunk(SIZE)[RANK])
    close(rows.sum().full_tensor(), a.sum())
    close(torch.softmax(rows, 1).full_tensor(), torch.softmax(a, 1))
    maximum = DTensor.from_local(torch.full((2,), float(RANK), device=DEVICE), mesh(), [Partial("max")])
    close(maximum.full_tensor(), torch.ones(2))


def check_uneven_shards() -> None:
    a = torch.arange(15.0).view(5, 3)
    rows = distribute_tensor(a.to(DEVICE), mesh(), [Shard(0)])
    close(rows.to_local(), a.chunk(SIZE)[RANK])
    close((rows * 2).full_tensor(), 2 * a)


def check_tensor_parallel_layers() -> None:
    for bias in (True, False):
        torch.manual_seed(0)
        single = nn.Sequential(nn.Linear(6, 8, bias=bias), nn.ReLU(), nn.Linear(8, 4, bias=bias))
        model = copy.deepcopy(single).to(DEVICE)
        model = parallelize_module(model, mesh(), {"0": ColwiseParallel(), "2": RowwiseParallel()})
        x = torch.randn(3, 5, 6)
        output = model(x.to(DEVICE))
        close(output, single(x))
        output.square().sum().backward()
        single(x).square().sum().backward()
        for ours, theirs in zip(model.parameters(), single.parameters(), strict=True):
            close(whole(ours.grad), theirs.grad)


def check_gradients_of_a_linear_layer_in_each_division() -> None:
    torch.manual_seed(0)
    values = {"x": torch.randn(4, 6, 8), "weight": torch.randn(10, 8), "bias": torch.randn(10)}
    expected = {name: tensor.clone().requires_grad_() for name, tensor in values.items()}
    F.linear(*expected.values()).square().sum().backward()
    for x_placement in (Replicate(), Shard(0), Shard(1), Shard(2)):
        if x_placement == Shard(1) and torch.__version__ < "2.12":
            continue  # torch 2.11 does not reshape such a dimension
        for weight_placement in (Replicate(), Shard(0), Shard(1)):
            placements = {"x": x_placement, "weight": weight_placement, "bias": Replicate()}
            ours = {
                name: distribute_tensor(tensor.to(DEVICE), mesh(), [placements[name]]).requires_grad_()
                for name, tensor in values.items()
            }
            F.linear(*ours.values()).square().sum().backward()
            for name, tensor in ours.items():
                close(whole(tensor.grad), expected[name].grad, 1e-4)


def check_gradients_of_products_in_each_division() -> None:
    # Where torch's own rules can divide a product on the CPU, too: they refuse to reshape a divided dimension.
    torch.manual_seed(0)
    for a_shape, b_shape in (
        ((4, 6), (6, 8)),
        ((2, 4, 6), (2, 6, 8)),
    ):
        values = torch.randn(a_shape), torch.randn(b_shape)
        expected = [tensor.clone().requires_grad_() for tensor in values]
        (expected[0] @ expected[1]).square().sum().backward()
        for a_placement in (Replicate(), *(Shard(dim) for dim in range(len(a_shape)))):
            for b_placement in (Replicate(), *(Shard(dim) for dim in range(len(b_shape)))):
                a, b = (
                    distribute_tensor(tensor.to(DEVICE), mesh(), [placement]).requires_grad_()
                    for tensor, placement in zip(values, (a_placement, b_placement), strict=True)
                )
                (a @ b).square().sum().backward()
                close(whole(a.grad), expected[0].grad, 1e-4)
                close(whole(b.grad), expected[1].grad, 1e-4)


def check_a_mesh_of_two_dimensions() -> None:
    grid = init_device_mesh("dipu", (1, SIZE), mesh_dim_names=("replicate", "shard"))
    torch.manual_seed(0)
    single = mlp()
    model = fully_shard(copy.deepcopy(single).to(DEVICE), mesh=grid)
    train(model, single, mlp_batch)


def check_saving_and_loading_a_checkpoint() -> None:
    torch.manual_seed(0)
    first = sharded(mlp())
    optimizer = torch.optim.AdamW(first.parameters(), lr=1e-2)
    x, y = mlp_batch(0)
    F.cross_entropy(first(mine(x)), mine(y)).backward()
    optimizer.step()
    folder = str(Path(os.environ["TEST_REPORT"]) / "checkpoint")
    model_state, optimizer_state = get_state_dict(first, optimizer)
    checkpoint.save({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=folder)

    torch.manual_seed(1)
    second = sharded(mlp())
    other = torch.optim.AdamW(second.parameters(), lr=1e-2)
    model_state, optimizer_state = get_state_dict(second, other)
    state = {"model": model_state, "optimizer": optimizer_state}
    checkpoint.load(state, checkpoint_id=folder)
    set_state_dict(second, other, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    saved = {name: whole(tensor).cpu() for name, tensor in model_state.items()}
    for model, its in ((first, optimizer), (second, other)):
        its.zero_grad()
        F.cross_entropy(model(mine(x)), mine(y)).backward()
        its.step()
    for ours, theirs in zip(second.parameters(), first.parameters(), strict=True):
        close(whole(ours), whole(theirs).cpu())

    # The same files hold the whole model for one process on the CPU.
    alone = mlp()
    plain = {"model": alone.state_dict()}
    checkpoint.load(plain, checkpoint_id=folder, no_dist=True)
    for name, tensor in plain["model"].items():
        close(saved[name], tensor)


if __name__ == "__main__":
    join()
    run_checks(dict(globals()))
    dist.destroy_process_group()

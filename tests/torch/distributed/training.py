"""Data-parallel training on dipu beside training on the CPU in one process with the whole batch."""

import contextlib
import copy
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ranks import DEVICE, RANK, SIZE, join, run_checks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 8


class Block(nn.Module):
    """A transformer block with its embedding and output layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.block = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
        self.output = nn.Linear(16, 20)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.output(self.block(self.embedding(tokens))).flatten(0, 1)


class Branches(nn.Module):
    """Uses one of its layers, so that the others have no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def forward(self, x: torch.Tensor, which: int) -> torch.Tensor:
        return self.layers[which](x)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 32), nn.GELU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))


def mlp_batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    return torch.randn(BATCH, 6, generator=generator), torch.randint(0, 4, (BATCH,), generator=generator)


def token_batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    tokens = torch.randint(0, 20, (BATCH, 6), generator=generator)
    return tokens[:, :-1], tokens[:, 1:]


def mine(whole: torch.Tensor) -> torch.Tensor:
    return whole.chunk(SIZE)[RANK].contiguous().to(DEVICE)


def close(on_dipu: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(on_dipu.detach().cpu(), expected.detach(), rtol=tolerance, atol=tolerance)


def same_gradients(parallel: nn.Module, single: nn.Module) -> None:
    for (name, ours), theirs in zip(parallel.named_parameters(), single.parameters(), strict=True):
        if theirs.grad is None:
            assert ours.grad is None or not ours.grad.any(), name
        else:
            close(ours.grad, theirs.grad)


def pair(make: type[nn.Module] = mlp, **options: object) -> tuple[DistributedDataParallel, nn.Module]:
    """The same model twice: data-parallel on dipu, and on the CPU. Only rank 0 has the right start."""
    torch.manual_seed(3)
    single = make()
    local = copy.deepcopy(single)
    if RANK != 0:
        for parameter in local.parameters():
            nn.init.zeros_(parameter)
    return DistributedDataParallel(local.to(DEVICE), **options), single


def train(parallel: nn.Module, single: nn.Module, batch=mlp_batch, optimizer_type=torch.optim.AdamW) -> None:
    optimizers = [optimizer_type(model.parameters(), lr=1e-2) for model in (parallel, single)]
    for step in range(4):
        x, y = batch(step)
        loss = F.cross_entropy(parallel(mine(x)), mine(y).flatten())
        loss.backward()
        expected = F.cross_entropy(single(x), y.flatten())
        expected.backward()
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        close(mean, expected)
        same_gradients(parallel, single)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    for ours, theirs in zip(parallel.parameters(), single.parameters(), strict=True):
        close(ours, theirs, 1e-4)


def check_mlp() -> None:
    train(*pair())


def check_device_ids() -> None:
    train(*pair(device_ids=[DEVICE.index]))


def check_transformer_block_in_many_buckets() -> None:
    # AdamW would divide rounding errors by their own size: the bias of the keys has no gradient.
    train(*pair(Block, bucket_cap_mb=0.002), batch=token_batch, optimizer_type=torch.optim.SGD)


def check_gradients_as_views_of_buckets() -> None:
    parallel, single = pair(gradient_as_bucket_view=True)
    train(parallel, single)
    # All gradients lie in one bucket.
    x, y = mlp_batch(9)
    F.cross_entropy(parallel(mine(x)), mine(y)).backward()
    storages = {parameter.grad.untyped_storage().data_ptr() for parameter in parallel.parameters()}
    assert len(storages) == 1, storages


def check_no_sync_accumulates() -> None:
    parallel, single = pair()
    batches = [mlp_batch(step) for step in range(3)]
    for i, (x, y) in enumerate(batches):
        with parallel.no_sync() if i < 2 else contextlib.nullcontext():
            F.cross_entropy(parallel(mine(x)), mine(y)).backward()
        F.cross_entropy(single(x), y).backward()
    same_gradients(parallel, single)


def check_unused_parameters() -> None:
    parallel, single = pair(Branches, find_unused_parameters=True)
    for step in range(3):
        x = mlp_batch(step)[0]
        # Each rank uses another layer; the CPU trains on both halves.
        parallel(mine(x), (step + RANK) % 3).square().sum().backward()
        halves = x.chunk(SIZE)
        (sum(single(halves[rank], (step + rank) % 3).square().sum() for rank in range(SIZE)) / SIZE).backward()
    same_gradients(parallel, single)


def check_static_graph() -> None:
    train(*pair(static_graph=True))


def check_buffers_follow_rank_0() -> None:
    model = DistributedDataParallel(nn.BatchNorm1d(6).to(DEVICE))
    x = mlp_batch(0)[0]
    model(mine(x))  # each rank's statistics come from its own half
    model(mine(x))  # begins with those of rank 0
    expected = nn.BatchNorm1d(6)
    expected(x.chunk(SIZE)[0])
    expected(x.chunk(SIZE)[RANK])
    close(model.module.running_mean, expected.running_mean)
    close(model.module.running_var, expected.running_var)


def check_compressing_hooks() -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    parallel, single = pair()
    parallel.register_comm_hook(None, default_hooks.fp16_compress_hook)
    x, y = mlp_batch(0)
    F.cross_entropy(parallel(mine(x)), mine(y)).backward()
    F.cross_entropy(single(x), y).backward()
    for ours, theirs in zip(parallel.parameters(), single.parameters(), strict=True):
        close(ours.grad, theirs.grad, 1e-2)
    # Its callbacks wait for further collectives; with all ranks of a matrix it is exact.
    parallel, single = pair()
    state = powerSGD_hook.PowerSGDState(
        None, matrix_approximation_rank=32, start_powerSGD_iter=2, min_compression_rate=0.1
    )
    parallel.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    for step in range(4):
        x, y = mlp_batch(step)
        for model in (parallel, single):
            model.zero_grad()
        F.cross_entropy(parallel(mine(x)), mine(y)).backward()
        F.cross_entropy(single(x), y).backward()
    for ours, theirs in zip(parallel.parameters(), single.parameters(), strict=True):
        close(ours.grad, theirs.grad, 1e-3)


def check_callbacks_of_several_buckets_start_collectives_in_one_order() -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    parallel, single = pair(bucket_cap_mb=0.001)
    state = powerSGD_hook.PowerSGDState(
        None, matrix_approximation_rank=32, start_powerSGD_iter=2, min_compression_rate=0.1
    )
    buckets = set()

    def hook(state: powerSGD_hook.PowerSGDState, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        buckets.add(bucket.index())
        return powerSGD_hook.powerSGD_hook(state, bucket)

    parallel.register_comm_hook(state, hook)
    for step in range(12):
        x, y = mlp_batch(step)
        for model in (parallel, single):
            model.zero_grad()
        if step % 2 == RANK:
            time.sleep(0.01)
        F.cross_entropy(parallel(mine(x)), mine(y)).backward()
        F.cross_entropy(single(x), y).backward()
    assert len(buckets) > 1, buckets
    for ours, theirs in zip(parallel.parameters(), single.parameters(), strict=True):
        close(ours.grad, theirs.grad, 1e-3)


def check_mixed_precision_with_a_gradient_scaler() -> None:
    parallel, single = pair()
    scaler = torch.amp.GradScaler("dipu", init_scale=2.0**10)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    reference = torch.optim.SGD(single.parameters(), lr=0.1)
    for step in range(4):
        x, y = mlp_batch(step)
        with torch.autocast("dipu", dtype=torch.float16):
            loss = F.cross_entropy(parallel(mine(x)), mine(y))
            if step == 2 and RANK == 1:
                loss = loss * float("inf")  # one rank's overflow: all ranks leave the step out
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        if step != 2:
            F.cross_entropy(single(x), y).backward()
            reference.step()
            reference.zero_grad()
    assert scaler.get_scale() == 2.0**9
    for ours, theirs in zip(parallel.parameters(), single.parameters(), strict=True):
        close(ours, theirs, 1e-2)


def check_synchronized_batch_norm() -> None:
    torch.manual_seed(0)
    single = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6))
    model = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(single)).to(DEVICE)
    x = mlp_batch(0)[0]
    output, expected = model(mine(x)), single(x)
    close(output, expected.chunk(SIZE)[RANK])
    output.square().sum().backward()
    expected.square().sum().backward()
    for ours, theirs in zip(model[0].parameters(), single[0].parameters(), strict=True):
        dist.all_reduce(ours.grad)
        close(ours.grad, theirs.grad, 1e-4)
    close(model[1].running_var, single[1].running_var)


if __name__ == "__main__":
    join()
    run_checks(dict(globals()))
    dist.destroy_process_group()

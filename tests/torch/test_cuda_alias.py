"""Programs for CUDA run on dipu while torch.dipu.mock_cuda is on, and torch is untouched while it is off."""

import copy
import io
import pickle
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

# Every attribute of every module and class of torch, by identity.
SNAPSHOT = """
import inspect, sys

def attributes():
    found = {}
    for name, module in sorted(sys.modules.items()):
        if module is None or not (name == "torch" or name.startswith("torch.")):
            continue
        owners = {name: module}
        for key, value in list(vars(module).items()):
            if inspect.isclass(value) and str(getattr(value, "__module__", "")).startswith("torch"):
                owners[f"{name}.{key}"] = value
        for owner_name, owner in owners.items():
            for key, value in list(vars(owner).items()):
                if not key.startswith("__") or key == "__init__":
                    found[f"{owner_name}.{key}"] = (id(value), value)
    return found

def changes(before, after):
    return sorted(key for key in before if key not in after or after[key][0] != before[key][0])
"""


@pytest.fixture
def cuda(torch: Any) -> Iterator[Any]:
    """torch.cuda while it is dipu."""
    with torch.dipu.mock_cuda():
        yield torch.cuda


def test_starting_the_backend_leaves_torch_as_it_is(run_python: Run) -> None:
    program = f"""{SNAPSHOT}
import torch, torch.utils.backend_registration
before = attributes()
import torch_dipu; torch_dipu.start()
after = attributes()
print(changes(before, after))
added = {{key.rpartition(".")[2] for key in after if key not in before and not key.startswith("torch.dipu")}}
# The registration of the collectives is torch's own way, too.
print(sorted(name for name in added if "dipu" not in name.lower() and name != "DICL"))
assert not torch.cuda.is_available() and not torch.ones(1, device="dipu").is_cuda
"""
    done = run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 0, done.stderr
    changed, added = map(eval, done.stdout.splitlines())
    # torch's own registration of a backend keeps its name, also in two enumerations.
    enumerations = [key for key in changed if key.endswith((".DeviceType.name", ".ProfilerActivity.name"))]
    assert set(changed) - set(enumerations) == {"torch.utils.backend_registration._privateuse1_backend_name"}
    assert added == []


def test_the_alias_is_undone_exactly(run_python: Run) -> None:
    program = f"""{SNAPSHOT}
import torch, torch_dipu
torch_dipu.start()
with torch.dipu.mock_cuda():
    pass
before = attributes()
torch.dipu.mock_cuda()
torch.zeros(2, device="cuda").cuda()
during = attributes()
print(len(changes(before, during)) > 150, torch.dipu.is_mocking_cuda())
torch.dipu.mock_cuda(False)
after = attributes()
print(changes(before, after), sorted(set(after) - set(before)), torch.dipu.is_mocking_cuda())
try:
    torch.zeros(2, device="cuda")
except (AssertionError, RuntimeError, NotImplementedError) as error:
    print("no cuda again")
"""
    done = run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True True", "[] [] False", "no cuda again"]


def test_contexts_nest(torch: Any) -> None:
    dipu = torch.dipu
    with dipu.mock_cuda():
        with dipu.mock_cuda(False):
            assert not dipu.is_mocking_cuda() and not torch.cuda.is_available()
        with dipu.mock_cuda():
            pass
        assert dipu.is_mocking_cuda() and torch.cuda.is_available()
    assert not dipu.is_mocking_cuda()


PROGRAM = """
import torch
from torch import nn

assert torch.cuda.is_available() and torch.cuda.device_count() >= 1
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
torch.cuda.manual_seed_all(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = torch.cuda.amp.GradScaler()
dataset = torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randint(0, 4, (32,)))
losses = []
for epoch in range(4):
    for x, y in torch.utils.data.DataLoader(dataset, batch_size=16, pin_memory=True):
        assert x.is_pinned()
        x, y = x.cuda(non_blocking=True), y.to("cuda", non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.amp.autocast(dtype=torch.bfloat16):
            out = model(x)
            assert out.dtype == torch.bfloat16
            loss = nn.functional.cross_entropy(out.float(), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    losses.append(loss.item())
torch.cuda.synchronize()
assert losses[-1] < losses[0], losses
assert next(model.parameters()).is_cuda and torch.cuda.memory_allocated() > 0
print(next(model.parameters()).device)
"""


def test_a_program_for_cuda_runs_unchanged(run_python: Run) -> None:
    done = run_python(PROGRAM, DIPU_MOCK_CUDA="1", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode != 0 and "torch_dipu" not in done.stderr  # nothing started the backend
    done = run_python(
        f"import torch_dipu; torch_dipu.start(){PROGRAM}", DIPU_MOCK_CUDA="1", TORCH_DEVICE_BACKEND_AUTOLOAD="0"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "dipu:0"


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.empty(2, device="cuda"),
        lambda t: t.tensor([1, 2], device="cuda:0"),
        lambda t: t.as_tensor([1, 2], device=t.device("cuda")),
        lambda t: t.randint(0, 3, (2,), device="cuda"),
        lambda t: t.arange(3, device=t.device("cuda", 0)),
        lambda t: t.zeros_like(t.ones(2), device="cuda"),
        lambda t: t.ones(2).new_full((2,), 3, device="cuda"),
        lambda t: t.fft.fftfreq(4, device="cuda"),
        lambda t: t.ones(2).to("cuda", t.float16),
        lambda t: t.ones(2).cuda(0),
        lambda t: t.nn.Linear(2, 2).cuda().weight,
        lambda t: t.nn.Linear(2, 2).to(device="cuda").weight,
        lambda t: t.nn.Linear(2, 2, device="cuda").weight,
        lambda t: t.nn.Linear(2, 2, device="meta").to_empty(device="cuda").weight,
        lambda t: t.cuda.FloatTensor(2, 3),
        lambda t: t.cuda.LongTensor([1, 2]),
        lambda t: t.ones(2).type(t.cuda.HalfTensor),
        lambda t: t.ones(2).type("torch.cuda.FloatTensor"),
        lambda t: t.nn.utils.rnn.pack_padded_sequence(t.ones(2, 1), t.tensor([2])).cuda().data,
    ],
)
def test_what_makes_tensors(torch: Any, cuda: Any, make: Callable[[Any], Any]) -> None:
    tensor = make(torch)
    assert tensor.device == torch.device("cuda", 0) == torch.device("dipu", 0)
    assert tensor.is_cuda and tensor.untyped_storage().is_cuda and tensor.type().startswith("torch.cuda.")


def test_default_devices(torch: Any, cuda: Any) -> None:
    with torch.device("cuda"):
        assert torch.empty(2).is_cuda and torch.nn.Linear(2, 2).weight.is_cuda
    torch.set_default_device("cuda")
    try:
        assert torch.empty(2).is_cuda
    finally:
        torch.set_default_device(None)
    assert not torch.empty(2).is_cuda and torch.get_device_module("cuda") is torch.dipu
    with cuda.device("cuda:0"):
        assert cuda.current_device() == 0


def test_classes_are_still_torchs(torch: Any, cuda: Any) -> None:
    device = torch.ones(1).cuda().device
    assert isinstance(device, torch.device) and type(device) == torch.device  # noqa: E721
    assert {torch.device: 1}[type(device)] == 1
    for again in (pickle.loads(pickle.dumps(device)), copy.deepcopy(device)):
        assert again == device
    generator = torch.Generator(device="cuda").manual_seed(1)
    assert isinstance(generator, torch.Generator) and generator.device.type == "dipu"
    assert issubclass(torch.cuda.Stream, torch.Stream)

    class Own(torch.cuda.Stream):
        pass

    assert isinstance(Own(), Own) and isinstance(Own(), torch.cuda.Stream) and not isinstance(cuda.Stream(), Own)


def test_streams_and_events(torch: Any, cuda: Any) -> None:
    stream, start, end = cuda.Stream(), cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    assert isinstance(stream, cuda.Stream) and isinstance(start, cuda.Event)
    with cuda.stream(stream):
        assert cuda.current_stream() == stream
        start.record()
        x = torch.ones(10, device="cuda") * 2
        end.record()
    cuda.current_stream().wait_stream(stream)
    x.record_stream(cuda.current_stream())
    end.synchronize()
    assert start.elapsed_time(end) >= 0 and x.sum().item() == 20
    cuda.nvtx.range_push("step")
    cuda.nvtx.range_pop()


def test_random_numbers(torch: Any, cuda: Any) -> None:
    cuda.manual_seed(5)
    first = torch.rand(3, device="cuda").cpu()
    torch.manual_seed(5)
    state = cuda.get_rng_state()
    with torch.random.fork_rng(devices=[0], device_type="cuda"):
        assert torch.equal(torch.rand(3, device="cuda").cpu(), first)
    assert torch.equal(cuda.get_rng_state("cuda"), state)


def test_mixed_precision(torch: Any, cuda: Any) -> None:
    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
        def forward(ctx: Any, x: Any) -> Any:
            assert x.dtype == torch.float32 and not torch.is_autocast_enabled("cuda")
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    x = torch.ones(2, 2, device="cuda", requires_grad=True)
    with torch.autocast("cuda", dtype=torch.float16):
        assert torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda") == torch.float16
        y = Product.apply(x @ x)
    y.sum().backward()
    assert y.dtype == torch.float32 and x.grad.is_cuda
    assert torch.amp.GradScaler().is_enabled() and torch.amp.is_autocast_available("cuda")


def test_loading(torch: Any, cuda: Any) -> None:
    file = io.BytesIO()
    torch.save({"weight": torch.ones(3)}, file)
    for place in ("cuda", "cuda:0", torch.device("cuda"), {"cpu": "cuda:0"}):
        file.seek(0)
        assert torch.load(file, map_location=place)["weight"].is_cuda


def test_a_file_that_was_saved_from_cuda_is_loaded(run_python: Run) -> None:
    program = """
import io, torch, torch_dipu
torch_dipu.start()
# The file of a machine with CUDA: its tensors say that they were on cuda:0.
torch.serialization.register_package(0, lambda storage: "cuda:0", lambda storage, location: None)
file = io.BytesIO()
torch.save(torch.arange(3), file)
with torch.dipu.mock_cuda():
    file.seek(0)
    x = torch.load(file)
    print(x.tolist(), x.device, x.is_cuda)
"""
    done = run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[0, 1, 2] dipu:0 True"


@pytest.mark.parametrize("imported", ["before", "meanwhile"])
def test_checkpoints_are_saved_and_loaded(run_python: Run, tmp_path: Path, imported: str) -> None:
    program = f"""
import torch, torch_dipu
torch_dipu.start()
if {imported!r} == "before":
    import torch.distributed.checkpoint.filesystem
with torch.dipu.mock_cuda():
    import torch.distributed.checkpoint as checkpoint
    saved = {{"weight": torch.arange(6.0, device="cuda").reshape(2, 3)}}
    checkpoint.save(saved, checkpoint_id={str(tmp_path)!r}, no_dist=True)
    loaded = {{"weight": torch.zeros(2, 3, device="cuda")}}
    checkpoint.load(loaded, checkpoint_id={str(tmp_path)!r}, no_dist=True)
    print(loaded["weight"].tolist(), loaded["weight"].device.type)
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] dipu\n"


def test_nccl_is_dicl_where_there_is_one(run_python: Run) -> None:
    program = """
import torch, torch_dipu
import torch.distributed as dist
torch_dipu.start()
from torch_dipu.cuda_alias.names import dicl_name
print(dicl_name("nccl"))
if "dicl" not in dist.Backend.backend_list:
    make = lambda store, rank, size, timeout: dist.ProcessGroupGloo(store, rank, size, timeout)
    dist.Backend.register_backend("dicl", make, devices=["dipu"])
print(dicl_name("cpu:gloo,cuda:nccl"), dicl_name("gloo"), dicl_name(None))
with torch.dipu.mock_cuda():
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    print(dist.get_backend(), dist.is_nccl_available())
    dist.destroy_process_group()
"""
    done = run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == ["cpu:gloo,dipu:dicl gloo None", "dicl True"]


def test_compiled_code_follows_the_alias(torch: Any) -> None:
    def shifted(x: Any, device: str) -> Any:
        return torch.relu(x) + torch.ones(2, device=device)

    x = torch.tensor([-1.0, 2.0], device="dipu")
    for _ in range(2):
        with torch.dipu.mock_cuda():
            compiled = torch.compile(shifted, backend="aot_eager", fullgraph=True)
            assert compiled(x, "cuda").tolist() == [1, 3]
        compiled = torch.compile(shifted, backend="aot_eager", fullgraph=True)
        assert compiled(x, "dipu").tolist() == [1, 3]


def test_scripts_compile_under_the_alias(run_python: Run, tmp_path: Path) -> None:
    # A script is compiled from its source file.
    (tmp_path / "scripted.py").write_text("""
import torch

@torch.jit.script
def shifted(x: torch.Tensor, device: torch.device) -> torch.Tensor:
    return x + torch.arange(2, device=device) + torch.zeros_like(x)
""")
    program = f"""
import sys, torch, torch_dipu
sys.path.insert(0, {str(tmp_path)!r})
torch_dipu.start()
with torch.dipu.mock_cuda():
    from scripted import shifted
    print(shifted(torch.ones(2, device="cuda"), torch.device("cuda")).tolist())
table = dict(torch.jit._builtins._get_builtin_table())
with torch.dipu.mock_cuda():
    pass
print(table == torch.jit._builtins._get_builtin_table())
"""
    done = run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[1.0, 2.0]", "True"]


def test_the_profiler_of_cuda_has_the_times_of_dipu(run_python: Run) -> None:
    program = """
import torch, torch_dipu
torch_dipu.start()
torch.dipu.mock_cuda()
from torch.profiler import ProfilerActivity, profile
x = torch.ones(64, 64, device="cuda")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
    x @ x
row = next(row for row in prof.key_averages() if row.key == "aten::mm")
print(row.device_time_total > 0)
"""
    done = run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.stdout.splitlines()[-1] == "True" and "CUDA event" not in done.stderr, done.stdout + done.stderr

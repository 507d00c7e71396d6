"""torch.compile(backend="aot_eager") on dipu: whole graphs that give what eager mode gives, forward and backward."""

import copy
import subprocess
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def fresh(torch: Any) -> Iterator[None]:
    import torch._dynamo.utils as dynamo

    torch.compiler.reset()
    dynamo.counters.clear()
    yield
    torch.compiler.reset()


def attention(torch: Any) -> Any:
    """Causal self-attention with two heads; input (N, length, 16)."""

    class Attention(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inputs, self.output = torch.nn.Linear(16, 48), torch.nn.Linear(16, 16)

        def forward(self, x: Any) -> Any:
            n, length, _ = x.shape
            q, k, v = self.inputs(x).view(n, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.output(y.transpose(1, 2).reshape(n, length, 16))

    return Attention()


def conv_net(torch: Any) -> Any:
    """Input (N, 3, 12, 12)."""
    nn = torch.nn
    first = (nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
    second = (nn.Conv2d(8, 8, 3, groups=2), nn.GroupNorm(2, 8), nn.GELU(), nn.AdaptiveAvgPool2d(2))
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(32, 5))


def mlp(torch: Any) -> Any:
    """Input (N, 8)."""
    nn = torch.nn
    return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.SiLU(), nn.Dropout(0.0), nn.Linear(16, 4))


MODELS = [(mlp, [(4, 8), (6, 8), (9, 8)]), (conv_net, [(2, 3, 12, 12), (4, 3, 12, 12)]), (attention, [(2, 7, 16)])]
DYNAMIC = [(mlp, [(4, 8), (6, 8), (9, 8)]), (attention, [(2, 7, 16), (3, 9, 16), (5, 11, 16)])]


def trained(torch: Any, module: Any, run: Callable[[Any], Any], shapes: list[tuple[int, ...]]) -> list[Any]:
    """Outputs, losses and weights of one training step for each shape."""
    optimizer, found = torch.optim.SGD(module.parameters(), lr=0.1), []
    for seed, shape in enumerate(shapes):
        torch.manual_seed(seed)
        optimizer.zero_grad()
        out = run(torch.randn(shape).to("dipu"))
        loss = out.square().mean()
        loss.backward()
        optimizer.step()
        found += [out.detach().cpu(), loss.detach().cpu()]
    return [*found, *(tensor.cpu().clone() for tensor in module.state_dict().values())]


@pytest.mark.parametrize(
    ("make", "shapes", "dynamic"), [(*row, None) for row in MODELS] + [(*row, True) for row in DYNAMIC]
)
def test_models_train_as_in_eager_mode(
    torch: Any, make: Callable[[Any], Any], shapes: list[tuple[int, ...]], dynamic: bool | None
) -> None:
    torch.manual_seed(0)
    eager = make(torch).to("dipu")
    module = copy.deepcopy(eager)
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    expected, found = trained(torch, eager, eager, shapes), trained(torch, module, compiled, shapes)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    if dynamic:
        assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def in_autocast(torch: Any) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        with torch.autocast("dipu", dtype=torch.bfloat16):
            return (x.view(1, 3) @ x.view(3, 1)).float()

    return run


FUNCTIONS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "factory": lambda t: lambda x: x + t.arange(3, device=x.device),
    "moves": lambda t: lambda x: x.cpu().to("dipu") + x.is_dipu,
    "devices": lambda t: lambda x: x + t.dipu.device_count() + t.dipu.is_available(),
    "abilities": lambda t: lambda x: x + len(t.dipu.get_device_name()) + t.dipu.is_bf16_supported(),
    "accelerator": lambda t: lambda x: x + 1 if t.accelerator.is_available() else x,
    "autocast": in_autocast,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_device_are_traced(torch: Any, name: str) -> None:
    x, function = torch.tensor([1.0, 2.0, 3.0], device="dipu"), FUNCTIONS[name](torch)
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x).cpu(), function(x).cpu())


def test_random_numbers_follow_the_seed(torch: Any) -> None:
    compiled = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5), backend="aot_eager", fullgraph=True)
    x, drawn = torch.ones(64, device="dipu"), []
    for _ in range(2):
        torch.manual_seed(3)
        drawn.append((compiled(x).cpu(), compiled(x).cpu()))
    assert torch.equal(drawn[0][0], drawn[1][0]) and torch.equal(drawn[0][1], drawn[1][1])
    assert not torch.equal(*drawn[0])


def test_checkpointed_code_draws_the_same_random_numbers_again(torch: Any) -> None:
    from torch._functorch._aot_autograd import utils
    from torch.utils.checkpoint import checkpoint

    if not hasattr(utils, "register_graphsafe_rng_device_type"):
        pytest.skip("this torch compiles random operators in checkpoints for devices of its own only")

    def dropped(x: Any) -> Any:
        return torch.nn.functional.dropout(x.sin(), 0.5).cos()

    def run(x: Any) -> Any:
        return checkpoint(dropped, x, use_reentrant=False)

    x = torch.rand(64, device="dipu", requires_grad=True)
    compiled = torch.compile(run, backend="aot_eager", fullgraph=True)
    for _ in range(3):
        x.grad = None
        out = compiled(x)
        torch.rand(3, device="dipu")
        out.sum().backward()
        kept = out != 1  # cos(0) where an element was dropped
        expected = torch.where(kept, -2 * (2 * x.sin()).sin() * x.cos(), torch.zeros_like(x))
        torch.testing.assert_close(x.grad.cpu(), expected.detach().cpu())
        assert 0 < kept.sum().item() < 64


def test_generators_share_a_state_on_request(torch: Any) -> None:
    generator = torch.Generator(device="dipu").manual_seed(7)
    shared, copied = generator.graphsafe_get_state(), generator.clone_state()
    first = torch.rand(4, device="dipu", generator=generator)
    assert torch.equal(shared.get_state(), generator.get_state())
    assert not torch.equal(copied.get_state(), generator.get_state())
    generator.graphsafe_set_state(copied)
    assert torch.equal(torch.rand(4, device="dipu", generator=generator).cpu(), first.cpu())
    with pytest.raises(
        RuntimeError, match="the state of a dipu generator comes from another dipu generator, not from one of cpu"
    ):
        generator.graphsafe_set_state(torch.Generator())


@pytest.mark.parametrize("order", ["import torch._dynamo; {start}", "{start}; import torch._dynamo"])
def test_the_device_is_known_in_either_order(run_python: Run, order: str) -> None:
    start = "import torch_dipu; torch_dipu.start()"
    program = f"""
import sys, torch
{order.format(start=start)}
from torch._dynamo.device_interface import get_interface_for_device
found = [get_interface_for_device(name).__name__ for name in ("dipu", "dipu:0", torch.device("dipu", 0))]
print(found, [finder._name for finder in sys.meta_path if "Watch" in type(finder).__name__])
"""
    done = run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['DipuInterface', 'DipuInterface', 'DipuInterface'] ['torch._inductor.graph']"


def test_torchs_caches_are_told_the_vendor_and_the_device(run_python: Run) -> None:
    done = run_python("""
import torch_dipu
torch_dipu.start()
from torch._dynamo.device_interface import get_interface_for_device
found = get_interface_for_device("dipu")
print(found.get_cache_system_info(), found.get_device_properties().multi_processor_count)
""")
    assert done.stdout.strip() == "{'vendor': 'DROPLET', 'device': 'droplet'} 1"


def test_dicl_is_found_by_torch_distributed_itself() -> None:
    (point,) = entry_points(group="torch.distributed.backends", name="dicl")  # torch 2.15 has others there
    assert point.value == "torch_dipu._distributed:register"


def test_starting_does_not_import_the_compiler(run_python: Run) -> None:
    program = "import sys, torch, torch_dipu; torch_dipu.start(); print('torch._dynamo' in sys.modules)"
    done = run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr


def test_starting_takes_little(run_python: Run) -> None:
    program = """
import time, torch
start = time.perf_counter()
import torch_dipu
torch_dipu.start()
print(time.perf_counter() - start)
"""
    times = [float(run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout) for _ in range(5)]
    assert sorted(times)[1] <= 0.3, times

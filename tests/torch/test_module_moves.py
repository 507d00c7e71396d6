"""A module that moves to dipu, on it and back keeps what torch keeps when it converts a module on the CPU."""

import copy
import weakref
from collections.abc import Callable
from typing import Any

import pytest

MOVES: dict[str, tuple[str, Callable[[Any], Any]]] = {  # where the module is before, and what is done with it
    "on the CPU": ("cpu", lambda module: module.double()),
    "to dipu": ("cpu", lambda module: module.to("dipu")),
    "to dipu in another dtype": ("cpu", lambda module: module.dipu().double()),
    "on dipu": ("dipu", lambda module: module.double()),
    "back": ("dipu", lambda module: module.cpu()),
    "between devices": ("dipu:0", lambda module: module.to("dipu:1")),
    "there and back": ("cpu", lambda module: module.to("dipu").cpu()),
}


@pytest.fixture(params=MOVES)
def started(request: pytest.FixtureRequest) -> str:
    """Where a module is made."""
    return MOVES[request.param][0]


@pytest.fixture
def move(request: pytest.FixtureRequest, started: str) -> Callable[[Any], Any]:
    """What is done with it; `started` chooses."""
    return MOVES[request.node.callspec.params["started"]][1]


def input_of(torch: Any, module: Any, *sizes: int) -> Any:
    """What the module takes where it is now."""
    first = next(module.parameters())
    return torch.ones(*sizes, device=first.device, dtype=first.dtype)


def test_tied_weights_stay_tied(torch: Any, started: str, move: Any) -> None:
    first, second = (torch.nn.Linear(4, 4, device=started) for _ in range(2))
    second.weight = first.weight
    model = torch.nn.Sequential(first, second, torch.nn.ModuleDict({"again": first}))
    weight = first.weight
    move(model)
    assert first.weight is second.weight is weight and len(list(model.parameters())) == 3
    second(first(input_of(torch, model, 2, 4))).sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert torch.equal(first.weight, second.weight)


def test_an_embedding_tied_to_its_output(torch: Any, started: str, move: Any) -> None:
    embedding, output = torch.nn.Embedding(5, 3, device=started), torch.nn.Linear(3, 5, bias=False, device=started)
    output.weight = embedding.weight
    move(torch.nn.Sequential(embedding, output))
    tokens = torch.tensor([0, 1, 4], device=embedding.weight.device)
    output(embedding(tokens)).sum().backward()
    assert output.weight is embedding.weight and embedding.weight.grad.shape == (5, 3)


def test_weak_references_live(torch: Any, started: str, move: Any) -> None:
    module = torch.nn.Linear(4, 4, device=started)
    reference = weakref.ref(module.weight)
    move(module)
    assert reference() is module.weight


def test_a_live_graph(torch: Any, started: str, move: Any) -> None:
    module = torch.nn.Linear(4, 4, device=started)
    loss = module(input_of(torch, module, 2, 4)).sum()
    move(module)
    assert loss.grad_fn is not None and torch.isfinite(loss).item()
    module(input_of(torch, module, 2, 4)).sum().backward()
    assert module.weight.grad.device == module.weight.device and module.weight.grad.dtype == module.weight.dtype


def test_a_state_loaded_with_a_live_graph(torch: Any, started: str, move: Any) -> None:
    module = torch.nn.BatchNorm1d(4, device=started)
    state = {name: torch.full_like(value, 2) for name, value in module.state_dict().items()}
    move(module)
    kept = dict(module.named_parameters()) | dict(module.named_buffers())
    loss = module(input_of(torch, module, 3, 4)).sum()
    module.load_state_dict(state)
    assert all(value is kept[name] for name, value in module.state_dict(keep_vars=True).items())
    assert all(torch.equal(value.cpu().to(state[name].dtype), state[name].cpu()) for name, value in kept.items())
    assert loss.requires_grad


def test_attributes_and_hooks(torch: Any, started: str, move: Any) -> None:
    module = torch.nn.Linear(4, 4, device=started)
    calls: list[str] = []
    module.weight.tag = "mine"
    module.weight.register_hook(lambda grad: calls.append("gradient"))
    module.bias.register_post_accumulate_grad_hook(lambda parameter: calls.append("accumulated"))
    move(module)
    module(input_of(torch, module, 2, 4)).sum().backward()
    assert module.weight.tag == "mine" and sorted(calls) == ["accumulated", "gradient"]


def test_a_hook_that_a_graph_holds(torch: Any, started: str, move: Any) -> None:
    module = torch.nn.Linear(4, 4, device=started)
    calls: list[Any] = []
    module.weight.register_hook(lambda grad: calls.append(grad.device))
    module(input_of(torch, module, 2, 4)).sum().backward()
    move(module)
    module(input_of(torch, module, 2, 4)).sum().backward()
    assert calls[1] == module.weight.device and len(calls) == 2


def test_attributes_of_buffers_after_loading(torch: Any, started: str, move: Any) -> None:
    module = move(torch.nn.BatchNorm1d(4, device=started))
    module.running_mean.tag = "mine"
    module.load_state_dict(module.state_dict())
    assert module.running_mean.tag == "mine"


def test_a_subclass_of_parameters(torch: Any, started: str, move: Any) -> None:
    class Named(torch.nn.Parameter):
        pass

    module = torch.nn.Linear(4, 4, device=started)
    module.weight = Named(module.weight.data)
    module.weight.name_of_it = "w"
    move(module)
    assert type(module.weight) is Named and module.weight.name_of_it == "w"
    module.load_state_dict(copy.deepcopy(module.state_dict()))
    assert type(module.weight) is Named


def test_gradients_move_along(torch: Any, started: str, move: Any) -> None:
    module = torch.nn.Linear(4, 4, device=started)
    module(input_of(torch, module, 2, 4)).sum().backward()
    gradient = module.weight.grad
    move(module)
    assert module.weight.grad is gradient and gradient.device == module.weight.device
    assert gradient.dtype == module.weight.dtype and torch.equal(
        gradient.cpu(), torch.full((4, 4), 2.0).to(gradient.dtype)
    )


def test_an_optimizer_goes_on(torch: Any, started: str, move: Any) -> None:
    module = torch.nn.Linear(4, 4, bias=False, device=started)
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0, momentum=0.5)
    move(module)
    before = module.weight.detach().clone()
    module(input_of(torch, module, 2, 4)).sum().backward()
    optimizer.step()
    torch.testing.assert_close(module.weight.detach(), before - 2)


@pytest.mark.parametrize("name", ["spectral_norm", "weight_norm"])
@pytest.mark.parametrize("parametrized", [False, True])
def test_normalized_weights(torch: Any, started: str, move: Any, name: str, parametrized: bool) -> None:
    owner = torch.nn.utils.parametrizations if parametrized else torch.nn.utils
    module = getattr(owner, name)(torch.nn.Linear(4, 4, device=started))
    module(torch.ones(2, 4, device=started)).sum().backward()
    move(module)
    module(input_of(torch, module, 2, 4)).sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())


def test_empty_memory_with_a_live_graph(torch: Any, started: str) -> None:
    module = torch.nn.Linear(4, 4, device=started)
    weight, loss = module.weight, module(torch.ones(2, 4, device=started)).sum()
    for device in ("dipu", "cpu"):
        module.to_empty(device=device)
        assert module.weight.device.type == device
    assert loss.requires_grad and module.weight is weight


def test_channels_last_with_a_live_graph(torch: Any, started: str, move: Any) -> None:
    module = move(torch.nn.Conv2d(3, 4, 3, device=started))
    weight, loss = module.weight, module(input_of(torch, module, 1, 3, 4, 4)).sum()
    module.to(memory_format=torch.channels_last)
    assert module.weight is weight and weight.is_contiguous(memory_format=torch.channels_last)
    assert torch.isfinite(loss).item()


@pytest.mark.parametrize("made", ["script", "trace"])
def test_scripted_modules(torch: Any, started: str, move: Any, made: str) -> None:
    source = torch.nn.Sequential(torch.nn.Linear(4, 4, device=started), torch.nn.ReLU())
    example = torch.ones(2, 4, device=started)
    module = torch.jit.script(source) if made == "script" else torch.jit.trace(source, example)
    loss = module(torch.ones(2, 4, device=started)).sum()
    move(module)
    result = module(input_of(torch, module, 2, 4))
    assert result.dtype == next(module.parameters()).dtype and loss.requires_grad


def test_an_exported_module(torch: Any, started: str, move: Any) -> None:
    source = torch.nn.Linear(4, 4, device=started)
    torch.export.export(source, (torch.ones(2, 4, device=started),))
    move(source)
    source(input_of(torch, source, 2, 4)).sum().backward()


def test_an_lstm(torch: Any, started: str, move: Any) -> None:
    module = torch.nn.LSTM(4, 3, device=started)
    weights = list(module.parameters())
    move(module)
    module(input_of(torch, module, 2, 1, 4))[0].sum().backward()
    assert all(kept is weight for kept, weight in zip(module.parameters(), weights, strict=True))


def test_an_lstm_under_fake_tensors(torch: Any, started: str, move: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    module = move(torch.nn.LSTM(4, 3, device=started))
    with FakeTensorMode(allow_non_fake_inputs=True):
        result, _ = module(input_of(torch, module, 2, 1, 4))
        made = torch.nn.LSTM(4, 3, device=started)
        made(input_of(torch, made, 2, 1, 4))[0].sum().backward()
    assert result.shape == (2, 1, 3) and result.device == module.weight_ih_l0.device


def test_data_of_a_tensor(torch: Any) -> None:
    source = torch.ones(3, requires_grad=True)
    source.data = source.detach().to("dipu")
    assert source.device.type == "dipu" and source.is_leaf and (source * 2).sum().item() == 6
    (source * 2).sum().backward()
    assert source.grad.device.type == "dipu"
    source.grad = None
    source.data = torch.zeros(3, dtype=torch.float64)
    assert source.device.type == "cpu" and source.tolist() == [0, 0, 0]
    (source * 2).sum().backward()
    assert source.grad.dtype == torch.float64


def test_which_tensors_take_data_of_which(torch: Any) -> None:
    """As on CUDA: dense ones of each other, and none of sparse or meta ones."""
    like = torch._has_compatible_shallow_copy_type
    dense, host, meta = (torch.ones(2, 2, device=device) for device in ("dipu", "cpu", "meta"))
    assert like(dense, host) and like(host, dense) and like(dense, dense) and like(host, host)
    for other in (meta, host.to_sparse(), host.to_sparse_csr(), host.to_mkldnn()):
        assert not like(dense, other) and not like(other, dense)
        with pytest.raises(RuntimeError, match="incompatible tensor type"):
            dense.data = other

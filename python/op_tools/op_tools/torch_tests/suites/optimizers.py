"""Every optimizer of torch.optim: its steps and its state are the CPU's, in each form that it has."""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_optimizers import optim_db, optims
from torch.utils._pytree import tree_leaves

from op_tools.torch_tests.against_cpu import AgainstCpu

DENSE = [info for info in optim_db if not info.only_supports_sparse_grads]
_STEPS = 4


def model(device: str, dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 6)).to(device, dtype)


def parameters(info: Any, network: torch.nn.Module) -> list[torch.Tensor]:
    """Muon wants matrices only."""
    return [p for p in network.parameters() if p.dim() == 2 or info.optim_cls is not torch.optim.Muon]


def settings(info: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, arguments): the database's with each form of the optimizer; what only one device has is left out."""
    forms: list[dict[str, Any]] = [{}, {"foreach": False}]
    forms += [{form: True} for form in info.supported_impls if form in ("foreach", "fused", "differentiable")]
    for given in info.optim_inputs_func("cpu"):
        kwargs = {key: value for key, value in given.kwargs.items() if key not in ("foreach", "fused")}
        if any(isinstance(value, torch.Tensor) for value in kwargs.values()):
            continue
        for form in forms:
            yield f"{given.desc} {form}", {**kwargs, **form}


def shown(info: Any, tensors: Any) -> Any:
    """In single, where the optimizer is LBFGS: it computes in double, as each of its searches grows a rounding."""
    if info.optim_cls is not torch.optim.LBFGS:
        return tensors
    return [t.detach().to(torch.float32) for t in tree_leaves(tensors) if isinstance(t, torch.Tensor)]


def trained(info: Any, device: str, kwargs: dict[str, Any], steps: int = _STEPS) -> tuple[Any, Any]:
    network = model(device, torch.float64 if info.optim_cls is torch.optim.LBFGS else torch.float32)
    optimizer = info.optim_cls(parameters(info, network), **kwargs)
    return network, advance(network, optimizer, device, steps)


def advance(network: Any, optimizer: Any, device: str, steps: int) -> Any:
    source = torch.linspace(-1, 1, 20).reshape(5, 4).to(device, network[0].weight.dtype)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (network(source) - 0.3).square().sum()
        loss.backward()
        return loss

    with torch.set_grad_enabled(True):
        for _ in range(steps):
            if optimizer.defaults.get("differentiable"):
                closure()
                with torch.no_grad():
                    optimizer.step()
            else:
                optimizer.step(closure)
    return optimizer


class TestOptimizers(AgainstCpu):
    @optims(DENSE, dtypes=[torch.float32])
    def test_steps(self, device: str, dtype: torch.dtype, optim_info: Any) -> None:
        def program(d: str, kwargs: dict[str, Any]) -> Any:
            network, optimizer = trained(optim_info, d, kwargs)
            state = {} if optim_info.optim_cls is torch.optim.LBFGS else optimizer.state_dict()["state"]
            return shown(optim_info, list(network.parameters())), state

        self.all_same(device, [(name, lambda d, k=kwargs: program(d, k)) for name, kwargs in settings(optim_info)])

    @optims(DENSE, dtypes=[torch.float32])
    def test_state_goes_on(self, device: str, dtype: torch.dtype, optim_info: Any) -> None:
        def program(d: str) -> Any:
            network, optimizer = trained(optim_info, d, {}, 2)
            other = copy.deepcopy(network)
            again = optim_info.optim_cls(parameters(optim_info, other))
            again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
            advance(other, again, d, 2)
            advance(network, optimizer, d, 2)
            return shown(optim_info, [*network.parameters(), *other.parameters()])

        self.same(device, program)

    @optims(DENSE, dtypes=[torch.float32])
    def test_state_of_the_cpu_moves(self, device: str, dtype: torch.dtype, optim_info: Any) -> None:
        def program(d: str) -> Any:
            network, optimizer = trained(optim_info, "cpu", {}, 2)
            other = copy.deepcopy(network).to(d)
            again = optim_info.optim_cls(parameters(optim_info, other))
            again.load_state_dict(optimizer.state_dict())
            return list(advance(other, again, d, 2).state_dict()["state"]), shown(optim_info, list(other.parameters()))

        self.same(device, program)


class TestSchedulesAndScaling(AgainstCpu):
    def test_learning_rate_as_a_tensor(self, device: str) -> None:
        def program(d: str, cls: Any) -> Any:
            network = model(d)
            optimizer = cls(network.parameters(), lr=torch.tensor(0.05))
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
            for _ in range(3):
                advance(network, optimizer, d, 1)
                schedule.step()
            return list(network.parameters()), float(optimizer.param_groups[0]["lr"])

        kinds = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)
        self.all_same(device, [(cls.__name__, lambda d, c=cls: program(d, c)) for cls in kinds])

    def test_groups_and_no_gradient(self, device: str) -> None:
        def program(d: str) -> Any:
            network = model(d)
            network[0].weight.requires_grad_(False)
            groups = [{"params": network[0].parameters(), "lr": 0.5}, {"params": network[2].parameters()}]
            optimizer = torch.optim.AdamW(groups, lr=0.01)
            advance(network, optimizer, d, 3)
            return list(network.parameters()), sorted(optimizer.state_dict()["state"])

        self.same(device, program)

    def test_low_precision_parameters(self, device: str) -> None:
        def program(d: str, dtype: torch.dtype, form: dict[str, bool]) -> Any:
            network = model(d).to(dtype)
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, **form)
            for parameter in network.parameters():
                parameter.grad = torch.ones_like(parameter)
            optimizer.step()
            optimizer.step()
            return list(network.parameters())

        self.all_same(
            device,
            [
                (f"{dtype} {form}", lambda d, a=(dtype, form): program(d, *a))
                for dtype in (torch.bfloat16, torch.float16, torch.float64)
                for form in ({"foreach": False}, {"foreach": True})
            ],
        )


instantiate_device_type_tests(TestOptimizers, globals(), allow_mps=True, allow_xpu=True)
instantiate_device_type_tests(TestSchedulesAndScaling, globals(), allow_mps=True, allow_xpu=True)

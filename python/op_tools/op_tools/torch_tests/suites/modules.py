"""Every module of torch.nn: forward, gradients, state, and the ways of moving it, against the same on the CPU."""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_modules import module_db, modules
from torch.utils._pytree import tree_leaves, tree_map

from op_tools.torch_tests.against_cpu import AgainstCpu, moved


def put(values: Any, device: str) -> Any:
    """The values with tensors of their own on the device."""
    return tree_map(
        lambda v: v.detach().clone().to(device).requires_grad_(v.requires_grad) if isinstance(v, torch.Tensor) else v,
        values,
    )


def cases(info: Any, dtype: torch.dtype, training: bool) -> Iterator[tuple[str, torch.nn.Module, Any, Any]]:
    """(name, module, args, kwargs) of each of the database's inputs, on the CPU; each with its own seed."""
    torch.manual_seed(0)
    for number, given in enumerate(info.module_inputs_func(info, "cpu", dtype, True, training)):
        if given.forward_input is None:
            continue
        made = given.constructor_input
        kwargs = dict(made.kwargs)
        module = info.module_cls(*made.args, **kwargs).to(dtype).train(training)
        yield f"{number} {given.desc}", module, given.forward_input.args, given.forward_input.kwargs


def draws(module: torch.nn.Module) -> bool:
    """Whether the module draws random numbers when it is trained; devices draw their own."""
    return any(
        getattr(part, "dropout", 0)
        or isinstance(part, torch.nn.modules.dropout._DropoutNd | torch.nn.RReLU)
        or type(part).__name__.startswith("FractionalMaxPool")
        for part in module.modules()
    )


def uninitialized(module: torch.nn.Module) -> bool:
    """Whether the first input makes parameters, whose random values each device draws for itself."""
    return any(isinstance(p, torch.nn.parameter.UninitializedTensorMixin) for p in module.parameters())


class TestModules(AgainstCpu):
    @modules(module_db, allowed_dtypes=(torch.float32,))
    def test_forward_and_gradients(self, device: str, dtype: torch.dtype, module_info: Any, training: bool) -> None:
        def program(d: str, module: torch.nn.Module, args: Any, kwargs: Any) -> Any:
            mine, (args, kwargs) = moved(module, d), put((args, kwargs), d)
            result = mine(*args, **kwargs)
            if (draws(module) and training) or uninitialized(module):
                return [tuple(t.shape) for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
            outputs = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
            leaves = [t for t in (*tree_leaves((args, kwargs)), *mine.parameters()) if getattr(t, "requires_grad", 0)]
            found = []
            if outputs and leaves:
                total = sum((t * torch.linspace(0.5, 1, t.numel(), device=d).reshape(t.shape)).sum() for t in outputs)
                found = list(torch.autograd.grad(total, leaves, allow_unused=True))
            return result, found, list(mine.buffers())

        self.all_same(
            device,
            [
                (name, lambda d, m=module, a=args, k=kwargs: program(d, m, a, k))
                for name, module, args, kwargs in cases(module_info, dtype, training)
            ],
        )

    @modules(module_db, allowed_dtypes=(torch.float32,))
    def test_state(self, device: str, dtype: torch.dtype, module_info: Any, training: bool) -> None:
        def program(d: str, module: torch.nn.Module) -> Any:
            mine = moved(module, d)
            state = {name: value.clone() for name, value in mine.state_dict().items() if value is not None}
            other = copy.deepcopy(mine)
            with torch.no_grad():
                for parameter in other.parameters():
                    parameter.zero_()
            missing = other.load_state_dict(state, strict=False)
            devices = {value.device.type == torch.device(d).type for value in state.values()}
            back = copy.deepcopy(other).to("cpu").state_dict()
            return list(state), other.state_dict(), list(missing.missing_keys), devices, back, other.training

        programs = [
            (name, lambda d, m=module: program(d, m))
            for name, module, _, _ in cases(module_info, dtype, training)
            if not uninitialized(module)
        ]
        if programs:
            self.all_same(device, programs)

    @modules(module_db, allowed_dtypes=(torch.float32,))
    def test_moved(self, device: str, dtype: torch.dtype, module_info: Any, training: bool) -> None:
        def program(d: str, module: torch.nn.Module) -> Any:
            mine = copy.deepcopy(module)
            before = {name: id(value) for name, value in mine.named_parameters()}
            mine.to(d)
            same = {name: id(value) == before[name] for name, value in mine.named_parameters()}
            halved = copy.deepcopy(mine).to(torch.float64).to(d, torch.bfloat16)
            kinds = [(str(v.dtype), v.is_leaf, v.requires_grad) for v in halved.parameters()]
            return same, kinds, list(mine.to("cpu").parameters())

        programs = [
            (name, lambda d, m=module: program(d, m))
            for name, module, _, _ in cases(module_info, dtype, training)
            if not uninitialized(module)
        ]
        if programs:
            self.all_same(device, programs)


class TestModuleRules(AgainstCpu):
    def test_tied_weights_stay_tied(self, device: str) -> None:
        def program(d: str) -> Any:
            first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
            second.weight = first.weight
            both = torch.nn.Sequential(first, second).to(d)
            both(torch.ones(2, 3, device=d)).sum().backward()
            return both[0].weight is both[1].weight, both[0].weight.grad, len(list(both.parameters()))

        self.same(device, program)

    def test_made_on_the_device(self, device: str) -> None:
        def program(d: str) -> Any:
            with torch.device(d):
                layer = torch.nn.Linear(3, 2)
                table = torch.nn.Embedding(4, 3)
            later = torch.nn.Linear(3, 2, device="meta").to_empty(device=d)
            with torch.no_grad():
                later.weight.fill_(1)
                later.bias.fill_(2)
            kinds = {str(p.device.type) == torch.device(d).type for m in (layer, table) for p in m.parameters()}
            return kinds, later(table(torch.tensor([1, 2], device=d)) * 0 + 1)

        self.same(device, program)

    def test_hooks_and_parametrizations(self, device: str) -> None:
        def program(d: str) -> Any:
            torch.manual_seed(0)
            layer = moved(torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 3)), d)
            seen: list[str] = []
            layer.register_forward_pre_hook(lambda m, args: seen.append("before"))
            layer.register_forward_hook(lambda m, args, out: out * 2)
            layer.register_full_backward_hook(lambda m, into, out: seen.append("back"))
            source = torch.ones(2, 3, device=d, requires_grad=True)
            total = layer(source).sum()
            total.backward()
            norm = torch.nn.utils.clip_grad_norm_(layer.parameters(), 0.5)
            flat = torch.nn.utils.parameters_to_vector(layer.parameters())
            return seen, total, norm, flat, [p.grad for p in layer.parameters()]

        self.same(device, program)


instantiate_device_type_tests(TestModules, globals(), allow_mps=True, allow_xpu=True)
instantiate_device_type_tests(TestModuleRules, globals(), allow_mps=True, allow_xpu=True)

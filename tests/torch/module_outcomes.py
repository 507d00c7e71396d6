"""What torch's own modules do on the CPU, as JSON: the program of test_bystanders.py, run with the backend and without.

    python tests/torch/module_outcomes.py FIRST STEP

takes each STEP-th of torch's module tests (torch.testing._internal.common_modules) from the FIRST on. For each of its
inputs a module is made, converted, loaded, copied and trained, with a graph that lives meanwhile.
"""

import copy
import hashlib
import io
import itertools
import json
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.common_modules import module_db


def _digest(value: Any) -> str:
    """Tensors by their bits, everything else by its text."""
    parts = hashlib.sha256()
    for each in torch.utils._pytree.tree_leaves(value):
        if isinstance(each, torch.Tensor):
            each = each.detach()
            each = each.to_dense() if each.layout is not torch.strided else each
            parts.update(f"{each.dtype} {tuple(each.shape)} {each.stride()}".encode())
            parts.update(bytes(each.contiguous().reshape(-1).view(torch.uint8).tolist()))
        else:
            parts.update(repr(each).encode())
    return parts.hexdigest()[:16]


def _trained(module: Any, arguments: Any) -> str:
    """The outputs and gradients of one step."""
    torch.manual_seed(1)
    module.zero_grad()
    outputs = module(*arguments.args, **arguments.kwargs)
    leaves = [each for each in torch.utils._pytree.tree_leaves(outputs) if isinstance(each, torch.Tensor)]
    differentiable = [each for each in leaves if each.requires_grad]
    if differentiable:
        sum(each.abs().sum() for each in differentiable).backward()
    return _digest([leaves, [parameter.grad for parameter in module.parameters()]])


def _stepped(module: Any, arguments: Any) -> str:
    _trained(module, arguments)
    torch.optim.SGD([*module.parameters(), torch.zeros(1)], lr=0.01, momentum=0.9).step()
    return _digest(module.state_dict())


def _converted(module: Any, arguments: Any) -> Any:
    """Which objects are the same after a conversion, while a graph and weak references to its parameters live."""
    parameters = list(module.parameters())
    references = [weakref.ref(parameter) for parameter in parameters]
    for parameter in parameters:
        parameter.tag = "kept"
    graph = module(*arguments.args, **arguments.kwargs)
    module.double().float()
    now = list(module.parameters())
    kept = [parameter is before for parameter, before in zip(now, parameters, strict=True)]
    return kept, [hasattr(each, "tag") for each in now], [each() is not None for each in references], _digest(graph)


def _loaded(module: Any, arguments: Any) -> str:
    graph = module(*arguments.args, **arguments.kwargs)
    module.load_state_dict(copy.deepcopy(module.state_dict()))
    return _digest([graph, module.state_dict()])


def _saved(module: Any, arguments: Any) -> str:
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return _digest(torch.load(file, weights_only=False).state_dict())


def _emptied(module: Any, arguments: Any) -> Any:
    module.to("meta").to_empty(device="cpu")
    return [(parameter.device.type, type(parameter).__name__, parameter.shape) for parameter in module.parameters()]


_USES: tuple[Callable[[Any, Any], Any], ...] = (_trained, _stepped, _converted, _loaded, _saved, _emptied)


def outcomes(first: int, step: int) -> Iterator[tuple[str, str]]:
    """Name and outcome, which is a digest or an error, of each use of each input of each module."""
    for info in module_db[first::step]:
        for training in (True, False):
            torch.manual_seed(0)
            inputs = info.module_inputs_func(
                info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
            )
            for index, (source, use) in enumerate(itertools.product(inputs, _USES)):
                if source.forward_input is None:
                    continue
                name = f"{info.name} {index // len(_USES)} {'training' if training else 'evaluation'} {use.__name__}"
                yield name, _outcome(info, source, training, use)


def _outcome(info: Any, source: Any, training: bool, use: Callable[[Any, Any], Any]) -> str:
    torch.manual_seed(0)
    try:
        module = info.module_cls(*source.constructor_input.args, **source.constructor_input.kwargs).train(training)
        return str(use(module, copy.deepcopy(source.forward_input)))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print(json.dumps(dict(outcomes(int(sys.argv[1]), int(sys.argv[2])))))

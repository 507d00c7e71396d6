"""Keeps what the modules of a model are given and give: forward, backward, gradients of weights, weights."""

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import torch
from torch.utils._pytree import tree_map_only
from torch.utils.weak import WeakIdKeyDictionary

from op_tools.clean_state import clean_state
from op_tools.module_paths import ModulePaths, plain
from op_tools.modules.fixed_inputs import Fixed, FixedInputs
from op_tools.phases import BACKWARD, phase
from op_tools.results import results_folder
from op_tools.store.recording import DEFAULT, GRADIENTS, MODULE, WEIGHTS, WHOLE, RecordingWriter
from op_tools.values import tensors_in

Label = tuple[str, int, str]  # a module, which of its runs, a place among what it is given or gives
Places = dict[str, torch.Tensor]

INITIAL, GRADIENT, UPDATED = "initial", "gradient", "updated"  # what a line on weights tells
_ROWS = 20
_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


class ModuleRecord:
    """Appends lines to `folder` (op_tools_results/op_record_results unless given) for each run of each module: what it
    was given and gave, and in backward the gradients of both; for the weights their first values, their gradients and
    what the optimizer made of them. `op-tools compare-runs` compares two such folders.

    `with ModuleRecord(): ...`, or start() and stop() (end() is the same). It ends by itself with the first model that
    runs after `iterations` steps of an optimizer. Tensors of up to `whole` elements are kept, of larger ones a sketch.

    `fixed_to` is a folder that another run recorded: each module then gets that run's inputs, and in backward that
    run's gradients, in place of its own, so that what it gives shows its own error and none of the modules before it.

    `left` counts what was not recorded, with the reason. A module that runs again in backward (checkpointing) is
    recorded as it ran first. Raises BadRecording for `fixed_to` that holds no modules.
    """

    def __init__(
        self,
        *,
        folder: str | Path | None = None,
        whole: int = WHOLE,
        iterations: int = 1,
        fixed_to: str | Path | None = None,
    ) -> None:
        self.writer = RecordingWriter(results_folder() / DEFAULT if folder is None else Path(folder), whole=whole)
        self.left: Counter[tuple[str, str]] = Counter()
        self._fixed = None if fixed_to is None else FixedInputs(Path(fixed_to), self.left)
        self._iterations = iterations
        self._paths = ModulePaths()
        self._lock = threading.Lock()
        self._runs: Counter[str] = Counter()
        self._steps: Counter[int] = Counter()  # by optimizer
        self._weights: set[str] = set()
        self._labels: Any = WeakIdKeyDictionary()  # of tensors whose gradient is listened to
        self._undo: list[Callable[[], None]] = []

    def start(self) -> Self:
        if self._undo:
            return self
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        self._steps.clear()
        stance = torch.compiler.set_stance("force_eager")
        self._paths.start()
        own = torch.nn.Module.__call__

        def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            return self._run(own, module, args, kwargs)

        torch.nn.Module.__call__ = call  # type: ignore[method-assign]
        self._undo = [
            register_optimizer_step_pre_hook(self._before_step).remove,
            register_optimizer_step_post_hook(self._after_step).remove,
            lambda: setattr(torch.nn.Module, "__call__", own),
            self._paths.stop,
            lambda: stance.__exit__(None, None, None),
        ]
        return self

    def stop(self) -> None:
        for undo in self._undo:
            undo()
        self._undo = []

    end = stop

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def summary(self) -> list[str]:
        """Lines for people."""
        left = [f"  {name}: {reason} ({count})" for (name, reason), count in self.left.most_common(_ROWS)]
        return [f"modules: {sum(self._runs.values())} runs of {len(self._runs)} modules in {self.writer.root}", *left]

    # Forward

    def _run(self, own: Any, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        path = self._path(module)
        if path is None:
            return own(module, *args, **kwargs)
        if not path:
            self._note_weights(module)
        with self._lock:
            number = self._runs[path]
            self._runs[path] += 1
        args, kwargs, given = self._given(path, number, args, kwargs)
        if odd := _odd(given):
            self.left[path, odd] += 1
            return own(module, *args, **kwargs)
        with clean_state():
            inputs = self.writer.held(given)
        state = _random_state()
        results = own(module, *args, **kwargs)
        gave = dict(tensors_in(results, "result"))
        if odd := _odd(gave):
            self.left[path, odd] += 1
            return results
        with clean_state():
            outputs = self.writer.held(gave)
        line = {"kind": MODULE, "module": path, "class": type(module).__name__, "number": number}
        self.writer.append({**line, "random": state != _random_state(), "inputs": inputs, "outputs": outputs})
        for place, tensor in gave.items():
            self._listen(tensor, (path, number, place))
        return results

    def _path(self, module: torch.nn.Module) -> str | None:
        """Of a module that is recorded now."""
        if not self._paths.is_inside and max(self._steps.values(), default=0) >= self._iterations:
            self.stop()
        return self._paths.path_of(module) if self._undo and phase() != BACKWARD else None

    def _given(
        self, path: str, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], Places]:
        """The arguments as the module gets them, and their tensors by place. Those that need gradients are views of
        their own, whose gradients are what this module alone makes of its results'."""
        places: Places = {**dict(tensors_in(args, "args")), **dict(tensors_in(kwargs))}
        own: dict[int, torch.Tensor] = {}
        for place, tensor in places.items():
            if id(tensor) not in own:
                own[id(tensor)] = self._own(tensor, (path, number, place))
        args, kwargs = tree_map_only(torch.Tensor, lambda tensor: own.get(id(tensor), tensor), (args, kwargs))
        return args, kwargs, {place: own[id(tensor)] for place, tensor in places.items()}

    def _own(self, tensor: torch.Tensor, label: Label) -> torch.Tensor:
        fixed = None if self._fixed is None else self._fixed.input(label, tensor)
        listened = tensor.requires_grad and torch.is_grad_enabled()
        if fixed is None and not listened:
            return tensor
        found: torch.Tensor = tensor.view_as(tensor) if fixed is None else Fixed.apply(tensor, fixed)  # type: ignore[no-untyped-call, unused-ignore]
        self._listen(found, label)
        return found

    # Backward

    def _listen(self, tensor: torch.Tensor, label: Label) -> None:
        """Has the gradient of a tensor recorded; of one that several modules give, for the outermost first."""
        if not tensor.requires_grad or not torch.is_grad_enabled():
            return
        version, labels, _ = self._labels.get(tensor, (None, [], None))
        if version == tensor._version:  # else it was written since, and has another gradient
            labels.insert(0, label)
            return
        labels = [label]
        # The node keeps its hooks, whatever is written into the tensor later.
        edge = torch.autograd.graph.get_gradient_edge(tensor)
        node, output = edge.node, edge.output_nr
        self._labels[tensor] = tensor._version, labels, edge

        def before(gradients: tuple[torch.Tensor | None, ...]) -> tuple[torch.Tensor | None, ...] | None:
            gradient = gradients[output]
            fixed = None if gradient is None else self._heard(labels, gradient)
            return None if fixed is None else (*gradients[:output], fixed, *gradients[output + 1 :])

        node.register_prehook(before)

    def _heard(self, labels: list[Label], gradient: torch.Tensor) -> torch.Tensor | None:
        """The gradient to go on with, where it is another one."""
        if not self._undo or _odd({"gradient": gradient}):
            return None
        given_back = [label for label in labels if label[2].startswith("result")]
        fixed = self._fixed.gradient(given_back[-1], gradient) if self._fixed is not None and given_back else None
        with clean_state():
            held = self.writer.held({"gradient": gradient if fixed is None else fixed})
        for path, number, place in labels:
            self.writer.append({"kind": GRADIENTS, "module": path, "number": number, "place": place, **held})
        return fixed

    # Weights

    def _note_weights(self, model: torch.nn.Module) -> None:
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            if name not in self._weights and not _odd({name: tensor}):
                self._weights.add(name)
                self._append_weight(INITIAL, plain(name), tensor)

    def _before_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._append_weights(GRADIENT, optimizer, lambda parameter: parameter.grad)

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._append_weights(UPDATED, optimizer, lambda parameter: parameter)
        self._steps[id(optimizer)] += 1

    def _append_weights(
        self,
        what: str,
        optimizer: torch.optim.Optimizer,
        tensor_of: Callable[[torch.nn.Parameter], torch.Tensor | None],
    ) -> None:
        for group, entry in enumerate(optimizer.param_groups):
            for index, parameter in enumerate(entry["params"]):
                name = self._paths.name_of(parameter) or f"group{group}.parameter{index}"
                tensor = tensor_of(parameter) if parameter.grad is not None else None
                if tensor is not None and not _odd({name: tensor}):
                    self._append_weight(what, name, tensor, self._steps[id(optimizer)])

    def _append_weight(self, what: str, name: str, tensor: torch.Tensor, step: int = 0) -> None:
        with clean_state():
            held = self.writer.held({"tensor": tensor})
        self.writer.append({"kind": WEIGHTS, "what": what, "name": name, "step": step, **held})


def _random_state() -> tuple[bytes, ...]:
    """Of the generators that modules draw from."""
    states = [torch.random.get_rng_state()]
    if torch.accelerator.is_available():
        module = torch.get_device_module()
        if hasattr(module, "get_rng_state"):
            states.append(module.get_rng_state())
    return tuple(bytes(state.numpy()) for state in states)


def _odd(places: Places) -> str:
    """Why such tensors are not recorded; empty where they are."""
    for tensor in places.values():
        if type(tensor) not in _PLAIN:
            return f"a tensor of {type(tensor).__name__}"
        if tensor.device.type == "meta" or tensor.layout is not torch.strided or tensor.is_quantized:
            return f"a tensor on {tensor.device.type} with layout {tensor.layout}"
    return ""

"""Where in the program's modules a call stands, and what the program calls its tensors.

Names are those of `named_modules()` below the outermost module that runs, without what wrappers put before them
(`module.`, `_orig_mod.`): a model has the same names alone and in DistributedDataParallel.
"""

import threading
import weakref
from bisect import bisect_right
from typing import Any

import torch

_WRAPPERS = frozenset({"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})
_MOST = 1 << 20  # sequence numbers that are kept

Place = tuple[str, str]  # a module's path, a line of the program


class _Stack(threading.local):
    def __init__(self) -> None:
        self.modules: list[str] = []
        self.names: weakref.WeakKeyDictionary[torch.nn.Module, str] = weakref.WeakKeyDictionary()


class ModulePaths:
    """Follows, while it is on, which module runs in each thread."""

    def __init__(self) -> None:
        self._stack = _Stack()
        self._handles: list[Any] = []
        self._tensors: dict[tuple[int, int, int], str] = {}
        self._forward: dict[int, Place] = {}  # by sequence number
        self._numbers: list[int] = []

    def start(self) -> None:
        from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
            register_optimizer_step_pre_hook(self._optimizes),
        ]

    def stop(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._stack = _Stack()

    @property
    def path(self) -> str:
        """Of the innermost module that runs, e.g. "layers.0.query"; empty in the outermost, and outside."""
        return self._stack.modules[-1] if self._stack.modules else ""

    @property
    def is_inside(self) -> bool:
        """Whether this thread runs a module."""
        return bool(self._stack.modules)

    def path_of(self, module: torch.nn.Module) -> str | None:
        """Of a module that is about to run: empty for an outermost one; None for one that is no part of that, and for
        what only stands around a model."""
        if not self._stack.modules:
            return ""
        path = self._stack.names.get(module)
        return None if path == self.path else path

    def name_of(self, tensor: torch.Tensor) -> str:
        """Of a parameter, a buffer or an optimizer's state, e.g. "layers.0.query.weight"; empty for others."""
        return self._tensors.get(_identity(tensor), "")

    def note_forward(self, location: str) -> None:
        """Remembers where the node of the graph was made that belongs to the operator that runs now."""
        number = torch.autograd._get_sequence_nr() - 1  # type: ignore[attr-defined]
        if number >= 0 and number not in self._forward:
            self._forward[number] = (self.path, location)
            if not self._numbers or self._numbers[-1] < number:
                self._numbers.append(number)
        if len(self._numbers) > _MOST:
            for old in self._numbers[: _MOST // 2]:
                self._forward.pop(old, None)
            self._numbers = self._numbers[_MOST // 2 :]

    def of_backward(self, number: int | None) -> Place:
        """Where the forward of a node stands; that of the node before it where nobody saw its own."""
        if number is None:
            return "", ""
        found = self._forward.get(number)
        if found is None and (index := bisect_right(self._numbers, number)):
            found = self._forward.get(self._numbers[index - 1])
        return found or ("", "")

    def _enter(self, module: torch.nn.Module, _: Any) -> None:
        stack = self._stack
        if not stack.modules:
            for name, part in module.named_modules():
                stack.names[part] = plain(name)
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                self._name(tensor, plain(name))
        stack.modules.append(stack.names.get(module, stack.modules[-1] if stack.modules else ""))

    def _leave(self, module: torch.nn.Module, _: Any, __: Any) -> None:
        if self._stack.modules:
            self._stack.modules.pop()

    def _optimizes(self, optimizer: torch.optim.Optimizer, _: Any, __: Any) -> None:
        for group, entry in enumerate(optimizer.param_groups):
            for index, parameter in enumerate(entry["params"]):
                name = self.name_of(parameter) or f"group{group}.parameter{index}"
                self._name(parameter, name)
                for key, state in optimizer.state.get(parameter, {}).items():
                    if isinstance(state, torch.Tensor):
                        self._name(state, f"{name}.{key}")

    def _name(self, tensor: torch.Tensor, name: str) -> None:
        if identity := _identity(tensor):
            self._tensors[identity] = name


def plain(name: str) -> str:
    """A module's name without wrappers, e.g. "layers.0" of "module.layers.0"."""
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def _identity(tensor: torch.Tensor) -> Any:
    if tensor.layout is not torch.strided or isinstance(tensor, torch.nn.UninitializedParameter):
        return ()
    try:
        return (tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.numel())
    except RuntimeError:  # a subclass without memory of its own
        return ()

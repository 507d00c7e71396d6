"""The one dispatch mode behind all tools, and the label that says which function of torch the program called.

Each thread has its own mode. It is there while a tool is on in the thread, whatever other modes come and go meanwhile.
Threads that start while a tool is on get it, too, until they end; a forked process does not.
"""

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import count
from typing import Any, Protocol

import torch
from torch._C._dynamo import eval_frame
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from op_tools.calls import OperatorCall
from op_tools.overloads import Overload, overload_of

Proceed = Callable[[OperatorCall], Any]
# Runs one call: its number, in the order of beginnings over all threads, its arguments and those by name.
Run = Callable[[int, tuple[Any, ...], dict[str, Any]], Any]

_numbers = count()


class Interceptor(Protocol):
    """What a tool is to the mode."""

    @property
    def layer(self) -> int:
        """Those with small numbers are around those with greater ones."""

    @property
    def wants_label(self) -> bool:
        """Whether it looks at `OperatorCall.function`."""

    def selects(self, overload: Overload, function: str) -> bool:
        """Whether it looks at such calls."""

    def bound(self, overload: Overload, function: str, proceed: Run) -> Run:
        """What it does around each call of `overload` from `function`; `proceed` runs the call."""


class _Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, tools: tuple[Interceptor, ...], labels: "_Labels | None") -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.tools = tools
        self.labels = labels
        # By function of torch, then by the overload's id: an overload is never freed, and slow to hash.
        self._unlabelled: dict[int, Run | None] = {}
        self._chosen: dict[Any, dict[int, Run | None]] = {None: self._unlabelled}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch would wrap the method below, and import its compiler at the first call."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        labels = self.labels
        try:
            run = (self._unlabelled if labels is None else self._chosen[labels.label])[id(func)]
        except (KeyError, TypeError):  # not seen yet; a label that is not hashable
            run = self._choose(func, None if labels is None else labels.label)
        if run is None:
            return func(*args, **kwargs) if kwargs else func(*args)
        return run(next(_numbers), args, kwargs or {})

    def _choose(self, func: Any, label: Any) -> Run | None:
        run = self._chain(overload_of(func), function_name(label) if label is not None else "")
        with suppress(TypeError):
            self._chosen.setdefault(label, {})[id(func)] = run
        return run

    def _chain(self, overload: Overload, function: str) -> Run | None:
        """The tools for a call, the outermost first; None where there are none."""
        run: Run | None = None
        for tool in reversed(self.tools):
            if tool.selects(overload, function):
                run = tool.bound(overload, function, run or Itself(overload))
        return run


# Tools are not compiled, whatever they look at, nor is what they call.
_skipped = eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.SKIP)
eval_frame.set_code_exec_strategy(_Mode.__torch_dispatch__.__code__, _skipped)


class Itself:
    """The operator, as the innermost thing that runs."""

    __slots__ = ("operator",)

    def __init__(self, overload: Overload) -> None:
        self.operator = overload.function._op  # without what OpOverload's own __call__ adds

    def __call__(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.operator(*args, **kwargs)


class _Labels(TorchFunctionMode):
    """Notes the outermost function of torch while it runs: also for autograd's threads, which work for the thread that
    is in it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.label: Any = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.label is not None:
            return func(*args, **(kwargs or {}))
        self.label = func
        try:
            return func(*args, **kwargs) if kwargs else func(*args)
        finally:
            self.label = None


def function_name(func: Any) -> str:
    """The public name of a function of torch, e.g. "torch.nn.functional.linear", "torch.Tensor.add_"."""
    try:
        return _resolved(func)
    except TypeError:  # not hashable
        return _resolved.__wrapped__(func)


@cache
def _resolved(func: Any) -> str:
    name: str = resolve_name(func) or getattr(func, "__name__", "")
    return "" if "__get__" in name or "__set__" in name else name  # properties compute nothing


class _Modes:
    """What is in force in a thread."""

    def __init__(self) -> None:
        self.tools: tuple[Interceptor, ...] = ()
        self.mode: _Mode | None = None
        self.labels: _Labels | None = None

    def set(self, tools: tuple[Interceptor, ...]) -> None:
        labelled = any(tool.wants_label for tool in tools)
        old_mode, old_labels = self.mode, self.labels
        self.tools = tools
        self.labels = (old_labels or _Labels()) if labelled else None
        self.mode = _Mode(tools, self.labels) if tools else None
        _exchange_modes(old_mode, self.mode)
        if old_labels is not self.labels:
            _exchange_labels(old_labels, self.labels)

    def __del__(self) -> None:
        """Python runs it in the thread that ends, before others have joined it. Torch would let go of the modes later,
        and end the process if the interpreter ends meanwhile.
        """
        if self.tools and not sys.is_finalizing():
            self.set(())


class _Thread(threading.local):
    def __init__(self) -> None:
        self.modes = _Modes()


_thread = _Thread()


def add(tool: Interceptor) -> None:
    """Puts `tool` into force in this thread. Raises RuntimeError if it is in force already."""
    modes = _thread.modes
    if tool in modes.tools:
        raise RuntimeError("the tool is on in this thread already; stop it first, or make another")
    modes.set(tuple(sorted((*modes.tools, tool), key=lambda one: one.layer)))


def remove(tool: Interceptor) -> None:
    """Takes `tool` out of force in this thread; nothing where it is not."""
    modes = _thread.modes
    if tool in modes.tools:
        modes.set(tuple(one for one in modes.tools if one is not tool))


def active() -> tuple[Interceptor, ...]:
    """The tools in force in this thread."""
    return _thread.modes.tools


# What a mode notes of the modes around it when it is entered, and restores when it is left.
_FLAGS = (
    "old_dispatch_mode_flags",
    "old_non_infra_dispatch_mode_flags",
    "old_without_ignore_compile_internals_dispatch_mode_flags",
)


def _exchange_modes(old: Any, new: Any) -> None:
    """Puts `new` where `old` is in torch's stack of dispatch modes; modes that were entered after it stay above."""
    above = []
    if old is not None:
        while (top := _python_dispatch._pop_mode()) is not old:
            above.append(top)
        _python_dispatch._push_mode(old)
        around = {name: getattr(old, name)[-1] for name in _FLAGS if getattr(old, name, None)}
        old.__exit__(None, None, None)
        for name, flag in around.items() if above else ():
            getattr(above[-1], name)[-1] = flag or new is not None
    if new is not None:
        new.__enter__()
    for mode in reversed(above):
        _python_dispatch._push_mode(mode)


def _exchange_labels(old: Any, new: Any) -> None:
    """The same in torch's stack of function modes, which keep no flags."""
    above = []
    if old is not None:
        while (top := torch._C._pop_torch_function_stack()) is not old:
            above.append(top)
    if new is not None:
        torch._C._push_on_torch_function_stack(new)
    for mode in reversed(above):
        torch._C._push_on_torch_function_stack(mode)


class ThreadWatch:
    """While it is on, threads that start get the tools that are in force in the thread that started it."""

    def __init__(self) -> None:
        self._tools: dict[Interceptor, None] = {}
        self._lock = threading.Lock()

    def add(self, tool: Interceptor) -> None:
        with self._lock:
            if not self._tools:
                threading.setprofile(self._first_event)
            self._tools[tool] = None

    def remove(self, tool: Interceptor) -> None:
        with self._lock:
            if self._tools.pop(tool, tool) is None and not self._tools:
                threading.setprofile(None)

    def _first_event(self, *_: Any) -> None:
        sys.setprofile(None)  # it has done its work, and profiling is slow
        for tool in tuple(self._tools):
            add(tool)


threads = ThreadWatch()


def _forget() -> None:
    if _thread.modes.tools:
        _thread.modes.set(())


os.register_at_fork(after_in_child=_forget)

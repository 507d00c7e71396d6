"""What all tools have in common: on and off, which operators they are for, and their conditions."""

import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

from op_tools import environment, interception
from op_tools.calls import OperatorCall, location
from op_tools.contract import symbols_of
from op_tools.interception import Proceed, Run
from op_tools.names import NameList
from op_tools.overloads import Overload
from op_tools.phases import OptimizerWatch

Condition = Callable[..., bool]


class OpTool:
    """A tool that watches or changes how operators run.

    `with tool:`, or `tool.start()` and `tool.stop()` (`tool.end()` is the same). A tool that was stopped can be started
    again. It sees the calls of the thread that starts it, of the threads that this one starts meanwhile, and of
    autograd's own.

    `ops` and `disable` are lists of operators, by name or regular expression; left out, the environment says them
    (OP_*_LIST, OP_*_DISABLE_LIST). `condition_func(name, *args, **kwargs)` says whether a call is looked at.
    Raises ValueError for lists that hold no regular expression.
    """

    variable: ClassVar[str]  # e.g. "CAPTURE": its lists are OP_CAPTURE_LIST and OP_CAPTURE_DISABLE_LIST
    layer: ClassVar[int]
    labels_calls: bool = True  # whether it says which function of torch the program called

    def __init__(
        self,
        ops: str | Iterable[str] | None = None,
        *,
        disable: str | Iterable[str] | None = None,
        condition_func: Condition | None = None,
    ) -> None:
        self._ops = None if ops is None else NameList.of(ops)
        self._disable = None if disable is None else NameList.of(disable)
        self._condition = condition_func
        self._optimizers = OptimizerWatch()
        self._read_lists()

    def start(self) -> Self:
        """Switches it on. Raises RuntimeError if it is on."""
        self._read_lists()
        self.begin()
        interception.add(self)
        interception.threads.add(self)
        self._optimizers.start()
        return self

    def stop(self) -> None:
        """Switches it off and writes what is to be written; nothing where it is off."""
        if not self.is_on:
            return
        self._optimizers.stop()
        interception.threads.remove(self)
        interception.remove(self)
        self.finish()

    end = stop

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_on(self) -> bool:
        """Whether it is on in this thread."""
        return any(tool is self for tool in interception.active())

    @contextmanager
    def within(self) -> Iterator[None]:
        """On for a moment, in this thread: what it has to write stays with it until finish()."""
        self.begin()
        interception.add(self)
        try:
            yield
        finally:
            interception.remove(self)

    @property
    def wants_label(self) -> bool:
        named = self._enabled.names_functions or self._disabled.names_functions
        return self.labels_calls or self._prints_stacks or self._condition is not None or named

    def selects(self, overload: Overload, function: str) -> bool:
        """Whether the lists name it and it can be looked at."""
        if not self.serves(overload):
            return False
        names = (function, overload.name, overload.packet, *symbols_of(overload, self._enabled, self._disabled))
        return not self._disabled.matches(names) and self._enabled.matches(names)

    def bound(self, overload: Overload, function: str, proceed: Run) -> Run:
        run, condition, prints_stacks = self.runner(overload, function, proceed), self._condition, self._prints_stacks
        if condition is None and not prints_stacks:
            return run
        title = function or overload.name

        def chosen(number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if condition is not None and not condition(title, *args, **kwargs):
                return proceed(number, args, kwargs)
            if prints_stacks:
                print(f"{title} at {location()}", *traceback.format_stack(), sep="\n", flush=True)
            return run(number, args, kwargs)

        return chosen

    def serves(self, overload: Overload) -> bool:
        """Whether the tool can do anything with calls of `overload`."""
        return True

    def begin(self) -> None:
        """What happens when it is switched on."""
        return

    def finish(self) -> None:
        """What happens when it is switched off."""
        return

    def apply(self, call: OperatorCall, proceed: Proceed) -> Any:
        """Does its work around one call, and gives what the call gives. Each tool has this, or runner()."""
        raise NotImplementedError(f"{type(self).__name__} has neither apply() nor runner()")

    def runner(self, overload: Overload, function: str, proceed: Run) -> Run:
        """apply() for the calls of one overload from one function of torch; fast tools have this instead."""

        def goes_on(call: OperatorCall) -> Any:
            return proceed(call.number, call.args, call.kwargs)

        def run(number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return self.apply(OperatorCall(overload, function, args, kwargs, number), goes_on)

        return run

    def _read_lists(self) -> None:
        self._enabled = environment.enabled(self.variable) if self._ops is None else self._ops
        self._disabled = environment.disabled(self.variable) if self._disable is None else self._disable
        self._prints_stacks = environment.flag(environment.PRINT_STACK)

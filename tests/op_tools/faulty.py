"""A chip with faults: a mode that lies below the tools and changes what operators give."""

from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

Fault = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


class Faulty(TorchDispatchMode):
    """Enter it before the tools. `fault(func, args, kwargs)` gives what `overload` gives, or only its call `only`."""

    def __init__(self, overload: str, fault: Fault, *, only: int | None = None) -> None:
        super().__init__()
        self._overload, self._fault, self._only = overload, fault, only
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if str(func) != self._overload:
            return func(*args, **kwargs)
        self.calls += 1
        if self._only is not None and self.calls != self._only:
            return func(*args, **kwargs)
        return self._fault(func, args, kwargs)


def wrong_value(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The last element is off by a hundredth."""
    result = func(*args, **kwargs)
    result.view(-1)[-1] += 0.01
    return result


def harmed_input(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The first argument loses its first element."""
    result = func(*args, **kwargs)
    args[0].view(-1)[0] = 0
    return result

"""Tools for some functions only, by name: `apply_feature("torch.add", "fallback")`, with a handle that undoes it.

The functions are replaced where their modules hold them, so that functions that are not torch's own can be named,
too. Inside such a function every operator is under the tool. Names that a program took out of a module before are not
reached.
"""

import functools
import importlib
import types
from collections.abc import Callable, Iterable
from typing import Any

from op_tools.tool import Condition, OpTool
from op_tools.tools.capture import OpCapture
from op_tools.tools.cast import OpDtypeCast
from op_tools.tools.compare import OpAutoCompare
from op_tools.tools.fallback import OpFallback
from op_tools.tools.observe import OpObserve
from op_tools.tools.overflow import OpOverflowCheck
from op_tools.tools.timing import OpTimeMeasure

FEATURES: dict[str, type[OpTool]] = {
    "op_capture": OpCapture,
    "autocompare": OpAutoCompare,
    "measure_op_time": OpTimeMeasure,
    "fallback": OpFallback,
    "cast_dtype": OpDtypeCast,
    "dump_op_args": OpObserve,
    "overflow_check": OpOverflowCheck,
}

Functions = Any  # a name, a function, a module, or a list of such


class AppliedFeature:
    """Functions that are under a tool; `remove()` puts them back, in whatever order several are removed."""

    def __init__(self, tool: OpTool) -> None:
        self.tool = tool
        self._places: list[tuple[Any, str, Any, Any]] = []  # owner, name, what was there, what is now

    def replace(self, owner: Any, name: str, condition: Condition | None) -> None:
        before = getattr(owner, name)
        wrapped = _wrapped(before, self.tool, condition)
        setattr(owner, name, wrapped)
        self._places.append((owner, name, before, wrapped))

    def remove(self) -> None:
        """Undoes it, and writes what the tool has to write."""
        for owner, name, before, wrapped in reversed(self._places):
            if getattr(owner, name) is wrapped:
                setattr(owner, name, before)
            else:  # wrapped by other code since; our wrapper passes calls through
                wrapped.__dict__["op_tools_off"] = True
        self._places = []
        self.tool.finish()

    def __enter__(self) -> "AppliedFeature":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def apply_feature(ops: Functions, feature: str, condition_func: Condition | None = None) -> AppliedFeature:
    """Puts functions under the tool named `feature`, one of FEATURES, while `condition_func(*args, **kwargs)` holds.

    `ops` is a name (e.g. "torch.Tensor.sort", "mylib.attention"), a function, a module (all its functions) or a list of
    these. Raises ValueError for a feature or function that does not exist.
    """
    if feature not in FEATURES:
        raise ValueError(f"'{feature}' is no feature; there are {', '.join(FEATURES)}")
    return apply_hook_to_ops(ops, FEATURES[feature], condition_func)


def apply_hook_to_ops(ops: Functions, hook: type[OpTool] | OpTool, condition_funcs: Any = None) -> AppliedFeature:
    """The same for a tool, or a class of tools; `condition_funcs` are one condition or several that must all hold.

    Raises ValueError for a function that does not exist.
    """
    tool = hook if isinstance(hook, OpTool) else hook(".*")
    applied = AppliedFeature(tool)
    condition = _all_of(condition_funcs)
    for owner, name in places_of(ops):
        applied.replace(owner, name, condition)
    return applied


def places_of(ops: Functions) -> list[tuple[Any, str]]:
    """Where the functions are held: each module or class with the name in it. Raises ValueError."""
    if isinstance(ops, str):
        return [_named(ops)]
    if isinstance(ops, types.ModuleType):
        return [
            (ops, name)
            for name, value in vars(ops).items()
            if isinstance(value, types.FunctionType) and not name.startswith("_")
        ]
    if isinstance(ops, Iterable):
        return [place for entry in ops for place in places_of(entry)]
    if callable(ops):
        from torch.overrides import resolve_name

        name = resolve_name(ops) or f"{getattr(ops, '__module__', '')}.{getattr(ops, '__qualname__', '')}"
        return [_named(name)]
    raise ValueError(f"{ops!r} is neither a name nor a function, module or list of them")


def _named(name: str) -> tuple[Any, str]:
    path, _, last = name.rpartition(".")
    parts = path.split(".") if path else []
    for length in range(len(parts), 0, -1):
        try:
            owner: Any = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        try:
            for part in parts[length:]:
                owner = getattr(owner, part)
        except AttributeError:
            break
        if callable(getattr(owner, last, None)):
            return owner, last
        break
    raise ValueError(
        f"there is no function '{name}'; write it as Python would import it, e.g. 'torch.nn.functional.linear'"
    )


def _all_of(conditions: Any) -> Condition | None:
    if conditions is None or callable(conditions):
        return conditions  # type: ignore[no-any-return]
    several = tuple(conditions)
    return (lambda *args, **kwargs: all(one(*args, **kwargs) for one in several)) if several else None


def _wrapped(function: Callable[..., Any], tool: OpTool, condition: Condition | None) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if "op_tools_off" in run.__dict__ or tool.is_on or (condition is not None and not condition(*args, **kwargs)):
            return function(*args, **kwargs)
        with tool.within():
            return function(*args, **kwargs)

    return run

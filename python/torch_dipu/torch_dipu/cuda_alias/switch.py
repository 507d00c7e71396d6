"""Switching the alias on and off."""

import sys
from types import TracebackType
from typing import Any

_MISSING = object()
# What stood in the attributes that are replaced now: owner, name, value or _MISSING; empty while the alias is off.
_replaced: list[tuple[Any, str, Any]] = []


class mock_cuda:
    """Let ``cuda`` mean ``dipu`` for the whole process from here on; as a context manager, until its end.

    ``mock_cuda(False)`` ends it. Attributes of torch are replaced, those of the table in ``cuda_alias/table.py``, and
    put back exactly; what a program took out of torch before, as in ``from torch import zeros``, stays what it was.
    """

    def __init__(self, enabled: bool = True) -> None:
        self._before = is_mocking_cuda()
        _switch(enabled)

    def __enter__(self) -> "mock_cuda":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _switch(self._before)


def is_mocking_cuda() -> bool:
    """Whether ``cuda`` means ``dipu`` now."""
    return bool(_replaced)


def _switch(enabled: bool) -> None:
    if enabled and not _replaced:
        _replace()
    elif _replaced and not enabled:
        _restore()


def _replace() -> None:
    from torch_dipu.cuda_alias.script import same_for_scripts
    from torch_dipu.cuda_alias.table import replacements

    for row in replacements():
        same_for_scripts(row.value, getattr(row.owner, row.name, None))
        _replaced.append((row.owner, row.name, vars(row.owner).get(row.name, _MISSING)))
        setattr(row.owner, row.name, row.value)
    _forget_compiled()


def _restore() -> None:
    from torch_dipu.cuda_alias.script import unknown_to_scripts

    while _replaced:
        owner, name, value = _replaced.pop()
        unknown_to_scripts(vars(owner)[name])
        if value is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, value)
    _forget_compiled()


def _forget_compiled() -> None:
    """torch.compile keeps which functions are torch's, and graphs that were made with them."""
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()
        dynamo.trace_rules.clear_lru_cache()

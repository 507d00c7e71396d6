"""TorchScript under the alias: it knows torch's functions by their identity, and takes the replacements for the same.

Scripted code itself still calls torch's own functions, for which ``cuda`` is ``cuda``.
"""

from typing import Any

from torch.jit import _builtins

_table: Any = _builtins._get_builtin_table  # by id, e.g. the name of aten's zeros


def same_for_scripts(function: Any, original: Any) -> None:
    """Make `function` the operator that `original` is, if it is one."""
    table = _table()
    operator = table.get(id(original))
    if operator is not None:
        table[id(function)] = operator


def unknown_to_scripts(function: Any) -> None:
    """Undo that."""
    _table().pop(id(function), None)

"""Tools that see, change, compare, time and replay every operator of a running PyTorch program."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from op_tools.interception import active
    from op_tools.modules.record import ModuleRecord
    from op_tools.tool import OpTool
    from op_tools.tools.capture import OpCapture
    from op_tools.tools.cast import OpDtypeCast
    from op_tools.tools.compare import OpAutoCompare, OpMismatch
    from op_tools.tools.fallback import OpFallback
    from op_tools.tools.observe import OpObserve
    from op_tools.tools.overflow import OpOverflowCheck, Overflow
    from op_tools.tools.record import OpRecord
    from op_tools.tools.timing import OpTimeMeasure

__all__ = [
    "ModuleRecord",
    "OpAutoCompare",
    "OpCapture",
    "OpDtypeCast",
    "OpFallback",
    "OpMismatch",
    "OpObserve",
    "OpOverflowCheck",
    "OpRecord",
    "OpTimeMeasure",
    "OpTool",
    "Overflow",
    "active",
]

# What a name is looked for in when it is first used: torch takes seconds to load, and the help needs none of it.
_MODULES = {
    "active": "op_tools.interception",
    "ModuleRecord": "op_tools.modules.record",
    "OpTool": "op_tools.tool",
    "OpCapture": "op_tools.tools.capture",
    "OpDtypeCast": "op_tools.tools.cast",
    "OpAutoCompare": "op_tools.tools.compare",
    "OpMismatch": "op_tools.tools.compare",
    "OpFallback": "op_tools.tools.fallback",
    "OpObserve": "op_tools.tools.observe",
    "OpOverflowCheck": "op_tools.tools.overflow",
    "Overflow": "op_tools.tools.overflow",
    "OpRecord": "op_tools.tools.record",
    "OpTimeMeasure": "op_tools.tools.timing",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'op_tools' has no attribute '{name}'")
    found: object = getattr(import_module(_MODULES[name]), name)
    globals()[name] = found
    return found

"""Tools that see, change, compare, time and replay every operator of a running PyTorch program."""

import sys
from contextlib import nullcontext

from diopigen.programs import loading

# `python -m op_tools` loads this before its own first line.
with loading() if sys.argv[:1] == ["-m"] else nullcontext():
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

"""Runs operators in another dtype: their tensors are cast, and what they give and write is cast back."""

from typing import Any, ClassVar

import torch

from op_tools import casts
from op_tools.calls import OperatorCall
from op_tools.clean_state import clean_state
from op_tools.copies import CannotCopy, Copies
from op_tools.devices import device_of
from op_tools.interception import Proceed
from op_tools.overloads import Overload
from op_tools.result_dtypes import result_dtypes
from op_tools.tool import OpTool
from op_tools.values import tensors_in

_EXPLICIT = frozenset({"aten._to_copy", "aten.copy_", "aten._copy_from", "aten.to"})  # the program's own casts


class OpDtypeCast(OpTool):
    """Computes in the dtypes that OP_DTYPE_CAST_DICT gives (float16 and bfloat16 in float32 unless it says otherwise),
    forward, backward and optimizer alike. Random operators stay as they are: in another dtype they draw other numbers.
    See OpTool for the rest.
    """

    variable: ClassVar[str] = "DTYPE_CAST"
    layer: ClassVar[int] = 5

    def serves(self, overload: Overload) -> bool:
        return overload.repeatable and not overload.random and overload.packet not in _EXPLICIT

    def apply(self, call: OperatorCall, proceed: Proceed) -> Any:
        pairs = casts.of_device()
        wanted = [t.dtype for _, t in tensors_in(call.given) if t.dtype in pairs]
        home = device_of(call)
        if not wanted or home is None:
            return proceed(call)
        try:
            with clean_state():
                copies = Copies(call, home, lambda dtype: pairs.get(dtype, dtype))
        except CannotCopy:
            return proceed(call)
        results = proceed(copies.call)
        with clean_state():
            return _cast_back(call, results, copies, home, {pairs[dtype]: dtype for dtype in reversed(wanted)})


def _cast_back(
    call: OperatorCall, results: Any, copies: Copies, home: torch.device, back: dict[torch.dtype, torch.dtype]
) -> Any:
    """The results in the dtypes that the call has without a cast, and what it has written written."""
    dtypes = result_dtypes(call)
    results = copies.given_back(call, results, home)
    arguments = {id(tensor) for _, tensor in tensors_in(call.given)}

    def narrowed(value: Any, place: int) -> Any:
        if not isinstance(value, torch.Tensor) or id(value) in arguments:
            return value
        usual = dtypes[place] if dtypes is not None and place < len(dtypes) else None
        return value.to(usual or back.get(value.dtype, value.dtype))

    if isinstance(results, list | tuple):
        return type(results)(narrowed(value, place) for place, value in enumerate(results))
    return narrowed(results, 0)

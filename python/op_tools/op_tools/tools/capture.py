"""Keeps every call on disk: arguments, results, strides, shared memory, so that it can be run again anywhere."""

from pathlib import Path
from typing import Any, ClassVar

from op_tools.calls import OperatorCall
from op_tools.clean_state import clean_state
from op_tools.copies import CannotCopy, Copies
from op_tools.devices import CPU, device_of
from op_tools.interception import Proceed
from op_tools.overloads import Overload
from op_tools.reference import outputs_of
from op_tools.results import results_folder
from op_tools.store.layout import DEFAULT
from op_tools.store.writer import CaptureWriter
from op_tools.tool import OpTool


class OpCapture(OpTool):
    """Writes each call below `folder` (op_tools_results/op_capture_results unless given), forward, backward and
    optimizer.

    Equal memory is kept once. `per_operator` is the most calls of one overload that are kept, `total` the most bytes;
    what is beyond them is counted in `writer.left`. `every=10` keeps each tenth call. See OpTool for the rest.
    """

    variable: ClassVar[str] = "CAPTURE"
    layer: ClassVar[int] = 1

    def __init__(
        self,
        ops: Any = None,
        *,
        folder: str | Path | None = None,
        per_operator: int | None = None,
        total: int | None = None,
        every: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(ops, **options)
        if every < 1:
            raise ValueError(f"every={every}: keep each call, or each second one, or fewer")
        root = results_folder() / DEFAULT if folder is None else Path(folder)
        self.writer = CaptureWriter(root, per_operator=per_operator, total=total)
        self._every = every
        self._seen = 0

    def serves(self, overload: Overload) -> bool:
        return overload.repeatable

    def apply(self, call: OperatorCall, proceed: Proceed) -> Any:
        self._seen += 1
        if (self._seen - 1) % self._every or not self.writer.has_room(call):
            return proceed(call)
        device = device_of(call)
        try:
            with clean_state():
                before = Copies(call, CPU).call
        except CannotCopy as reason:
            self.writer.left[call.overload.name, str(reason)] += 1
            return proceed(call)
        results = proceed(call)
        with clean_state():
            self.writer.write(before, outputs_of(call, results), device=str(device or "several"))
        return results

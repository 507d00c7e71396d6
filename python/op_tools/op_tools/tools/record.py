"""Keeps the course of a run: each call with what it was given and gave, so that two runs can be compared."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import torch

from op_tools.calls import OperatorCall, location
from op_tools.clean_state import clean_state
from op_tools.devices import device_of
from op_tools.interception import Proceed
from op_tools.module_paths import ModulePaths
from op_tools.overloads import Overload
from op_tools.phases import BACKWARD
from op_tools.provenance import Provenance
from op_tools.reference import outputs_of
from op_tools.results import results_folder
from op_tools.store.memory import Record
from op_tools.store.recording import CALL, DEFAULT, WHOLE, RecordingWriter
from op_tools.tool import OpTool
from op_tools.values import tensors_in

_PLAIN = (torch.Tensor, torch.nn.Parameter)


class OpRecord(OpTool):
    """Appends a line for each call to `folder` (op_tools_results/op_record_results unless given): operator, module,
    phase, arguments, results, where it was called. `op-tools compare-runs` compares two such folders.

    Tensors of up to `whole` elements are kept, equal ones once; of larger ones a sketch is, which tells how far two
    runs are apart, and about where. Each process has a file of its own. `left` counts the calls that were not recorded,
    with the reason. See OpTool for the rest.
    """

    variable: ClassVar[str] = "RECORD"
    layer: ClassVar[int] = 1

    def __init__(
        self, ops: Any = None, *, folder: str | Path | None = None, whole: int = WHOLE, **options: Any
    ) -> None:
        super().__init__(ops, **options)
        self.writer = RecordingWriter(results_folder() / DEFAULT if folder is None else Path(folder), whole=whole)
        self.left: Counter[tuple[str, str]] = Counter()
        self._modules = ModulePaths()
        self._provenance = Provenance()

    def begin(self) -> None:
        self._modules.start()

    def finish(self) -> None:
        self._modules.stop()

    def serves(self, overload: Overload) -> bool:
        return overload.computes and not overload.aliases

    def apply(self, call: OperatorCall, proceed: Proceed) -> Any:
        if odd := _odd(call.given):
            self.left[call.overload.name, odd] += 1
            return proceed(call)
        with clean_state():
            given = self.writer.held(call.given, self._facts)
        results = proceed(call)
        if _odd(results):
            return results
        with clean_state():
            found = outputs_of(call, results)
            outputs = self.writer.held(found)
        self._provenance.note(call, found)
        self.writer.append(self._line(call, given, outputs, str(device_of(call) or "several")))
        return results

    def _line(self, call: OperatorCall, given: Record, outputs: Record, device: str) -> Record:
        node, sequence = call.node
        phase, where, module = call.phase, location(), self._modules.path
        if phase == BACKWARD:
            module, forward = (module, "") if module else self._modules.of_backward(sequence)
            where = forward or where
        else:
            self._modules.note_forward(where)
        return {
            "kind": CALL,
            "number": call.number,
            "operator": call.overload.name,
            "function": call.function,
            "phase": phase,
            "node": node,
            "module": module,
            "location": where,
            "random": _draws(call),
            "device": device,
            "arguments": given,
            "outputs": outputs,
        }

    def _facts(self, tensor: torch.Tensor) -> Record:
        sources, name = self._provenance.sources(tensor), self._modules.name_of(tensor)
        return {**({"from": sources} if sources else {}), **({"name": name} if name else {})}


def _draws(call: OperatorCall) -> bool:
    """Whether random numbers go into it; dropout with probability 0 draws none."""
    given = call.given
    return call.overload.random and given.get("dropout_p", given.get("p")) != 0.0


def _odd(value: Any) -> str:
    """Why a call with such tensors is not recorded; empty where it is."""
    return next(_reasons(value), "")


def _reasons(value: Any) -> Iterator[str]:
    for _, tensor in tensors_in(value):
        if type(tensor) not in _PLAIN:
            yield f"a tensor of {type(tensor).__name__}"
        elif tensor.device.type == "meta":
            yield "a tensor without memory"
        elif tensor.layout is not torch.strided or tensor.is_quantized:
            yield f"a tensor with layout {tensor.layout}"

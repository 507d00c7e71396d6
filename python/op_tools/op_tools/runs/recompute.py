"""Whether a recorded call gave what its own arguments say: the CPU computes it again, in float64 where it can."""

from dataclasses import dataclass
from typing import Any

import torch

from op_tools.calls import OperatorCall
from op_tools.clean_state import clean_state
from op_tools.contract import entry_of
from op_tools.judgement import Difference
from op_tools.reference import NoReference, Reference
from op_tools.runs.steps import Step
from op_tools.store.reader import BadCapture, Capture
from op_tools.tools.compare import differences

_ERRORS = (BadCapture, NoReference, RuntimeError, ValueError, TypeError, KeyError, IndexError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputed:
    """One call by itself."""

    differences: tuple[Difference, ...]  # of its results from the CPU's
    unknown: str  # why it cannot be said; empty where it can

    @property
    def wrong(self) -> tuple[Difference, ...]:
        return tuple(one for one in self.differences if not one.good)


class Recomputation:
    """Computes each call once."""

    def __init__(self) -> None:
        self._known: dict[int, Recomputed] = {}

    def of(self, step: Step) -> Recomputed:
        """Of the step's call; of a call on lists the entry's part."""
        key = id(step.line)
        if key not in self._known:
            self._known[key] = _judged(step)
        whole = self._known[key]
        if step.entry is None:
            return whole
        own = tuple(one for one in whole.differences if one.place in step.outputs)
        return Recomputed(differences=own, unknown=whole.unknown)


def _judged(step: Step) -> Recomputed:
    line = step.line
    if step.random:
        return Recomputed(differences=(), unknown="random")
    if not all(value.is_whole for value in (*step.inputs.values(), *step.outputs.values())):
        return Recomputed(differences=(), unknown="its tensors are too large to be kept (--whole)")
    capture = Capture(folder=step.run.path, root=step.run.root, record=line, result=line)
    try:
        call, outputs = capture.call("cpu"), capture.outputs()
        entry = entry_of(call.overload)
        if entry is not None and entry.random:
            return Recomputed(differences=(), unknown="random")
        reference = Reference(call)
        reference.run()
        after, results = _after(call, outputs)
        with clean_state():
            return Recomputed(differences=tuple(differences(after, results, reference)), unknown="")
    except _ERRORS as reason:
        return Recomputed(differences=(), unknown=str(reason).partition("\n")[0])


def _after(call: OperatorCall, outputs: dict[str, torch.Tensor]) -> tuple[OperatorCall, Any]:
    """The call as it was when it had run, and what it gave."""
    given: dict[str, Any] = dict(call.given)
    for place, tensor in outputs.items():
        name, bracket, rest = place.partition("[")
        if name in given and not bracket:
            given[name] = tensor
        elif name in given:
            given[name] = list(given[name])
            given[name][int(rest.removesuffix("]"))] = tensor
    return call.with_arguments((), given), _results(outputs)


def _results(outputs: dict[str, torch.Tensor]) -> Any:
    """e.g. [a, None, b] of {"result[0]": a, "result[2]": b}; lists of lists, too."""
    if "result" in outputs:
        return outputs["result"]
    found: list[Any] = []
    for place, tensor in outputs.items():
        if not place.startswith("result["):
            continue
        level = found
        *upper, last = (int(part) for part in place.removeprefix("result[").removesuffix("]").split("]["))
        for index in upper:
            level.extend([] for _ in range(index + 1 - len(level)))
            level = level[index]
        level.extend(None for _ in range(last + 1 - len(level)))
        level[last] = tensor
    return found

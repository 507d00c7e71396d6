"""Several calls as one function, which torch.compile sees; a batch that fails is run call by call."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from diopi_conformance.cases.plan import Case, Plan
from diopi_conformance.compiled.device_call import DeviceCall, Unsaid, device_call, device_calls, listed, words_of
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.prepare import Prepared, prepare
from diopi_conformance.values.inputs import UnfitCase, UnsoundCase

_SEED = 20240229


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How calls are compiled."""

    device: str  # ex) "dipu"
    backend: Any  # a name that torch.compile knows, or a function
    dynamic: bool


@dataclass(slots=True, kw_only=True)
class _Ready:
    """A case that can be compiled, and what the eager operator made of it."""

    prepared: Prepared
    entry: dict[str, Any]
    eager: Outcome


def outcomes(plan: Plan, cases: Sequence[Case], setting: Setting) -> Iterator[Outcome]:
    """What becomes of each case."""
    ready: list[_Ready] = []
    for case in cases:
        found = _ready(plan, case, setting)
        if isinstance(found, Outcome):
            yield found
        else:
            ready.append(found)
    if not ready:
        return
    together = _together(plan, ready, setting)
    if isinstance(together, list):
        yield from together
        return
    for one in ready:
        alone = _together(plan, [one], setting)
        yield alone[0] if isinstance(alone, list) else _refused(one, alone)


def _ready(plan: Plan, case: Case, setting: Setting) -> _Ready | Outcome:
    """The case with the first overload whose eager operator is right; one without is no case of the compiler's."""
    function = plan.functions[case.function]

    def ended(verdict: Verdict, message: str) -> Outcome:
        return Outcome(id=case.id, function=function.symbol, op=function.op, verdict=verdict, message=message)

    try:
        prepared = prepare(plan, case)
        entries = device_calls(plan, prepared, setting.device)
    except (UnfitCase, Unsaid) as reason:
        return ended(Verdict.SKIPPED, str(reason))
    except UnsoundCase as reason:
        return ended(Verdict.UNSOUND, str(reason))
    except (RuntimeError, TypeError) as reason:
        return ended(Verdict.SKIPPED, f"the device takes no such tensors: {_line(reason)}")
    first: Outcome | None = None
    for entry in entries:
        try:
            call = device_call(plan, prepared, entry, setting.device)
            torch.manual_seed(_SEED)
            found = call.run()
            outcome = ended(Verdict.PASS, "") if call.random else call.judged(found)
        except Exception as reason:
            outcome = ended(Verdict.FAIL, f"the eager operator refuses: {_line(reason)}")
        if outcome.verdict is Verdict.PASS:
            return _Ready(prepared=prepared, entry=entry, eager=outcome)
        first = first or outcome
    assert first is not None
    # The operator asks for something else than the function's case; compiled, it would not say the case either.
    return replace(first, verdict=Verdict.SKIPPED, message=f"the eager operator differs: {first.message}")


def _together(plan: Plan, ready: Sequence[_Ready], setting: Setting) -> list[Outcome] | Exception:
    """All calls as one function; the failure where there is one."""
    expected = {}
    if any(one.prepared.function.check == "distribution" for one in ready):
        calls = [device_call(plan, one.prepared, one.entry, setting.device) for one in ready]
        torch.manual_seed(_SEED)
        expected = {call.prepared.case.id: _words(call, call.run()) for call in calls}
    calls = [device_call(plan, one.prepared, one.entry, setting.device) for one in ready]
    function, tensors = _function(calls)
    torch._dynamo.reset()
    try:
        torch.manual_seed(_SEED)
        with torch.no_grad():
            results = torch.compile(function, backend=setting.backend, dynamic=setting.dynamic)(tensors)
        found = []
        for one, call, result in zip(ready, calls, results, strict=True):
            if call.random:
                found.append(_same_draws(one.eager, expected[call.prepared.case.id], _words(call, listed(result))))
            else:
                found.append(call.judged(listed(result)))
    except Exception as reason:
        return reason
    return found


def _function(calls: Sequence[DeviceCall]) -> tuple[Callable[[list[torch.Tensor]], list[Any]], list[torch.Tensor]]:
    """The calls as Python, numbers written out, and the tensors that it takes; those that are one stay one."""
    tensors: list[torch.Tensor] = []
    places: dict[int, int] = {}
    lines: list[str] = []
    for call in calls:
        read: dict[str, str] = {}
        for place, tensor in call.tensors.items():
            if id(tensor) not in places:
                places[id(tensor)] = len(tensors)
                tensors.append(tensor)
            read[place] = f"t[{places[id(tensor)]}]"
        lines.append(f"        {call.text(read)},")
    names: dict[str, Any] = {"torch": torch, "math": math}
    exec("def batch(t):\n    return [\n" + "\n".join(lines) + "\n    ]\n", names)
    return names["batch"], tensors


def _words(call: DeviceCall, results: list[Any]) -> list[bytes]:
    written = [words_of(storage) for storage in call.storages]
    return [words.tobytes() for words in (*written, *(words_of(r) for r in results if isinstance(r, torch.Tensor)))]


def _same_draws(eager: Outcome, expected: list[bytes], found: list[bytes]) -> Outcome:
    if expected == found:
        return eager
    return replace(eager, verdict=Verdict.FAIL, message="other numbers are drawn than by the eager operator")


def _refused(one: _Ready, reason: Exception) -> Outcome:
    return replace(one.eager, verdict=Verdict.FAIL, message=f"{type(reason).__name__}: {_line(reason)}")


def _line(reason: Exception) -> str:
    lines = [line for line in str(reason).splitlines() if line.strip()]
    return lines[0].strip() if lines else type(reason).__name__

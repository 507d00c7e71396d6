"""Several calls as one function, which torch.compile sees; a batch that fails is run call by call."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from diopi_conformance.cases.plan import Case, CasePlan
from diopi_conformance.compiled.device_call import DeviceCall, places, words_of
from diopi_conformance.compiled.formula_call import FormulaCall, GradientCall, formula_call
from diopi_conformance.compiled.operator_call import operator_calls
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.prepare import Prepared, prepare
from diopi_conformance.values.inputs import UnfitCase, UnsoundCase

_SEED = 20240229
_MOST_OPERATORS = 300  # of one case: loops over voxels, which nobody compiles, take minutes to trace
_LEAST_OPERATORS = 8  # for each time that a formula reads data: between two reads there is a graph to compile


class _CallRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operators that run, and those that bring data to the host, as Python that computes by itself does."""

    calls = 0
    to_host = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        result = func(*args, **(kwargs or {}))
        on_device = any(isinstance(arg, torch.Tensor) and arg.device.type != "cpu" for arg in args)
        here = not isinstance(result, torch.Tensor) or result.device.type == "cpu"
        self.to_host |= on_device and here and not isinstance(result, list | tuple)
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchContext:
    """How calls are compiled."""

    device: str  # e.g. "dipu"
    backend: Any  # a name that torch.compile knows, or a function
    dynamic: bool


@dataclass(slots=True, kw_only=True)
class _Ready:
    """A case that can be compiled."""

    eager: Outcome  # what the eager operators made of it: it passed
    make: Callable[[], DeviceCall]  # with memory of its own
    gradient: bool
    reads: bool  # its formula reads data: what lies between is compiled in graphs of its own


def outcomes(plan: CasePlan, cases: Sequence[Case], setting: BatchContext) -> Iterator[Outcome]:
    """What becomes of each case."""
    ready: list[_Ready] = []
    for case in cases:
        found = _ready(plan, case, setting)
        if isinstance(found, Outcome):
            yield found
        else:
            ready.append(found)
    yield from (_in_parts(one, setting) for one in ready if one.reads)
    for gradient in (False, True):
        some = [one for one in ready if one.gradient is gradient and not one.reads]
        together = _together(some, setting) if some else []
        if isinstance(together, list):
            yield from together
            continue
        for one in some:
            alone = _together([one], setting)
            yield alone[0] if isinstance(alone, list) else _refused(one, alone, setting)


def _ready(plan: CasePlan, case: Case, setting: BatchContext) -> _Ready | Outcome:
    """The case as the first call whose eager operators are right; one without is no case of the compiler's."""
    function = plan.functions[case.function]

    def ended(verdict: Verdict, message: str) -> Outcome:
        return Outcome(id=case.id, function=function.symbol, op=function.op, verdict=verdict, message=message)

    try:
        prepared = prepare(plan, case)
        makers = list(_makers(plan, prepared, setting.device))
    except UnfitCase as reason:
        return ended(Verdict.SKIPPED, str(reason))
    except UnsoundCase as reason:
        return ended(Verdict.UNSOUND, str(reason))
    except (RuntimeError, TypeError) as reason:
        return ended(Verdict.SKIPPED, f"the device takes no such tensors: {_line(reason)}")
    first: Outcome | None = None
    for make in makers:
        try:
            call = make()
            torch.manual_seed(_SEED)
            # A formula makes its constants where its tensors are.
            with torch.device(setting.device), _CallRecorder() as seen:  # type: ignore[no-untyped-call]
                result = _gradients([call], [call.run()])[0]
            reads = seen.to_host if isinstance(call, FormulaCall) else 0
            # Of what is read in a loop symbols become expressions that take torch minutes.
            if reads * _LEAST_OPERATORS > seen.calls or (reads and setting.dynamic):
                return ended(Verdict.SKIPPED, "its formula computes in Python")
            if seen.calls > _MOST_OPERATORS:
                return ended(Verdict.SKIPPED, f"its formula is {seen.calls} calls of operators, a program by itself")
            outcome = ended(Verdict.PASS, "") if call.random else call.judged(result)
        except Exception as reason:
            outcome = ended(Verdict.FAIL, f"the eager operators refuse: {_line(reason)}")
        if outcome.verdict is Verdict.PASS:
            return _Ready(eager=outcome, make=make, gradient=isinstance(call, GradientCall), reads=reads > 0)
        first = first or outcome
    if first is None:
        return ended(Verdict.SKIPPED, "torch has no operator or formula for it")
    # The operators ask for something else than the function's case; compiled, they would not say the case either.
    return replace(first, verdict=Verdict.SKIPPED, message=f"the eager operators differ: {first.message}")


def _in_parts(one: _Ready, setting: BatchContext) -> Outcome:
    """A case by itself; one of which torch compiles nothing says nothing of the compiler."""
    graphs = 0

    def counted(module: Any, inputs: Any, **options: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return setting.backend(module, inputs, **options)

    found = _together([one], replace(setting, backend=counted))
    if isinstance(found, Exception):
        return _refused(one, found, setting)
    if graphs == 0:
        return replace(one.eager, verdict=Verdict.SKIPPED, message="torch compiles nothing of its formula")
    return found[0]


def _makers(plan: CasePlan, prepared: Prepared, device: str) -> Iterator[Callable[[], DeviceCall]]:
    yield from operator_calls(plan, prepared, device)
    if formula_call(plan, prepared, device) is not None:

        def formula() -> FormulaCall:
            made = formula_call(plan, prepared, device)
            assert made is not None
            return made

        yield formula


def _together(ready: Sequence[_Ready], setting: BatchContext) -> list[Outcome] | Exception:
    """All calls as one function; the failure where there is one."""
    try:
        expected: list[list[bytes]] = []
        calls = [one.make() for one in ready]
        if any(call.random for call in calls):
            torch.manual_seed(_SEED)
            with torch.device(setting.device):
                expected = [_words(call, call.run()) for call in calls]
            calls = [one.make() for one in ready]
        function, tensors = _function(calls)
        torch._dynamo.reset()
        torch.manual_seed(_SEED)
        with torch.set_grad_enabled(ready[0].gradient), torch.device(setting.device):
            results = torch.compile(function, backend=setting.backend, dynamic=setting.dynamic)(tensors)
        results = _gradients(calls, results)
        found = []
        for index, (one, call) in enumerate(zip(ready, calls, strict=True)):
            if call.random:
                same = expected[index] == _words(call, results[index])
                drawn = replace(one.eager, verdict=Verdict.FAIL, message="other numbers are drawn than eagerly")
                found.append(one.eager if same else drawn)
            else:
                found.append(call.judged(results[index]))
        return found
    except Exception as reason:
        return reason


def _gradients(calls: Sequence[DeviceCall], results: Sequence[Any]) -> list[Any]:
    """The results; of calls for a gradient those of the leaves, by one run backward."""
    found = list(results)
    outs: list[torch.Tensor] = []
    incoming: list[torch.Tensor] = []
    for call, result in zip(calls, results, strict=True):
        if isinstance(call, GradientCall):
            own, grads = call.pulled(result)
            outs += own
            incoming += grads
    leaves = {id(leaf): leaf for call in calls if isinstance(call, GradientCall) for leaf in call.leaves()}
    if not leaves:
        return found
    asked = list(leaves.values())
    given = torch.autograd.grad(outs, asked, incoming, allow_unused=True) if outs else [None] * len(asked)
    of = dict(zip(leaves, given, strict=True))
    for index, call in enumerate(calls):
        if isinstance(call, GradientCall):
            found[index] = [of[id(leaf)] for leaf in call.leaves()]
    return found


def _function(calls: Sequence[DeviceCall]) -> tuple[Callable[[list[torch.Tensor]], list[Any]], list[torch.Tensor]]:
    """The calls as Python, numbers written out, and the tensors that it takes; those that are one stay one."""
    tensors: list[torch.Tensor] = []
    numbers: dict[int, int] = {}
    lines: list[str] = []
    names: dict[str, Any] = {"torch": torch, "math": math}

    def bind(value: Any) -> str:
        name = f"f{len(names)}"
        names[name] = value
        return name

    for call in calls:
        read: dict[str, str] = {}
        for place, tensor in call.tensors.items():
            if id(tensor) not in numbers:
                numbers[id(tensor)] = len(tensors)
                tensors.append(tensor)
            read[place] = f"t[{numbers[id(tensor)]}]"
        lines.append(f"        {call.text(read, bind)},")
    exec("def batch(t):\n    return [\n" + "\n".join(lines) + "\n    ]\n", names)
    return names["batch"], tensors


def _words(call: DeviceCall, result: Any) -> list[bytes]:
    values = result if isinstance(result, dict) else {"result": result}
    tensors = [item for _, item in places(values) if isinstance(item, torch.Tensor)]
    return [words_of(tensor).tobytes() for tensor in (*call.storages, *tensors)]


def _refused(one: _Ready, reason: Exception, setting: BatchContext) -> Outcome:
    """What torch itself cannot trace for any compiler is no failure of this one."""
    traced = _together([one], replace(setting, backend="aot_eager"))
    if isinstance(traced, Exception):
        return replace(one.eager, verdict=Verdict.SKIPPED, message=f"torch cannot trace it: {_line(traced)}")
    return replace(one.eager, verdict=Verdict.FAIL, message=f"{type(reason).__name__}: {_line(reason)}")


def _line(reason: Exception) -> str:
    """What an exception says, without what the compiler of torch puts around it."""
    while reason.__cause__ is not None and isinstance(reason.__cause__, Exception):
        reason = reason.__cause__
    lines = [line.strip() for line in str(reason).splitlines() if line.strip()]
    return " ".join(lines)[:240] if lines else type(reason).__name__

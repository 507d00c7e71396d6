"""Prints how long operators take on dipu and on torch's own device, one line of JSON each; a process of its own.

Each device has a process that calls on it, since PyTorch has one accelerator in a process; they take turns.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # started below, after what computes references was imported

import torch
from operator_cases import large_cases

from diopi_conformance.cases.plan import Case, Function, Plan, read_plan
from diopi_conformance.expected.overloads import applies, arguments, overload, written_arguments
from diopi_conformance.expected.reference_call import Call
from diopi_conformance.prepare import live
from diopi_conformance.prepare.given import given_values
from diopi_conformance.values.inputs import UnfitCase, UnsoundCase

_TYPES = {
    **{"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "bool": torch.bool},
    **{"i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64},
    **{"c64": torch.complex64, "c128": torch.complex128},
}
_ROUND_SECONDS = 0.01
_QUEUED = 20  # calls that a GPU gets while it spins, so that it never waits for the host
_SPIN = 8_000_000  # its cycles: some 4 ms

_CONVOLUTIONS = {"convolution2d": 2, "convolution3d": 3}

Timed = Callable[[], object]


def forward_call(plan: Plan, function: Function, case: Case, device: str, values: dict[str, Any]) -> Timed | None:
    """The overload that PyTorch has for the function, with its arguments on `device`; None where it has none."""
    call = Call(plan=plan, function=function, case=case, dtypes=case.dtypes, values=values)
    for entry in _entries(function, call):
        named = {name: _placed(value, device) for name, value in arguments(entry, call).items()}
        found = overload(entry["overload"])
        return lambda: found(**named)
    return None


def backward_call(plan: Plan, function: Function, case: Case, device: str, values: Any, forward: Any) -> Timed | None:
    """What autograd runs for the function's gradient, where PyTorch has no overload for it."""
    plain = plan.functions[function.plain]
    asked = [arg for arg in function.backward["grads"].values() if isinstance(forward.get(arg), torch.Tensor)]
    leaves = {arg: forward[arg].to(device).requires_grad_() for arg in asked}
    placed = {name: _placed(value, device) for name, value in forward.items()}
    call = Call(plan=plan, function=plain, case=case, dtypes=case.forward, values=placed)
    for entry in _entries(plain, call):
        given = {arg["name"]: leaves.get(arg.get("param", "")) for arg in entry["args"]}
        named = {name: value if given[name] is None else given[name] for name, value in arguments(entry, call).items()}
        with torch.enable_grad():
            result = overload(entry["overload"])(**named)
        results = result if isinstance(result, tuple) else (result,)
        grads = function.backward["grad_outputs"]
        outs = [results[entry["returns"][out]] for out in grads.values()]
        grads_of = [_placed(values[param], device) for param in grads]
        wanted = list(leaves.values())
        return lambda: torch.autograd.grad(outs, wanted, grads_of, retain_graph=True, allow_unused=True)
    return None


def _entries(function: Function, call: Call) -> Iterator[dict[str, Any]]:
    """The overloads that say the call and give their results; of a convolution the one that users reach."""
    if function.op in _CONVOLUTIONS and function.form == "out":
        names = {"input": "Tensor", "weight": "Tensor", "bias": "Tensor?", "stride": "SymInt[]", "padding": "SymInt[]"}
        names |= {"dilation": "SymInt[]", "groups": "SymInt"}
        args: list[dict[str, Any]] = [{"name": n, "param": n, "type": t} for n, t in names.items()]
        args += [
            {"name": "transposed", "value": False},
            {"name": "output_padding", "value": [0] * _CONVOLUTIONS[function.op]},
        ]
        yield {"overload": "convolution", "args": args, "returns": {"out": 0}}
    yield from (e for e in function.references if applies(e, call) and not written_arguments(e))


def _placed(value: Any, device: str) -> Any:
    if isinstance(value, list):
        return [_placed(entry, device) for entry in value]
    return value.to(device) if isinstance(value, torch.Tensor) else value


def _typed(values: Any, dtypes: dict[str, str]) -> dict[str, Any]:
    """The values as tensors of the types that the case names; they are drawn in float64."""

    def one(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [one(name, entry) for entry in value]
        if hasattr(value, "dtype"):
            tensor = torch.as_tensor(value)
            return tensor.to(_TYPES[dtypes[name]]) if name in dtypes else tensor
        return value

    return {name: one(name, value) for name, value in values.items()}


class Clock:
    """Seconds that a call takes on one device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.times = 1

    def settle(self, call: Timed) -> None:
        """Run it a few times, and choose how many a round has."""
        call()
        self.times = max(1, min(1000, int(_ROUND_SECONDS / max(self.seconds(call), 1e-6))))

    def seconds(self, call: Timed) -> float:
        start = time.perf_counter()
        for _ in range(self.times):
            call()
        return (time.perf_counter() - start) / self.times


class GpuClock(Clock):
    """By the GPU's own events: the calls are queued while it spins, fewer of them where one takes long.

    Spin and events are on the legacy default stream, which dipu's streams wait for, and which waits for them.
    """

    def settle(self, call: Timed) -> None:
        call()
        self.times = 1
        self.times = max(1, min(_QUEUED, int(_ROUND_SECONDS / self.seconds(call))))

    def seconds(self, call: Timed) -> float:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(_SPIN)
        start.record()
        for _ in range(self.times):
            call()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 1000 / self.times


REFUSED = (UnfitCase, UnsoundCase, RuntimeError, TypeError, IndexError, KeyError, AttributeError)


def prepared(plan: Plan, function: Function, case: Case, device: str) -> Timed | None:
    """The call on a device, or None where PyTorch has none."""
    spoken = plan.functions[function.plain] if function.form == "backward" and not function.references else function
    if not spoken.references and spoken.op not in _CONVOLUTIONS:
        return None  # before anything is drawn
    values, forward = given_values(plan, function, case, live())
    typed = _typed(values, case.dtypes)
    found = forward_call(plan, function, case, device, typed)
    if found is None and function.form == "backward" and forward is not None:
        found = backward_call(plan, function, case, device, typed, _typed(forward, case.forward))
    return found


def serve(plan: Plan, cases: list[tuple[Function, Case]], device: str) -> None:
    """Answers each line of standard input: the number of a case prepares it, an empty line measures a round of it."""
    torch.set_num_threads(1)
    if device == "dipu":
        import torch_dipu

        torch_dipu.start()
    torch.backends.cudnn.allow_tf32 = False  # float32 is float32 on dipu
    on_gpu = plan.vendor == "cuda"
    clock, call = (GpuClock if on_gpu else Clock)(device), None
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    for line in sys.stdin:
        try:
            with torch.no_grad():
                if not line.strip():
                    answer: dict[str, Any] = {"seconds": clock.seconds(call)}
                else:
                    function, case = cases[int(line)]
                    call = None  # frees what it held
                    call = prepared(plan, function, case, device)
                    answer = {"ready": call is not None, "fell": []}
                    if call is not None:
                        if device == "dipu":
                            torch.dipu.fallback.reset()
                        clock.settle(call)
                        if device == "dipu":
                            answer["fell"] = sorted({entry.operator for entry in torch.dipu.fallback.report()})
        except REFUSED as refused:
            if "CUDA error" in str(refused):  # which stays in the process
                sys.exit(f"{device}: {refused}")
            answer = {"refused": (str(refused).splitlines() or [type(refused).__name__])[0][:150]}
        print(json.dumps(answer), file=answers)


class Worker:
    """A process that calls on one device; a new one after a crash."""

    def __init__(self, device: str, arguments: list[str]) -> None:
        self.command = [sys.executable, __file__, *arguments, "--serve", device]
        self.process: subprocess.Popen[str] | None = None

    def ask(self, line: str) -> None:
        """Start what `line` says."""
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # told by answer()
            print(line, file=self.process.stdin, flush=True)

    def answer(self) -> dict[str, Any]:
        """What it says to the line asked."""
        assert self.process is not None and self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        code = self.process.wait()
        self.process = None
        return {"refused": f"the process ended with {code}"}


def measured(workers: dict[str, Worker], number: int, times: int) -> dict[str, Any]:
    """Seconds per round by device, or why there are none."""
    for worker in workers.values():
        worker.ask(str(number))
    answers = {device: worker.answer() for device, worker in workers.items()}
    refused = [f"{device}: {answer['refused']}" for device, answer in answers.items() if "refused" in answer]
    if refused or not all(answer["ready"] for answer in answers.values()):
        return {"refused": "; ".join(refused)}
    fell = [operator for answer in answers.values() for operator in answer["fell"]]
    rounds: dict[str, list[float]] = {device: [] for device in workers}
    for _ in range(0 if fell else times):
        for device, worker in workers.items():
            worker.ask("")
            answer = worker.answer()
            if "refused" in answer:
                return {"refused": f"{device}: {answer['refused']}"}
            rounds[device].append(answer["seconds"])
    return {"fell": fell, "rounds": rounds}


def main() -> None:
    """Measures every function, or those whose symbol holds `--only`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--peer", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--only", default="")
    parser.add_argument("--elements", type=int, default=1 << 18, help="that rows are made long to")
    parser.add_argument("--rounds", type=int, default=7, help="of each call on each device")
    parser.add_argument("--serve", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    plan = read_plan(options.plan)
    cases = large_cases(plan, options.elements)
    if options.serve:
        return serve(plan, cases, options.serve)
    workers = {device: Worker(device, sys.argv[1:]) for device in ("dipu", options.peer)}
    for number, (function, case) in enumerate(cases):
        if options.only not in function.symbol:
            continue
        found = measured(workers, number, options.rounds)
        if found.get("refused"):
            print(f"{case.id}: {found['refused']}", file=sys.stderr)
        elif "rounds" in found:
            told = {"function": function.symbol, "id": case.id, "models": list(case.models), **found}
            print(json.dumps(told), flush=True)
    return None


if __name__ == "__main__":
    main()

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
from pathlib import Path
from typing import Any

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # started below, after what computes references was imported

import torch
from operator_calls import REFUSED, Timed, prepared
from operator_cases import large_cases

from diopi_conformance.cases.plan import Case, CasePlan, Function, read_plan

_ROUND_SECONDS = 0.01
_QUEUED = 20  # calls that a GPU gets while it spins, so that it never waits for the host
_SPIN = 8_000_000  # its cycles: some 4 ms
_CYCLES = 2_000_000_000  # no GPU has more in a second


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

    spin = _SPIN

    def settle(self, call: Timed) -> None:
        call()
        self.times, self.spin = 1, _SPIN
        self.times = max(1, min(_QUEUED, int(_ROUND_SECONDS / self.seconds(call))))
        start = time.perf_counter()
        for _ in range(self.times):
            call()
        queueing = time.perf_counter() - start
        torch.cuda.synchronize()
        self.spin = max(_SPIN, int(2 * queueing * _CYCLES))

    def seconds(self, call: Timed) -> float:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(self.spin)
        start.record()
        for _ in range(self.times):
            call()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 1000 / self.times


def serve(plan: CasePlan, cases: list[tuple[Function, Case]], device: str) -> None:
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

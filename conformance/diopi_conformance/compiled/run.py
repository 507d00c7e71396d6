"""Runs cases through the compiler in processes of their own, and starts another where one dies."""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from diopi_conformance.cases.plan import Case, CasePlan
from diopi_conformance.cases.variants import Variant
from diopi_conformance.outcome import Outcome, Verdict
from diopigen.records.codec import typed


class CannotStart(Exception):
    """A worker ended before its first answer; the text is what it said."""


@dataclass(slots=True, kw_only=True)
class Compiled:
    """What a run found."""

    outcomes: list[Outcome] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)  # of the programs: kernels, calls, islands, graphs
    interrupted: bool = False  # by Ctrl-C


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run."""

    plan_path: Path
    models: Path
    variant: Variant
    libraries: Path
    backend: Path  # the folder of libtorch_dipu.so
    dynamic: bool
    level: str | None  # of the compiler's optimizer; None: as programs are compiled for who uses them
    jobs: int
    batch: int
    timeout: float  # seconds for one batch


def run(plan: CasePlan, cases: Sequence[Case], options: Options, tell: Callable[[Outcome], None]) -> Compiled:
    """Raises CannotStart; an interrupt ends it with what was found."""
    found = Compiled()
    batches: queue.SimpleQueue[tuple[Case, ...]] = queue.SimpleQueue()
    for begin in range(0, len(cases), options.batch):
        batches.put(tuple(cases[begin : begin + options.batch]))
    lock = threading.Lock()
    failures: list[Exception] = []

    def note(outcome: Outcome) -> None:
        with lock:
            found.outcomes.append(outcome)
            tell(outcome)

    def serve() -> None:
        worker = _Worker(plan, options)
        try:
            while not failures:
                batch = batches.get_nowait()
                for outcome in worker.outcomes(batch):
                    note(outcome)
                with lock:
                    found.figures.update(worker.figures)
        except queue.Empty:
            pass
        except CannotStart as reason:
            failures.append(reason)
        finally:
            worker.end()

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(min(options.jobs, max(1, batches.qsize())))]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.1)
    except KeyboardInterrupt:
        failures.append(CannotStart("interrupted"))
        found.interrupted = True
        return found
    if failures:
        raise failures[0]
    return found


class _Worker:
    """One process and its batches."""

    def __init__(self, plan: CasePlan, options: Options) -> None:
        self._plan, self._options = plan, options
        self._process: subprocess.Popen[str] | None = None
        self._answered = False
        self.figures: Counter[str] = Counter()

    def outcomes(self, batch: Sequence[Case]) -> list[Outcome]:
        """Of a batch that ends the process, each case that has no answer is asked again alone."""
        self.figures = Counter()
        found, ended = self._asked(batch)
        rest = [case for case in batch if case.id not in {outcome.id for outcome in found}]
        if not rest:
            return found
        if len(batch) == 1:
            return [self._lost(rest[0], ended)]
        return [*found, *(outcome for case in rest for outcome in self.outcomes([case]))]

    def _asked(self, batch: Sequence[Case]) -> tuple[list[Outcome], str]:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        alarm = threading.Timer(self._options.timeout, process.terminate)  # its keeper ends all of it
        alarm.start()
        found: list[Outcome] = []
        try:
            process.stdin.write(json.dumps([case.id for case in batch]) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                message = json.loads(line)
                if "done" in message:
                    self._answered = True
                    self.figures.update(message["done"])
                    return found, ""
                found.append(typed(Outcome, message))
        except BrokenPipeError:
            pass
        finally:
            alarm.cancel()
        code = process.wait()
        self._process = None
        if not self._answered and code > 0:
            raise CannotStart(f"a process that compiles ended with {code}; its own words are above")
        return found, "timeout" if alarm.finished.is_set() and code == -9 else f"signal {-code}"

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None:
            options = {
                "plan": str(self._options.plan_path),
                "models": str(self._options.models),
                "variant": self._options.variant.document(),
                "dynamic": self._options.dynamic,
                "level": self._options.level,
            }
            # The backend is loaded from the libraries that were asked for, when the worker says so.
            environment = os.environ | {
                "DIPU_LIBRARY_DIR": str(self._options.backend),
                "DIPU_VENDOR_LIBRARY": str(self._options.libraries / "libdiopi_impl.so"),
                "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            }
            self._process = subprocess.Popen(
                [sys.executable, "-m", "diopi_conformance.compiled.worker", json.dumps(options)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
        return self._process

    def _lost(self, case: Case, ended: str) -> Outcome:
        function = self._plan.functions[case.function]
        verdict = Verdict.TIMEOUT if ended == "timeout" else Verdict.CRASH
        return Outcome(id=case.id, function=function.symbol, op=function.op, verdict=verdict, message=ended)

    def end(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

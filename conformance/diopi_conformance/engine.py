"""Runs cases: prepares a batch, hands it to a worker, judges the replies; one thread for each worker."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from diopi_conformance.compare import judge
from diopi_conformance.crew import Libraries, Unusable, Worker
from diopi_conformance.inputs import UnfitCase, UnsoundCase
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.plan import Case, Plan
from diopi_conformance.prepare import Prepared, prepare

_BATCH = 32

Tell = Callable[[Outcome], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What to run and how."""

    plan: Plan
    cases: Sequence[Case]
    libraries: Libraries
    jobs: int = 1
    time_limit: float = 60.0  # seconds for one case


class Engine:
    """One run; `stop()` ends it early, and what has run stays told."""

    def __init__(self, run: Run, tell: Tell) -> None:
        self._run = run
        self._tell = tell
        self._lock = threading.Lock()
        self._next = 0
        self._stopped = threading.Event()
        self._failure: Exception | None = None
        self._workers: list[Worker] = []
        self.leaks: list[str] = []  # what sanitizers said when workers ended

    def execute(self) -> None:
        """Run everything. Raises Unusable where the libraries do not load; any other failure is ours."""
        # Events, since a join that an interrupt ends takes the thread for finished, which goes on under Python's feet.
        ends = [threading.Event() for _ in range(max(1, self._run.jobs))]
        for end in ends:
            threading.Thread(target=self._work, args=(end,), daemon=True).start()
        try:
            for end in ends:
                while not end.wait(timeout=0.2):
                    continue
        except KeyboardInterrupt:
            self.stop()
            for worker in self._workers:
                worker.abandon()
            for end in ends:
                end.wait(timeout=5.0)
            raise
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """No further batch is begun."""
        self._stopped.set()

    def _work(self, end: threading.Event) -> None:
        worker = Worker(self._run.libraries, self._run.time_limit)
        self._workers.append(worker)
        try:
            while not self._stopped.is_set() and (batch := self._batch()):
                self._batch_through(worker, batch)
            if leak := worker.finish():
                self.leaks.append(leak)
        except Exception as error:  # told to the caller of execute() in its own thread
            self._failure = error
            self.stop()
        finally:
            worker.stop()
            end.set()

    def _batch(self) -> Sequence[Case]:
        with self._lock:
            batch = self._run.cases[self._next : self._next + _BATCH]
            self._next += len(batch)
            return batch

    def _batch_through(self, worker: Worker, batch: Sequence[Case]) -> None:
        prepared = [p for case in batch if (p := self._prepared(case)) is not None]
        replies = worker.ask([(p.request, p.blobs) for p in prepared])
        for p, (head, blobs) in zip(prepared, replies, strict=False):  # fewer replies after an interrupt
            self._told(judge(self._run.plan, p, head, blobs))

    def _prepared(self, case: Case) -> Prepared | None:
        try:
            return prepare(self._run.plan, case)
        except (UnfitCase, UnsoundCase) as error:
            function = self._run.plan.functions[case.function]
            self._told(
                Outcome(
                    id=case.id,
                    function=function.symbol,
                    op=function.op,
                    verdict=Verdict.SKIPPED if isinstance(error, UnfitCase) else Verdict.UNSOUND,
                    message=str(error),
                )
            )
            return None

    def _told(self, outcome: Outcome) -> None:
        with self._lock:
            self._tell(outcome)


__all__ = ["Engine", "Run", "Unusable"]

"""Runs cases, with one worker in this process or with copies of this process that have one each."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from diopi_conformance.cases.plan import Case
from diopi_conformance.expected.stored_reader import DataError
from diopi_conformance.outcome import Outcome
from diopi_conformance.process.worker_pool import Unusable
from diopi_conformance.running.case_worker import CaseWorker, RunRequest
from diopi_conformance.running.forks import Forks, Message, Work
from diopigen.records.codec import typed

_BATCH = 32

Tell = Callable[[Outcome], None]


class Engine:
    """One run; what has run when it ends early stays told."""

    def __init__(self, run: RunRequest, tell: Tell) -> None:
        self._run = run
        self._tell = tell
        self._failure: Exception | None = None
        self._stopped = threading.Event()
        self.leaks: list[str] = []  # what sanitizers said when workers ended

    def execute(self) -> None:
        """Run everything. Raises Unusable where the libraries do not load; any other failure is ours."""
        if self._run.jobs == 1:
            self._here()
        else:
            self._in_copies()

    def _here(self) -> None:
        # In a thread, since an interrupt in the middle of a case would leave what the worker says unread; and with an
        # event, since a join that an interrupt ends takes the thread for finished, which goes on under Python's feet.
        worker, end = CaseWorker(self._run), threading.Event()
        threading.Thread(target=self._work, args=(worker, end), daemon=True).start()
        try:
            while not end.wait(timeout=0.2):
                continue
        except KeyboardInterrupt:
            self._stopped.set()
            worker.process.abandon()
            end.wait(timeout=5.0)
            raise
        if self._failure is not None:
            raise self._failure

    def _work(self, worker: CaseWorker, end: threading.Event) -> None:
        try:
            with _one_thread(self._run):
                self._through(worker)
        except Exception as error:  # told to the caller of execute() in its own thread
            self._failure = error
        finally:
            worker.process.stop()
            end.set()

    def _through(self, worker: CaseWorker) -> None:
        for index in range(self._batches()):
            if self._stopped.is_set():
                return
            for outcome in worker.outcomes(self._batch(index)):
                self._tell(outcome)
        if leak := worker.process.finish():
            self.leaks.append(leak)

    def _in_copies(self) -> None:
        with _one_thread(self._run):  # and what computes references is imported once, before the copies are made
            for message in Forks(self._run.jobs, self._batches(), self._start).messages():
                if "unusable" in message:
                    raise Unusable(message["unusable"])
                if "leak" in message:
                    self.leaks.append(message["leak"])
                else:
                    self._tell(typed(Outcome, message))

    def _start(self) -> tuple[Work, Callable[[], Iterator[Message]]]:
        """In a copy: its worker as work."""
        if self._run.expectations is None:
            _renew_threads()
        worker = CaseWorker(self._run)

        def work(index: int) -> Iterator[Message]:
            try:
                for outcome in worker.outcomes(self._batch(index)):
                    yield outcome.document()
            except (Unusable, DataError) as error:
                yield {"unusable": str(error)}

        def last() -> Iterator[Message]:
            if leak := worker.process.finish():
                yield {"leak": leak}

        return work, last

    def _batches(self) -> int:
        return -(-len(self._run.cases) // _BATCH)

    def _batch(self, index: int) -> tuple[Case, ...]:
        return tuple(self._run.cases[index * _BATCH : (index + 1) * _BATCH])


@contextmanager
def _one_thread(run: RunRequest) -> Iterator[None]:
    """PyTorch, where it computes the run's references, uses one thread: small cases are done before others wake."""
    if run.expectations is not None:
        yield
        return
    from diopi_conformance.prepare import live

    live()  # before PyTorch is imported by itself: it sets what that reads

    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _renew_threads() -> None:
    """In a copy, whose pool of threads PyTorch replaces at its first use, while one thread runs.

    Autograd starts a thread for each device of the machine. Those that use the pool at once while it is replaced find
    none ("Invalid thread pool!"), and the process ends.
    """
    import torch

    torch.set_num_threads(torch.get_num_threads())


__all__ = ["Engine", "RunRequest", "Unusable"]

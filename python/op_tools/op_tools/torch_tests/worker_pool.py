"""Processes that answer a line with a line, several at a time; one that dies or hangs costs only what it was asked."""

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, Self, TypeVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a process is asked. It answers with one line of JSON.

    A process is told the number of the file descriptor for its answers as the last word of its command. What it prints,
    on either stream, is kept for the text of a fault.
    """

    command: tuple[str, ...]  # of a process that can answer; it stays for later questions of the same command
    line: str
    timeout: float  # seconds
    preparation: str = ""  # a line to be asked once of each process before, e.g. one that makes it import a file


PREPARATION = 300.0  # seconds for a preparation
_GLANCE = 1.0  # seconds after which it is seen that a process ended whose children hold what it wrote to
_ENDING = 5.0  # seconds for a process to end that answers no more


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of it: `value`, or `fault` in words."""

    value: Any = None
    fault: str = ""
    late: bool = False  # the fault is that there was no answer in time


T = TypeVar("T")


class WorkerPool(Generic[T]):
    """Up to `jobs` processes. `question_of` says what is asked for a task.

    Used by `with`, at whose end no process is left, nor one that such a process has started in its group.
    """

    def __init__(self, jobs: int, question_of: Callable[[T], Question]) -> None:
        self._question_of = question_of
        self._waiting: list[tuple[T, Question]] = []
        self._changed = threading.Condition()
        self._ended = False
        self._left = 0  # tasks without an answer
        self._done: SimpleQueue[tuple[T, Answer] | None] = SimpleQueue()
        self._workers: dict[int, _Worker] = {}  # that of each thread
        self._threads = [threading.Thread(target=self._serve, args=(i,), daemon=True) for i in range(jobs)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            for worker in self._workers.values():
                worker.kill()
        for thread in self._threads:
            thread.join()

    def add(self, tasks: Iterable[T]) -> None:
        """Also while answers() runs."""
        added = [(task, self._question_of(task)) for task in tasks]
        with self._changed:
            self._waiting += added
            self._left += len(added)
            self._changed.notify_all()

    def stop(self) -> None:
        """Ends answers() after those that have come. A handler of a signal may call it."""
        self._done.put(None)

    def answers(self) -> Iterator[tuple[T, Answer]]:
        """Yields each task with its answer as they come, until none is left."""
        while self._left:
            found = self._done.get()
            if found is None:
                return
            yield found
            self._left -= 1

    def _serve(self, index: int) -> None:
        while (found := self._next(index)) is not None:
            task, question = found
            self._done.put((task, self._answer(index, question)))
        self._dismiss(index)

    def _next(self, index: int) -> tuple[T, Question] | None:
        """The first task for the process that runs, or else the first of all; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            if self._ended:
                return None
            command = self._workers[index].command if index in self._workers else None
            own = (i for i, (_, question) in enumerate(self._waiting) if question.command == command)
            return self._waiting.pop(next(own, 0))

    def _answer(self, index: int, question: Question) -> Answer:
        if index in self._workers and self._workers[index].command != question.command:
            self._dismiss(index)
        try:
            worker = self._worker(index, question.command)
        except OSError as error:
            return Answer(fault=f"no process can be started: {error.strerror}")
        if worker is None:
            return Answer(fault="the pool ended")
        answer = worker.ask(question)
        if answer.fault:
            self._dismiss(index)
        return answer

    def _worker(self, index: int, command: tuple[str, ...]) -> "_Worker | None":
        """The thread's process; None where the pool has ended, and none may be started any more."""
        with self._changed:
            if self._ended:
                return None
            if index not in self._workers:
                self._workers[index] = _Worker(command)
            return self._workers[index]

    def _dismiss(self, index: int) -> None:
        with self._changed:
            worker = self._workers.pop(index, None)
        if worker is not None:
            worker.end()


class _Worker(subprocess.Popen[str]):
    """A process of a pool, which can say what it wrote last before it ended. It leads a session of its own, so that
    Ctrl-C reaches the pool alone, and it is killed with what it has started.
    """

    def __init__(self, command: tuple[str, ...]) -> None:
        self.command = command
        self._prepared: set[str] = set()
        # All that lives as long as the process. What its tests leave in the folder for temporary files goes with it.
        with contextlib.ExitStack() as kept:
            folder = kept.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            self._log = kept.enter_context(tempfile.TemporaryFile("w+", errors="replace"))
            reading, writing = os.pipe()
            self._answers = kept.enter_context(os.fdopen(reading, encoding="utf-8"))
            try:
                super().__init__(
                    [*command, str(writing)],
                    stdin=subprocess.PIPE,
                    stdout=self._log,
                    stderr=self._log,
                    pass_fds=[writing],
                    text=True,
                    env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": folder},  # tests count warnings
                    start_new_session=True,
                )
            finally:
                os.close(writing)
            self._kept = kept.pop_all()

    def ask(self, question: Question) -> Answer:
        if question.preparation and question.preparation not in self._prepared:
            answer = self._exchange(question.preparation, PREPARATION)
            if answer.fault:
                return answer
            self._prepared.add(question.preparation)
        return self._exchange(question.line, question.timeout)

    def kill(self) -> None:
        """The whole group, which outlives a leader that ended."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def end(self) -> None:
        self.kill()
        self.wait()
        assert self.stdin is not None
        with contextlib.suppress(OSError):  # what was not written finds no reader
            self.stdin.close()
        self._kept.close()

    def _exchange(self, line: str, timeout: float) -> Answer:
        assert self.stdin is not None
        try:
            self.stdin.write(line + "\n")
            self.stdin.flush()
        except BrokenPipeError:
            return Answer(fault=f"the process did not start: {self._last_words()}")
        answer = self._line(timeout)
        if answer is None:
            return Answer(fault=f"no answer after {timeout:g} s", late=True)
        if not answer.endswith("\n"):
            return Answer(fault=f"the process ended with {self._code()}: {self._last_words()}")
        return Answer(value=json.loads(answer))

    def _line(self, timeout: float) -> str | None:
        """The next line; what there is of it where the process ended, and None where the time did."""
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            ended = self.poll() is not None
            ready, _, _ = select.select([self._answers], [], [], 0 if ended else max(0, min(left, _GLANCE)))
            if ready:
                return self._answers.readline()
            if ended:
                return ""
            if left <= 0:
                return None

    def _code(self) -> int:
        try:
            return self.wait(_ENDING)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.wait()

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read().split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

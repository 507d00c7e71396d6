"""Processes that answer a line with a line, several at a time; one that dies or hangs costs only what it was asked."""

import contextlib
import json
import os
import select
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a process is asked. It answers with one line of JSON."""

    command: tuple[str, ...]  # of a process that can answer; it stays for later questions of the same command
    line: str
    timeout: float  # seconds
    preparation: str = ""  # a line to be asked once of each process before, ex) one that makes it import a file


PREPARATION = 300.0  # seconds for a preparation


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of it: `value`, or `fault` in words."""

    value: Any = None
    fault: str = ""
    late: bool = False  # the fault is that there was no answer in time


T = TypeVar("T")


class WorkerPool(Generic[T]):
    """Up to `jobs` processes. `question_of` says what is asked for a task."""

    def __init__(self, jobs: int, question_of: Callable[[T], Question]) -> None:
        self._question_of = question_of
        self._waiting: list[tuple[T, Question]] = []
        self._changed = threading.Condition()
        self._ended = False
        self._left = 0  # tasks without an answer
        self._done: SimpleQueue[tuple[T, Answer]] = SimpleQueue()
        self._workers: dict[int, _Worker] = {}  # that of each thread
        self._threads = [threading.Thread(target=self._serve, args=(i,), daemon=True) for i in range(jobs)]
        for thread in self._threads:
            thread.start()

    def add(self, tasks: Iterable[T]) -> None:
        """Also while answers() runs."""
        added = [(task, self._question_of(task)) for task in tasks]
        with self._changed:
            self._waiting += added
            self._left += len(added)
            self._changed.notify_all()

    def answers(self) -> Iterator[tuple[T, Answer]]:
        """Yields each task with its answer as they come, until none is left; the processes end with it."""
        try:
            while self._left:
                yield self._done.get()
                self._left -= 1
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()
            for worker in list(self._workers.values()):
                worker.kill()
            for thread in self._threads:
                thread.join()

    def _serve(self, index: int) -> None:
        try:
            while (found := self._next(index)) is not None:
                task, question = found
                if index in self._workers and self._workers[index].command != question.command:
                    self._workers.pop(index).end()
                if index not in self._workers:
                    self._workers[index] = _Worker(question.command)
                answer = self._workers[index].ask(question)
                if answer.fault:
                    self._workers.pop(index).end()
                self._done.put((task, answer))
        finally:
            if index in self._workers:
                self._workers.pop(index).end()

    def _next(self, index: int) -> tuple[T, Question] | None:
        """The first task for the process that runs, or else the first of all; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            if self._ended:
                return None
            command = self._workers[index].command if index in self._workers else None
            own = (i for i, (_, question) in enumerate(self._waiting) if question.command == command)
            return self._waiting.pop(next(own, 0))


class _Worker(subprocess.Popen[str]):
    """A process of a pool, which can say what it wrote last before it ended."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 (it lives as long as the worker)
        self.command = command
        self._prepared: set[str] = set()
        super().__init__(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
        )

    def ask(self, question: Question) -> Answer:
        if question.preparation and question.preparation not in self._prepared:
            answer = self._exchange(question.preparation, PREPARATION)
            if answer.fault:
                return answer
            self._prepared.add(question.preparation)
        return self._exchange(question.line, question.timeout)

    def _exchange(self, line: str, timeout: float) -> Answer:
        assert self.stdin is not None and self.stdout is not None
        try:
            self.stdin.write(line + "\n")
            self.stdin.flush()
        except BrokenPipeError:
            return Answer(fault=f"the process did not start: {self._last_words()}")
        ready, _, _ = select.select([self.stdout], [], [], timeout)
        if not ready:
            return Answer(fault=f"no answer after {timeout:g} s", late=True)
        answer = self.stdout.readline()
        if not answer:
            return Answer(fault=f"the process ended with {self.wait()}: {self._last_words()}")
        return Answer(value=json.loads(answer))

    def end(self) -> None:
        self.kill()
        self.wait()
        for stream in (self.stdin, self.stdout, self._log):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read().split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

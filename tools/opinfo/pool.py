"""Worker processes that answer a task a line; one that dies or hangs is a result like any other."""

import json
import os
import queue
import select
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tools.opinfo.report import empty_result


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    entry: str  # ex) "nn.functional.conv2d"
    dtype: str  # ex) "float32"


def run_tasks(tasks: list[Task], jobs: int, timeout: float) -> Iterator[dict[str, Any]]:
    """Yields a result for each task, in the order in which they end."""
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    done: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threads = [threading.Thread(target=_serve, args=(waiting, done, timeout), daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for _ in tasks:
        yield done.get()


def _serve(waiting: "queue.SimpleQueue[Task]", done: "queue.SimpleQueue[dict[str, Any]]", timeout: float) -> None:
    worker: _Worker | None = None
    try:
        while True:
            try:
                task = waiting.get_nowait()
            except queue.Empty:
                return
            if worker is None:
                worker = _start()
            answer, fault = _ask(worker, task, timeout)
            if fault is not None:
                worker.kill()
                worker.wait()
                worker = None
                answer = _crashed(task, fault)
            done.put(answer)
    finally:
        if worker is not None:
            worker.kill()
            worker.wait()


class _Worker(subprocess.Popen[str]):
    """A worker that can say what it wrote last before it ended."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (it lives as long as the worker)
        super().__init__(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, env=environment
        )

    def last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read().split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _start() -> _Worker:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return _Worker([sys.executable, "-m", "tools.opinfo.worker"], environment)


def _ask(worker: _Worker, task: Task, timeout: float) -> tuple[dict[str, Any], str | None]:
    assert worker.stdin is not None and worker.stdout is not None
    try:
        worker.stdin.write(f"{task.entry} {task.dtype}\n")
        worker.stdin.flush()
    except BrokenPipeError:
        return {}, "the process did not start"
    ready, _, _ = select.select([worker.stdout], [], [], timeout)
    if not ready:
        return {}, f"no answer after {timeout:g} s"
    line = worker.stdout.readline()
    if not line:
        return {}, f"the process ended with {worker.wait()}: {worker.last_words()}"
    answer: dict[str, Any] = json.loads(line)
    return answer, None


def _crashed(task: Task, fault: str) -> dict[str, Any]:
    return {**empty_result(task.entry, task.dtype), "crash": fault}

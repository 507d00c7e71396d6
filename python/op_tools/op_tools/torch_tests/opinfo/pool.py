"""Entries of OpInfo in worker processes; one that dies or hangs is a result like any other."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tools.opinfo.report import empty_result
from tools.worker_pool import Question, WorkerPool

_COMMAND = (sys.executable, "-m", "tools.opinfo.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    entry: str  # ex) "nn.functional.conv2d"
    dtype: str  # ex) "float32"


def run_tasks(tasks: list[Task], jobs: int, timeout: float) -> Iterator[dict[str, Any]]:
    """Yields a result for each task, in the order in which they end."""
    pool = WorkerPool[Task](
        jobs, lambda task: Question(command=_COMMAND, line=f"{task.entry} {task.dtype}", timeout=timeout)
    )
    pool.add(tasks)
    for task, answer in pool.answers():
        yield {**empty_result(task.entry, task.dtype), "crash": answer.fault} if answer.fault else answer.value

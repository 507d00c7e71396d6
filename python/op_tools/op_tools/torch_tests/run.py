"""Files of tests in processes: first the names of each file's tests, then their outcomes."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.worker_pool import PREPARATION, Answer, Question, WorkerPool


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run, and how."""

    files: tuple[Path, ...]
    wanted: Callable[[str], bool]  # of "FILE.CLASS.TEST"
    host: bool  # the classes too that are not of a device
    apart: bool  # a process for each file, rather than one for all
    jobs: int
    timeout: float  # seconds for a test


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    path: Path
    test: str = ""  # "" asks for the names


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of one test, or of a file whose tests could not be listed (`test` is "" then)."""

    file: str  # ex) "test_view_ops"
    test: str  # ex) "TestViewOpsDIPU.test_T_dipu"
    outcome: str  # "passed", "failed", "crashed", "timed out", "skipped", "listed" or "never tested"
    reason: str = ""
    trace: str = ""
    seconds: float = 0.0

    @property
    def id(self) -> str:
        return f"{self.file}.{self.test}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is."""

    done: int
    known: int  # tests that were found so far


def outcomes(plan: Plan) -> Iterator[tuple[Outcome | None, Progress]]:
    """Yields the outcomes as they come; with None where the tests of a file became known."""
    pool = WorkerPool[_Task](plan.jobs, lambda task: _question(plan, task))
    pool.add([_Task(path=path) for path in plan.files])
    done = known = 0
    for task, answer in pool.answers():
        if task.test:
            done += 1
            yield _outcome(task, answer), Progress(done=done, known=known)
            continue
        names, fault = _names(task, answer)
        chosen = [name for name in names if plan.wanted(f"{task.path.stem}.{name}")]
        known += len(chosen)
        pool.add([_Task(path=task.path, test=name) for name in chosen])
        yield fault, Progress(done=done, known=known)


def _question(plan: Plan, task: _Task) -> Question:
    command = [sys.executable, "-m", "tools.torch_tests.worker"]
    if plan.apart:
        command.append(task.path.stem)  # which keeps the process for this file
    asked: dict[str, Any] = {"path": str(task.path), "host": plan.host}
    names = json.dumps(asked)
    if not task.test:
        return Question(command=tuple(command), line=names, timeout=PREPARATION)
    line = json.dumps({**asked, "test": task.test})
    return Question(command=tuple(command), line=line, timeout=plan.timeout, preparation=names)


def _names(task: _Task, answer: Answer) -> tuple[Sequence[str], Outcome | None]:
    fault, trace = answer.fault, ""
    if not fault and "fault" in answer.value:
        fault, trace = answer.value["fault"], answer.value["trace"]
    if not fault:
        return answer.value["tests"], None
    return (), Outcome(file=task.path.stem, test="", outcome="never tested", reason=fault, trace=trace[-3000:])


def _outcome(task: _Task, answer: Answer) -> Outcome:
    name = {"file": task.path.stem, "test": task.test}
    if answer.fault:
        return Outcome(**name, outcome="timed out" if answer.late else "crashed", reason=answer.fault)
    if "fault" in answer.value:  # the file could be imported before
        return Outcome(**name, outcome="never tested", reason=answer.value["fault"], trace=answer.value["trace"])
    return Outcome(**name, **answer.value)

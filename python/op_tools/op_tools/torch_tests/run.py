"""A run: the names of each suite's tests, then their outcomes, asked of processes."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from op_tools.torch_tests.opinfo.entries import NAME as OPINFO
from op_tools.torch_tests.outcome import Outcome
from op_tools.torch_tests.shard import WHOLE, Shard
from op_tools.torch_tests.suite import Suite
from op_tools.torch_tests.worker_pool import PREPARATION, Answer, Question, WorkerPool

_TRACE = 3000  # characters of a trace that are kept, its last


@dataclass(frozen=True, slots=True, kw_only=True)
class TestPlan:
    """What is run, and how."""

    device: str  # e.g. "dipu"
    suites: tuple[Suite, ...]
    wanted: Callable[[str], bool]  # of "SUITE.CLASS.TEST"
    shard: Shard = WHOLE
    host: bool = False  # the classes too that are not of a device
    hardware: tuple[str, ...] = ()  # e.g. ("ACCELERATOR",): only classes that torch classifies so
    all_dtypes: bool = False  # of torch's samples
    coverage: bool = False  # what became of every operator that these reach
    apart: bool = False  # a process for each suite, rather than one for all
    jobs: int
    timeout: float  # seconds for a test


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What came of a run."""

    outcomes: tuple[Outcome, ...]  # in the order of suites and names
    elsewhere: tuple[
        str, ...
    ]  # tests that are left to other shards, e.g. "view_ops.TestViewRulesDIPU.test_versions_dipu"
    interrupted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    suite: Suite
    test: str = ""  # "" asks for the names


class TestRun:
    """One run of a plan; its processes are there while found() runs."""

    def __init__(self, plan: TestPlan) -> None:
        self._plan = plan
        self._pool = WorkerPool[_Task](plan.jobs, lambda task: _question(plan, task))
        self._outcomes: dict[_Task, Outcome | None] = {}  # None where there is none yet
        self._known = 0  # tests of this shard
        self._elsewhere: list[str] = []
        self._interrupted = False

    def stop(self) -> None:
        """Ends found() early: what has no outcome is "never tested". A handler of a signal may call it."""
        self._interrupted = True
        self._pool.stop()

    def found(self, tell: Callable[[int, int], None]) -> Found:
        """Runs all of it; `tell` hears how many tests have an outcome, and how many are known."""
        with self._pool as pool:
            self._add([_Task(suite=suite) for suite in self._plan.suites])
            done = 0
            for task, answer in pool.answers():
                if task.test:
                    done += 1
                    self._outcomes[task] = _outcome(task, answer)
                else:
                    self._take_names(task, answer)
                tell(done, self._known)
        place = {suite: number for number, suite in enumerate(self._plan.suites)}
        order = sorted(self._outcomes, key=lambda task: (place[task.suite], task.test))
        return Found(
            outcomes=tuple(self._outcomes[task] or _without(task) for task in order),
            elsewhere=tuple(sorted(self._elsewhere)),
            interrupted=self._interrupted,
        )

    def _add(self, tasks: Sequence[_Task]) -> None:
        self._outcomes |= dict.fromkeys(tasks)
        self._pool.add(tasks)

    def _take_names(self, task: _Task, answer: Answer) -> None:
        """Adds the tests of a suite that became known, but for those of other shards."""
        names, fault = _names(task, answer)
        if fault is not None:
            self._outcomes[task] = fault
            return
        ids = {name: f"{task.suite.name}.{name}" for name in names}
        wanted = [name for name in names if self._plan.wanted(ids[name])]
        mine = [name for name in wanted if self._plan.shard.has(ids[name])]
        self._elsewhere += [ids[name] for name in wanted if not self._plan.shard.has(ids[name])]
        self._known += len(mine)
        self._add([_Task(suite=task.suite, test=name) for name in mine])
        del self._outcomes[task]


def _question(plan: TestPlan, task: _Task) -> Question:
    command = [sys.executable, "-m", "op_tools.torch_tests.worker", plan.device]
    if plan.apart:
        command.append(task.suite.name)  # which keeps the process for this suite
    asked: dict[str, Any] = {
        "suite": OPINFO if task.suite.path is None else str(task.suite.path),
        "host": plan.host,
        "hardware": plan.hardware,
        "all_dtypes": plan.all_dtypes,
        "coverage": plan.coverage,
    }
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
    return (), Outcome(suite=task.suite.name, test="", outcome="never tested", reason=fault, trace=trace[-_TRACE:])


def _outcome(task: _Task, answer: Answer) -> Outcome:
    name: dict[str, Any] = {"suite": task.suite.name, "test": task.test}
    if answer.fault:
        return Outcome(**name, outcome="timed out" if answer.late else "crashed", reason=answer.fault)
    if "fault" in answer.value:  # the file could be imported before
        return Outcome(**name, outcome="never tested", reason=answer.value["fault"], trace=answer.value["trace"])
    return Outcome(**name, **answer.value)


def _without(task: _Task) -> Outcome:
    reason = "the run was interrupted" + ("" if task.test else " before the tests were known")
    return Outcome(suite=task.suite.name, test=task.test, outcome="never tested", reason=reason)

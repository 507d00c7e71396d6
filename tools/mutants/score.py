"""Which mutants the conformance suite kills: each is asked the cases of its functions until one of them fails."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import torch

from diopi_conformance.cases.plan import Case, CasePlan
from diopi_conformance.judgement.compare import judge
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.prepare import Prepared, prepare
from diopi_conformance.process.worker_pool import Libraries, Worker
from diopi_conformance.values.inputs import UnfitCase, UnsoundCase
from tools.mutants.mutant import Mutant

_KILLING = (Verdict.FAIL, Verdict.CRASH, Verdict.TIMEOUT, Verdict.LEAK)
_CHOICE = "DIOPI_MUTANT"  # read by the library when it is loaded
_BATCH = 32
_TIME_LIMIT = 10.0  # seconds for one case


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What became of one mutant."""

    mutant: Mutant
    asked: int  # cases until the first that failed, or all
    by: str = ""  # e.g. "softmax/f32/1": the case that failed; empty for a survivor
    verdict: str = ""  # e.g. "fail"
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The cases that a library without a fault passes, prepared once for all mutants."""

    plan: CasePlan = field(repr=False)  # gigabytes of text, which a failing test would print
    prepared: tuple[Prepared, ...] = field(repr=False)
    bad: tuple[Outcome, ...]  # cases that fail without a fault: they say nothing about one

    def of(self, mutant: Mutant) -> list[Prepared]:
        return [p for p in self.prepared if _wants(mutant, p.case)]


def _wants(mutant: Mutant, case: Case) -> bool:
    return any(fnmatchcase(case.function, pattern) for pattern in mutant.functions)


def prepare_suite(
    plan: CasePlan, mutants: Sequence[Mutant], folder: Path, tell: Callable[[int, int], None] = lambda done, all_: None
) -> Suite:
    """Prepare the operator cases that `mutants` need, and ask the library in `folder` all; tells done and all."""
    torch.set_num_threads(1)
    os.environ.pop(_CHOICE, None)
    wanted = [c for c in plan.cases if not c.models and any(_wants(mutant, c) for mutant in mutants)]
    passed: list[Prepared] = []
    bad: list[Outcome] = []
    for done, (prepared, outcome) in enumerate(_answers(plan, folder, _prepared(plan, wanted))):
        if outcome.verdict is Verdict.PASS and not outcome.trivial:
            passed.append(prepared)
        elif outcome.verdict in _KILLING:
            bad.append(outcome)
        if done % 500 == 0:
            tell(done, len(wanted))
    return Suite(plan=plan, prepared=tuple(passed), bad=tuple(bad))


def _prepared(plan: CasePlan, cases: Sequence[Case]) -> Iterator[Prepared]:
    for case in cases:
        try:
            yield prepare(plan, case)
        except (UnfitCase, UnsoundCase):
            continue


def _answers(plan: CasePlan, folder: Path, prepared: Iterator[Prepared]) -> Iterator[tuple[Prepared, Outcome]]:
    """Each case with its outcome; a consumer that has seen enough closes the iterator, which ends the worker."""
    libraries = Libraries(runtime=folder / "libdiopirt.so", vendor=folder / "libdiopi_impl.so")
    worker = Worker(libraries, _TIME_LIMIT)
    try:
        while batch := [p for _, p in zip(range(_BATCH), prepared, strict=False)]:
            replies = worker.ask([(p.request, p.blobs) for p in batch])
            for p, (head, blobs) in zip(batch, replies, strict=True):
                yield p, judge(plan, p, head, blobs)
    finally:
        worker.stop()


def score(suite: Suite, mutant: Mutant, folder: Path) -> Score:
    """Ask the mutant's library in `folder` until a case fails."""
    os.environ[_CHOICE] = str(mutant.number)
    asked = 0
    answers = _answers(suite.plan, folder, iter(_mixed(suite.of(mutant))))
    for prepared, outcome in answers:
        asked += 1
        if outcome.verdict in _KILLING:
            answers.close()
            by, verdict = prepared.case.id, outcome.verdict.value
            return Score(mutant=mutant, asked=asked, by=by, verdict=verdict, message=outcome.message)
    return Score(mutant=mutant, asked=asked)


def _mixed(prepared: list[Prepared]) -> list[Prepared]:
    """From all over the list early on, in one order always: neighbours see the same faults."""
    step = next((s for s in (37, 31, 29, 23) if len(prepared) % s), 1)
    return [prepared[i * step % len(prepared)] for i in range(len(prepared))]


_shared: tuple[Suite, dict[str, Path]] | None = None


def _score_shared(mutant: Mutant) -> Score:
    assert _shared is not None
    suite, folders = _shared
    return score(suite, mutant, folders[mutant.name])


def scores(suite: Suite, mutants: Sequence[Mutant], folders: dict[str, Path], jobs: int) -> Iterator[Score]:
    """The scores in the order of `mutants`. Processes are forked, so that all share the prepared cases."""
    global _shared
    _shared = (suite, folders)
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap(_score_shared, mutants)

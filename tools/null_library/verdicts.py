"""What the suite says about the null libraries: all cases, each prepared once for all of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from diopi_conformance.cases.plan import Case, CasePlan
from diopi_conformance.judgement.compare import judge
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.prepare import Buffer, Prepared, prepare
from diopi_conformance.process.worker_pool import Libraries, Worker
from diopi_conformance.values.elements import encode
from diopi_conformance.values.inputs import UnfitCase, UnsoundCase

_BATCH = 32
_TIME_LIMIT = 20.0  # seconds for one case
# What outputs hold before the call, beside what the suite itself takes. As floats they are far from zero.
POISONS = (0x5A, 0x77)
# To write zeros is what the first two are for, and the name of a vendor's own format may be any number. A library that
# writes its first input writes zeros where there is none; a cast to the format that a tensor has already is a copy.
_ZEROS = {"diopiZeros", "diopiZeroInp", "diopiGetNativeMemoryFormat"}
_RIGHT = {"zeros": _ZEROS, "copies": _ZEROS | {"diopiNativeMemoryFormatCast"}}


@dataclass(slots=True)
class Tally:
    """One library's outcomes."""

    passes: list[str] = field(default_factory=list)  # ids; passes that a library that does nothing has too are trivial
    trivial: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)  # functions that at least one case fails, or that are missing
    judged: set[str] = field(default_factory=set)

    def add(self, outcome: Outcome) -> None:
        if outcome.verdict in (Verdict.SKIPPED, Verdict.UNSOUND):
            return
        self.judged.add(outcome.function)
        if outcome.verdict is not Verdict.PASS:
            self.failed.add(outcome.function)
        else:
            (self.trivial if outcome.trivial else self.passes).append(outcome.id)

    @property
    def fooled(self) -> list[str]:
        """Functions that no case fails."""
        return sorted(self.judged - self.failed)


def poisoned_names() -> tuple[str, ...]:
    """e.g. "idle 0x5a": the library that writes nothing, with another byte in its outputs."""
    return tuple(f"idle {poison:#04x}" for poison in POISONS)


def expected(name: str, tally: Tally) -> list[str]:
    """What is wrong with the suite if these are the library's outcomes; empty where nothing is."""
    complaints = [f"no case of {function} fails; add rows that tell it apart" for function in _unexpected(name, tally)]
    if name.startswith(("idle", "empty")):
        complaints += [f"{case} passes although nothing was written" for case in tally.passes]
    return complaints


def _unexpected(name: str, tally: Tally) -> list[str]:
    return [function for function in tally.fooled if function not in _RIGHT.get(name, ())]


def tallies(
    plan: CasePlan,
    cases: Sequence[Case],
    runtime: Path,
    libraries: dict[str, Path],
    tell: Callable[[int, int], None] = lambda done, all_: None,
) -> dict[str, Tally]:
    """By library, and by poison for the idle one: "idle", "idle 0x93". Tells how many cases are done of how many."""
    workers = {name: Worker(Libraries(runtime=runtime, vendor=path), _TIME_LIMIT) for name, path in libraries.items()}
    found = {name: Tally() for name in libraries}
    found |= {poisoned: Tally() for poisoned in poisoned_names() if "idle" in libraries}
    try:
        for done in range(0, len(cases), _BATCH):
            batch = list(_prepared(plan, cases[done : done + _BATCH]))
            for name, worker in workers.items():
                _ask(plan, worker, batch, found[name])
            for poison, poisoned in zip(POISONS, poisoned_names(), strict=True) if "idle" in workers else ():
                _ask(plan, workers["idle"], [_poisoned(p, poison) for p in batch], found[poisoned])
            tell(min(done + _BATCH, len(cases)), len(cases))
    finally:
        for worker in workers.values():
            worker.stop()
    return found


def _prepared(plan: CasePlan, cases: Sequence[Case]) -> Iterator[Prepared]:
    for case in cases:
        try:
            yield prepare(plan, case)
        except (UnfitCase, UnsoundCase):
            continue


def _ask(plan: CasePlan, worker: Worker, batch: list[Prepared], tally: Tally) -> None:
    replies = worker.ask([(p.request, p.blobs) for p in batch])
    for p, (head, blobs) in zip(batch, replies, strict=True):
        tally.add(judge(plan, p, head, blobs))


def _poisoned(prepared: Prepared, poison: int) -> Prepared:
    """The same call, with another byte all over its outputs; the batch is asked it last."""
    for buffer in prepared.buffers:
        if buffer.expected is not None:
            _fill(buffer, poison)
    return prepared


def _fill(buffer: Buffer, poison: int) -> None:
    words = np.frombuffer(bytes([poison]) * buffer.before.nbytes, buffer.before.dtype).copy()
    if buffer.source is not None:
        words[buffer.layout.positions().reshape(-1)] = encode(buffer.source, buffer.dtype).reshape(-1)
    buffer.before = words

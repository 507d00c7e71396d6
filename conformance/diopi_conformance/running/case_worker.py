"""One worker and the cases that it gets: prepared in batches, called, judged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diopi_conformance.cases.plan import Case, CasePlan
from diopi_conformance.expected.expectations import Expectations
from diopi_conformance.judgement.compare import judge
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.prepare import Prepared, prepare
from diopi_conformance.process.worker_pool import Libraries, Worker
from diopi_conformance.values.inputs import UnfitCase, UnsoundCase


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What to run and how."""

    plan: CasePlan
    cases: Sequence[Case]
    libraries: Libraries
    jobs: int = 1
    time_limit: float = 60.0  # seconds for one case
    expectations: Expectations | None = None  # None: PyTorch computes them


class CaseWorker:
    """Runs batches of cases one behind the other in one worker process."""

    def __init__(self, run: RunRequest) -> None:
        self._run = run
        self.process = Worker(run.libraries, run.time_limit)

    def outcomes(self, batch: Sequence[Case]) -> Iterator[Outcome]:
        """What becomes of each case; fewer after the worker was abandoned. Raises Unusable."""
        prepared: list[Prepared] = []
        for case in batch:
            found = self._prepared(case)
            if isinstance(found, Outcome):
                yield found
            else:
                prepared.append(found)
        replies = self.process.ask([(p.request, p.blobs) for p in prepared])
        for p, (head, blobs) in zip(prepared, replies, strict=False):
            yield judge(self._run.plan, p, head, blobs)

    def _prepared(self, case: Case) -> Prepared | Outcome:
        try:
            return prepare(self._run.plan, case, self._run.expectations)
        except (UnfitCase, UnsoundCase) as error:
            function = self._run.plan.functions[case.function]
            return Outcome(
                id=case.id,
                function=function.symbol,
                op=function.op,
                verdict=Verdict.SKIPPED if isinstance(error, UnfitCase) else Verdict.UNSOUND,
                message=str(error),
            )

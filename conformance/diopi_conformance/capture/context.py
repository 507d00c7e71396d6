"""What a capture works with: the contract with its bindings, and a plan whose references try every case."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from diopi_conformance.capture.store import Captured
from diopi_conformance.cases.plan import Case, CasePlan, read_plan
from diopi_conformance.prepare import prepare
from diopi_conformance.values.inputs import UnfitCase, UnsoundCase
from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.project import contract

_SEEDS = 6


class NoContract(Exception):
    """The schemas cannot be read; the text says why."""


@dataclass(slots=True, kw_only=True)
class CaptureContext:
    """The contract, a plan of it, and what was refused so far."""

    program: Program
    plan: CasePlan
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)  # function, why

    def sound(self, cases: Iterable[Captured]) -> list[Captured]:
        """The cases that can be prepared; the others are counted."""
        return [case for case in cases if self._prepares(case)]

    def _prepares(self, captured: Captured) -> bool:
        # Where the schema says how values are drawn, they must fit whatever is drawn.
        seeds = _SEEDS if self.plan.functions[captured.function].data else 1
        try:
            for seed in range(seeds):
                prepare(self.plan, replace(trial(captured), seed=seed))
        except UnsoundCase as refusal:
            self.refused[captured.function, str(refusal)] += 1
            return False
        except UnfitCase:  # of the plan's vendor; others may have the type
            return True
        return True


def trial(captured: Captured) -> Case:
    """The case that `captured` becomes, before it has a number."""
    return Case(
        id=f"trial/{captured.elements}/{captured.key}",
        function=captured.function,
        dtypes=captured.dtypes,
        forward=captured.forward,
        values=captured.values,
        data=captured.data,
        layout=captured.layout,
        view=captured.view,
    )


def setting(plan: Path) -> CaptureContext:
    """The contract that this package has, with the plan at `plan`. Raises NoContract, PlanError and TorchMissing."""
    project, diagnostics = contract(), Diagnostics()
    program = pipeline.run(project, diagnostics, pipeline.Stage.ATEN)
    if program is None or diagnostics.failed:
        raise NoContract(f"the schemas under {project.schemas} have errors; 'diopigen lint' shows them")
    return CaptureContext(program=program, plan=read_plan(plan))

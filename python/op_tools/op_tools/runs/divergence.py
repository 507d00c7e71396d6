"""The first call at which two runs part, and why."""

from dataclasses import dataclass

from op_tools.runs.difference import Deviation
from op_tools.runs.recompute import Recomputed
from op_tools.runs.steps import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """Where two runs part."""

    kind: str  # wrong, differs, random, arguments, dtype, input, changed, missing, course
    reason: str  # for people
    run: str  # "A", "B", or "A and B": whose call it is
    step: Step
    other: Step | None  # the counterpart
    gap: Deviation | None
    alone: Recomputed | None  # the step beside the CPU
    between: tuple[Step, ...] = ()  # calls of both runs from which the difference comes, where it is no single one


class Diverged(Exception):
    """Carries the first divergence."""

    def __init__(self, divergence: Divergence) -> None:
        super().__init__(divergence.reason)
        self.divergence = divergence


def wrong(run: str, step: Step, other: Step | None, gap: Deviation | None, alone: Recomputed) -> Divergence:
    """Of a call that the CPU finds wrong by itself."""
    text = "; ".join(one.message for one in alone.wrong)
    return Divergence(kind="wrong", reason=text, run=run, step=step, other=other, gap=gap, alone=alone)


def parted(
    kind: str,
    reason: str,
    run: str,
    step: Step,
    other: Step | None,
    gap: Deviation | None,
    between: tuple[Step, ...] = (),
) -> Divergence:
    """Of another kind than wrong."""
    return Divergence(kind=kind, reason=reason, run=run, step=step, other=other, gap=gap, alone=None, between=between)

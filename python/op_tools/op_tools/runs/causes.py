"""Looks for what makes values of two runs differ: the call that is wrong, or nothing but rounding.

Where results of counterparts differ by more than was to be expected, and where the inputs of calls of the same kind do,
the calls that made them are computed again by the CPU. One that gives something else is the divergence. Where all are
right, a difference may be that of their inputs, amplified; or the program's own.
"""

from op_tools.runs.difference import Deviation, Deviations, Value
from op_tools.runs.divergence import Diverged, Divergence, parted, wrong
from op_tools.runs.recompute import Recomputation
from op_tools.runs.side import RunState
from op_tools.runs.steps import Step, same_numbers, sources_of

NEAR = 64.0  # roundings that values of equal computations may be apart
AMPLIFIED = 8.0  # by how much a difference of the inputs may grow, before the CPU is asked
_WIDE = 1024.0  # roundings that values of other computations of the same may be apart
_FAR = 64.0  # by how much it may grow where the CPU cannot be asked


class Causes:
    """Of two runs, as far as they have been walked."""

    def __init__(self, gaps: Deviations, sides: tuple[RunState, RunState]) -> None:
        self.gaps, self.judge, self._sides = gaps, Recomputation(), sides

    def is_expected(self, x: Value, y: Value, gap: Deviation, unit: float) -> bool:
        """Whether values whose calls are no counterparts are no further apart than what went into them makes them."""
        between = self._ancestors(x, y)
        return gap.apart <= self._allowed(x, y, between, unit) and self._wrong(between) is None

    def settle(self, a: Step, b: Step, place: str, gap: Deviation, drift: float, unit: float) -> None:
        """Whether a difference that is more than was to be expected is amplified rounding. Raises Diverged."""
        if told := same_numbers(a, b):
            raise Diverged(parted("arguments", "; ".join(told), "A and B", a, b, gap))
        for run, step, other in (("B", b, a), ("A", a, b)):
            alone = self.judge.of(step)
            if alone.wrong:
                raise Diverged(wrong(run, step, other, gap, alone))
        if a.random or b.random:
            text = f"{place} {gap.text}: the random numbers are others, by another seed, generator or order of draws"
            raise Diverged(parted("random", text, "A and B", a, b, gap))
        unknown = self.judge.of(a).unknown or self.judge.of(b).unknown
        scale = max(self.gaps.norm(a.outputs[place]), self._terms(a))
        if unknown and not gap.apart <= (_WIDE * unit + _FAR * drift) * scale:
            text = f"{place} {gap.text}, though the inputs agree; which is right cannot be said: {unknown}"
            raise Diverged(parted("differs", text, "A and B", a, b, gap))
        if not drift and a.outputs[place].short and not gap.apart <= _WIDE * unit * scale:
            text = f"{place} {gap.text}, though the inputs are equal and each is right by itself: other arguments"
            raise Diverged(parted("arguments", text, "A and B", a, b, gap))

    def of_dtypes(self, a: Step, b: Step, place: str, x: Value, y: Value) -> Divergence:
        """Of counterparts whose results have other dtypes."""
        for run, step, other in (("B", b, a), ("A", a, b)):
            alone = self.judge.of(step)
            if alone.wrong:
                return wrong(run, step, other, None, alone)
        text = f"{place} is of {x.dtype} in A and of {y.dtype} in B"
        inputs = [
            f"{name} is of {one.dtype} in A and of {two.dtype} in B"
            for (name, one), two in zip(a.inputs.items(), b.inputs.values(), strict=True)
            if one.dtype != two.dtype
        ]
        return parted("dtype", "; ".join((text, *inputs)), "A and B", a, b, None)

    def explain(self, a: Step, b: Step, place: str, x: Value, y: Value, unit: float) -> None:
        """Finds what makes an input differ. Raises Diverged, unless it is amplified rounding."""
        gap = self.gaps.between(x, y)
        between = self._ancestors(x, y)
        if (found := self._wrong(between)) is not None:
            raise Diverged(found)
        if gap is not None and gap.apart <= self._allowed(x, y, between, unit):
            return
        raise Diverged(self._unexplained(a, b, place, x, y, gap, between))

    def _unexplained(
        self,
        a: Step,
        b: Step,
        place: str,
        x: Value,
        y: Value,
        gap: Deviation | None,
        between: tuple[list[Step], list[Step]],
    ) -> Divergence:
        text = f"{place} {gap.text}" if gap is not None else f"{place} has {x.shape} in A and {y.shape} in B"
        steps = tuple(between[0] + between[1])
        if steps:
            return self._only_one(text, gap, between) or parted(
                "course", f"{text}; the calls before it are others, each right by itself", "A and B", a, b, gap, steps
            )
        if sources_of(x) or sources_of(y):
            text += "; no recorded call wrote it since its counterparts agreed, or one run lacks a call that did"
            return parted("changed", text, "A and B", a, b, gap)
        return parted("input", f"{text}; no recorded call made it: the program's own data differ", "A and B", a, b, gap)

    def _only_one(self, text: str, gap: Deviation | None, between: tuple[list[Step], list[Step]]) -> Divergence | None:
        """Where only one run has calls that the other lacks: the first of them."""
        ours, others = between
        for run, own, theirs in (("A", ours, others), ("B", others, ours)):
            if own and not theirs:
                reason = f"only {run} has this call: {text}"
                return parted("missing", reason, run, own[0], None, gap, tuple(own))
        return None

    def _wrong(self, between: tuple[list[Step], list[Step]]) -> Divergence | None:
        """The first call without a counterpart that is wrong by itself."""
        for run, steps in zip(("B", "A"), reversed(between), strict=True):
            for step in steps:
                alone = self.judge.of(step)
                if alone.wrong:
                    return wrong(run, step, None, None, alone)
        return None

    def _allowed(self, x: Value, y: Value, between: tuple[list[Step], list[Step]], unit: float) -> float:
        """The 2-norm of the difference that is to be expected of what such calls make of results of counterparts."""
        steps = between[0] + between[1]
        coarsest = max((unit, *(step.unit for step in steps)))
        drifts = (
            side.drifts.get(source, 0.0)
            for side, own in zip(self._sides, between, strict=True)
            for step in own
            for value in step.inputs.values()
            for source in sources_of(value)
        )
        both = bool(between[0]) and bool(between[1])
        relative = (_WIDE if both else NEAR) * coarsest + (_FAR if both else AMPLIFIED) * max(drifts, default=0.0)
        last = {
            id(side.made.get(source)) for side, v in zip(self._sides, (x, y), strict=True) for source in sources_of(v)
        }
        terms = max((self._terms(step) for step in steps if id(step) in last), default=0.0)
        return relative * max(self.gaps.norm(x), self.gaps.norm(y), terms)

    def _terms(self, step: Step) -> float:
        """The least norm of its inputs: what cancels in a sum is of that size, however small the result."""
        return min((self.gaps.norm(value) for value in step.inputs.values() if value.short), default=0.0)

    def _ancestors(self, x: Value, y: Value) -> tuple[list[Step], list[Step]]:
        """The calls of each run without counterparts from which the values come, in order."""
        return self._sides[0].ancestors(x), self._sides[1].ancestors(y)

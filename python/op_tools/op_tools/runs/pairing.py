"""Brings the steps of two runs together, and finds the first at which they part.

The operators of two runs need not be the same: one has a fused operator where the other has three, updates tensor by
tensor where the other takes a list, copies more. Steps are counterparts where they compute the same in the same module
and their inputs agree. Inputs agree where they are results of counterparts, or where their values are the same but for
rounding, whatever calls made them. What has no counterpart is left, and matters only if what comes of it differs.

Results of counterparts may differ by what their inputs differ, and by rounding. Where they differ by more, the CPU
computes both calls again from their own arguments: one that gives something else is the divergence. Where both are
right, a small difference was amplified by what they compute, and goes on as the difference to be expected.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from op_tools.runs.causes import AMPLIFIED, NEAR, Causes
from op_tools.runs.difference import SAME, Deviation, Deviations, Value
from op_tools.runs.divergence import Diverged
from op_tools.runs.side import RunState
from op_tools.runs.steps import Segment, Source, Step, Token, sources_of

_DOUBTED = 1e-2  # differences by which the CPU is asked, whatever the inputs differ
_ESTIMATED = 4.0  # by how much the norm that a sketch tells may be off, in another order of elements
_CANDIDATES = 32  # counterparts that are tried


@dataclass(frozen=True, slots=True)
class _Accepted:
    """How far results of counterparts are apart."""

    worst: float
    apart: float


class Pairing:
    """Two runs as far as they have been walked."""

    def __init__(self) -> None:
        self.gaps = Deviations()
        self.pairs: list[tuple[Step, Step]] = []
        self.left: tuple[list[Step], list[Step]] = ([], [])
        self._related: dict[tuple[Source, Source], _Accepted] = {}
        self._sides = (RunState(), RunState())
        self._causes = Causes(self.gaps, self._sides)

    def walk(self, a: Segment | None, b: Segment | None) -> None:
        """Goes on with the next segments, counterparts of each other; None where a run has none. Raises Diverged."""
        rest = (list(a.steps) if a else [], list(b.steps) if b else [])
        for side, steps in zip(self._sides, rest, strict=True):
            side.add(steps)
        misled: set[tuple[int, int]] = set()
        while True:
            rest = self._pair(*rest)
            found = self._first_in_common(*rest, misled)
            if found is None:
                break
            if self._reconciled(*found):
                rest = tuple([one for one in steps if one not in found] for steps in rest)  # type: ignore[assignment]
            else:
                misled.add((id(found[0]), id(found[1])))
        for left, steps in zip(self.left, rest, strict=True):
            left += steps
        if a is not None and b is not None:
            self._compare_names()

    def _pair(self, a_steps: list[Step], b_steps: list[Step]) -> tuple[list[Step], list[Step]]:
        """Pairs what has agreeing inputs, in the order of A; gives what is left."""
        by_token: dict[Token, list[Step]] = {}
        for b in b_steps:
            by_token.setdefault(b.token, []).append(b)
        left = []
        for a in a_steps:
            candidates = by_token.get(a.token, [])
            best = max(
                ((self._agreement(a, b), -place, b) for place, b in enumerate(candidates[:_CANDIDATES])),
                key=lambda entry: entry[:2],
                default=(-1, 0, a),
            )
            if best[0] < 0:
                left.append(a)
                continue
            candidates.remove(best[2])
            self._judge(a, best[2])
        return left, [b for b in b_steps if b in set(by_token.get(b.token, ()))]

    def _agreement(self, a: Step, b: Step) -> int:
        """How many inputs are results of counterparts, where all inputs agree; else -1."""
        if list(a.inputs) != list(b.inputs) and len(a.inputs) != len(b.inputs):
            return -1
        explained = 0
        for x, y in zip(a.inputs.values(), b.inputs.values(), strict=True):
            if self._is_explained(x, y):
                explained += 1
            elif not self._is_near(x, y, max(a.unit, b.unit)):
                return -1
        return explained

    def _is_explained(self, x: Value, y: Value) -> bool:
        """Whether both are made of results of counterparts, and are no further apart than these are."""
        known = self._known(x, y)
        if not known:
            return False
        gap = self.gaps.between(x, y)
        if gap is None or gap.both is not None:
            return gap is not None and gap.worst <= 1.001 * max(one.worst for one in known)
        return gap.apart <= _ESTIMATED * sum(one.apart for one in known)

    def _known(self, x: Value, y: Value) -> list[_Accepted]:
        """How far apart the results are that both are made of; empty where they are not of counterparts."""
        if len(sources_of(x)) != len(sources_of(y)):
            return []
        found = [self._related.get(pair) for pair in zip(sources_of(x), sources_of(y), strict=True)]
        known = [one for one in found if one is not None]
        return known if len(known) == len(found) else []

    def _is_near(self, x: Value, y: Value, unit: float) -> bool:
        """Whether values agree whose calls are no counterparts: but for rounding, and for what went into them."""
        gap = self.gaps.between(x, y)
        if gap is None:
            return False
        if gap.relative <= NEAR * unit:
            return True
        return self._causes.is_expected(x, y, gap, unit)

    def _judge(self, a: Step, b: Step) -> None:
        """Takes two counterparts with agreeing inputs together. Raises Diverged where their results part."""
        self.pairs.append((a, b))
        self._sides[0].paired.add(id(a))
        self._sides[1].paired.add(id(b))
        drift = self._drift(a, b)
        unit = max(a.unit, b.unit)
        for (place, x), (other, y) in zip(a.outputs.items(), b.outputs.items(), strict=True):
            if x.dtype != y.dtype:
                raise Diverged(self._causes.of_dtypes(a, b, place, x, y))
            gap = self.gaps.between(x, y) or SAME
            typical = self.gaps.norm(x) / max(1.0, x.numel**0.5)
            if gap.worst > (4 * unit + min(AMPLIFIED * drift, _DOUBTED)) * typical:
                self._causes.settle(a, b, place, gap, drift, unit)
            self._relate((a.number, place), (b.number, other), gap)

    def _relate(self, a: Source, b: Source, gap: Deviation) -> None:
        self._related[a, b] = _Accepted(gap.worst, gap.apart)
        self._sides[0].drifts[a] = self._sides[1].drifts[b] = gap.relative

    def _drift(self, a: Step, b: Step) -> float:
        """The largest relative difference of the inputs."""
        gaps = (self.gaps.between(x, y) for x, y in zip(a.inputs.values(), b.inputs.values(), strict=True))
        return max((gap.relative for gap in gaps if gap is not None), default=0.0)

    # What has no counterpart

    def _first_in_common(
        self, a_steps: list[Step], b_steps: list[Step], misled: set[tuple[int, int]]
    ) -> tuple[Step, Step] | None:
        """The first calls of the same kind that are left in both runs."""
        matcher = SequenceMatcher(None, [a.token for a in a_steps], [b.token for b in b_steps], autojunk=False)
        for block in matcher.get_matching_blocks():
            for a, b in zip(a_steps[block.a :][: block.size], b_steps[block.b :][: block.size], strict=True):
                if (id(a), id(b)) not in misled:
                    return a, b
        return None

    def _reconciled(self, a: Step, b: Step) -> bool:
        """Whether calls of the same kind with inputs that do not agree are counterparts all the same.

        Raises Diverged where a call before them is wrong, or nothing explains the inputs.
        """
        if len(a.inputs) != len(b.inputs):
            return False
        unit = max(a.unit, b.unit)
        for (place, x), y in zip(a.inputs.items(), b.inputs.values(), strict=True):
            if self._is_explained(x, y) or self._is_near(x, y, unit):
                continue
            strangers = not self._known(x, y)
            if strangers and (self._elsewhere(x, 1, unit) or self._elsewhere(y, 0, unit)):
                return False
            self._causes.explain(a, b, place, x, y, unit)
        self._judge(a, b)
        return True

    def _elsewhere(self, value: Value, side: int, unit: float) -> bool:
        """Whether the other run has the value at another place: the calls are no counterparts then."""
        for other in self._sides[side].values.get(value.numel, ()):
            gap = self.gaps.between(value, other) if side else self.gaps.between(other, value)
            if gap is not None and gap.relative <= NEAR * unit:
                return True
        return False

    # What the program calls by name

    def _compare_names(self) -> None:
        """Parameters, buffers and optimizers' states, as the phase that ended leaves them. Raises Diverged."""
        fresh = [dict(side.fresh) for side in self._sides]
        for side in self._sides:
            side.fresh.clear()
        for name in dict.fromkeys((*fresh[0], *fresh[1])):
            ours, others = (side.named.get(name) for side in self._sides)
            if ours is None or others is None:
                continue
            (a, x), (b, y) = ours, others
            unit = max(a.unit, b.unit)
            if not self._is_explained(x, y) and not self._is_near(x, y, unit):
                self._causes.explain(a, b, name, x, y, unit)


def counterparts(a: list[Segment], b: list[Segment]) -> Iterator[tuple[Segment | None, Segment | None]]:
    """The phases of two runs side by side, in the order of A."""
    matcher = SequenceMatcher(None, [one.phase for one in a], [one.phase for one in b], autojunk=False)
    for kind, left, right, low, high in matcher.get_opcodes():
        if kind == "equal":
            yield from zip(a[left:right], b[low:high], strict=True)
        else:
            yield from ((one, None) for one in a[left:right])
            yield from ((None, one) for one in b[low:high])

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

from op_tools.runs.alone import Alone, Judge
from op_tools.runs.gap import SAME, Gap, Gaps, Value
from op_tools.runs.steps import Segment, Source, Step, Token, same_numbers, sources_of

_NEAR = 64.0  # roundings that values of equal computations may be apart
_WIDE = 1024.0  # roundings that values of other computations of the same may be apart
_AMPLIFIED = 8.0  # by how much a difference of the inputs may grow, before the CPU is asked
_FAR = 64.0  # by how much it may grow where the CPU cannot be asked
_DOUBTED = 1e-2  # differences by which the CPU is asked, whatever the inputs differ
_ESTIMATED = 4.0  # by how much the norm that a sketch tells may be off, in another order of elements
_CANDIDATES = 32  # counterparts that are tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """Where two runs part."""

    kind: str  # wrong, differs, random, arguments, dtype, input, changed, missing, course
    reason: str  # for people
    run: str  # "A", "B", or "A and B": whose call it is
    step: Step
    other: Step | None  # the counterpart
    gap: Gap | None
    alone: Alone | None  # the step beside the CPU
    between: tuple[Step, ...] = ()  # calls of both runs from which the difference comes, where it is no single one


class Diverged(Exception):
    """Carries the first divergence."""

    def __init__(self, divergence: Divergence) -> None:
        super().__init__(divergence.reason)
        self.divergence = divergence


@dataclass(frozen=True, slots=True)
class _Accepted:
    """How far results of counterparts are apart."""

    worst: float
    apart: float


class Pairing:
    """Two runs as far as they have been walked."""

    def __init__(self) -> None:
        self.gaps, self.judge = Gaps(), Judge()
        self.pairs: list[tuple[Step, Step]] = []
        self.left: tuple[list[Step], list[Step]] = ([], [])
        self._related: dict[tuple[Source, Source], _Accepted] = {}
        self._sides = (_Side(), _Side())

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
        if gap.relative <= _NEAR * unit:
            return True
        between = self._ancestors(x, y)
        return gap.apart <= self._allowed(x, y, between, unit) and self._wrong(between) is None

    def _judge(self, a: Step, b: Step) -> None:
        """Takes two counterparts with agreeing inputs together. Raises Diverged where their results part."""
        self.pairs.append((a, b))
        self._sides[0].paired.add(id(a))
        self._sides[1].paired.add(id(b))
        drift = self._drift(a, b)
        unit = max(a.unit, b.unit)
        for (place, x), (other, y) in zip(a.outputs.items(), b.outputs.items(), strict=True):
            if x.dtype != y.dtype:
                raise Diverged(self._other_dtype(a, b, place, x, y))
            gap = self.gaps.between(x, y) or SAME
            typical = self.gaps.norm(x) / max(1.0, x.numel**0.5)
            if gap.worst > (4 * unit + min(_AMPLIFIED * drift, _DOUBTED)) * typical:
                self._settle(a, b, place, gap, drift, unit)
            self._relate((a.number, place), (b.number, other), gap)

    def _settle(self, a: Step, b: Step, place: str, gap: Gap, drift: float, unit: float) -> None:
        """Whether a difference that is more than was to be expected is amplified rounding. Raises Diverged."""
        if told := same_numbers(a, b):
            raise Diverged(_divergence("arguments", "; ".join(told), "A and B", a, b, gap))
        for run, step, other in (("B", b, a), ("A", a, b)):
            alone = self.judge.of(step)
            if alone.wrong:
                raise Diverged(_wrong(run, step, other, gap, alone))
        if a.random or b.random:
            text = f"{place} {gap.text}: the random numbers are others, by another seed, generator or order of draws"
            raise Diverged(_divergence("random", text, "A and B", a, b, gap))
        unknown = self.judge.of(a).unknown or self.judge.of(b).unknown
        scale = max(self.gaps.norm(a.outputs[place]), self._terms(a))
        if unknown and not gap.apart <= (_WIDE * unit + _FAR * drift) * scale:
            text = f"{place} {gap.text}, though the inputs agree; which is right cannot be said: {unknown}"
            raise Diverged(_divergence("differs", text, "A and B", a, b, gap))
        if not drift and a.outputs[place].short and not gap.apart <= _WIDE * unit * scale:
            text = f"{place} {gap.text}, though the inputs are equal and each is right by itself: other arguments"
            raise Diverged(_divergence("arguments", text, "A and B", a, b, gap))

    def _other_dtype(self, a: Step, b: Step, place: str, x: Value, y: Value) -> Divergence:
        for run, step, other in (("B", b, a), ("A", a, b)):
            alone = self.judge.of(step)
            if alone.wrong:
                return _wrong(run, step, other, None, alone)
        text = f"{place} is of {x.dtype} in A and of {y.dtype} in B"
        inputs = [
            f"{name} is of {one.dtype} in A and of {two.dtype} in B"
            for (name, one), two in zip(a.inputs.items(), b.inputs.values(), strict=True)
            if one.dtype != two.dtype
        ]
        return _divergence("dtype", "; ".join((text, *inputs)), "A and B", a, b, None)

    def _relate(self, a: Source, b: Source, gap: Gap) -> None:
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
            self._explain(a, b, place, x, y, unit)
        self._judge(a, b)
        return True

    def _elsewhere(self, value: Value, side: int, unit: float) -> bool:
        """Whether the other run has the value at another place: the calls are no counterparts then."""
        for other in self._sides[side].values.get(value.numel, ()):
            gap = self.gaps.between(value, other) if side else self.gaps.between(other, value)
            if gap is not None and gap.relative <= _NEAR * unit:
                return True
        return False

    def _explain(self, a: Step, b: Step, place: str, x: Value, y: Value, unit: float) -> None:
        """Finds what makes an input differ. Raises Diverged, unless it is amplified rounding."""
        gap = self.gaps.between(x, y)
        between = self._ancestors(x, y)
        if (wrong := self._wrong(between)) is not None:
            raise Diverged(wrong)
        if gap is not None and gap.apart <= self._allowed(x, y, between, unit):
            return
        raise Diverged(self._unexplained(a, b, place, x, y, gap, between))

    def _unexplained(
        self, a: Step, b: Step, place: str, x: Value, y: Value, gap: Gap | None, between: tuple[list[Step], list[Step]]
    ) -> Divergence:
        text = f"{place} {gap.text}" if gap is not None else f"{place} has {x.shape} in A and {y.shape} in B"
        steps = tuple(between[0] + between[1])
        if steps:
            return self._only_one(text, gap, between) or _divergence(
                "course", f"{text}; the calls before it are others, each right by itself", "A and B", a, b, gap, steps
            )
        if sources_of(x) or sources_of(y):
            text += "; no recorded call wrote it since its counterparts agreed, or one run lacks a call that did"
            return _divergence("changed", text, "A and B", a, b, gap)
        return _divergence(
            "input", f"{text}; no recorded call made it: the program's own data differ", "A and B", a, b, gap
        )

    def _only_one(self, text: str, gap: Gap | None, between: tuple[list[Step], list[Step]]) -> Divergence | None:
        """Where only one run has calls that the other lacks: the first of them."""
        ours, others = between
        for run, own, theirs in (("A", ours, others), ("B", others, ours)):
            if own and not theirs:
                reason = f"only {run} has this call: {text}"
                return _divergence("missing", reason, run, own[0], None, gap, tuple(own))
        return None

    def _wrong(self, between: tuple[list[Step], list[Step]]) -> Divergence | None:
        """The first call without a counterpart that is wrong by itself."""
        for run, steps in zip(("B", "A"), reversed(between), strict=True):
            for step in steps:
                alone = self.judge.of(step)
                if alone.wrong:
                    return _wrong(run, step, None, None, alone)
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
        relative = (_WIDE if both else _NEAR) * coarsest + (_FAR if both else _AMPLIFIED) * max(drifts, default=0.0)
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
                self._explain(a, b, name, x, y, unit)


class _Side:
    """What is known of one run."""

    def __init__(self) -> None:
        self.values: dict[int, list[Value]] = {}  # by number of elements
        self.made: dict[Source, Step] = {}
        self.paired: set[int] = set()
        self.drifts: dict[Source, float] = {}
        self.named: dict[str, tuple[Step, Value]] = {}  # what the program calls so, as it was seen last
        self.fresh: dict[str, None] = {}  # names written since they were compared

    def add(self, steps: list[Step]) -> None:
        for step in steps:
            arguments = step.arguments_by_place
            for value in arguments.values():
                if name := value.record.get("name"):
                    self.named[name] = (step, value)
            for place, value in step.outputs.items():
                self.values.setdefault(value.numel, []).append(value)
                self.made[step.number, place] = step
                name = arguments[place].record.get("name") if place in arguments else None
                if name:
                    self.named[name] = (step, _made(value, step, place))
                    self.fresh[name] = None

    def ancestors(self, value: Value) -> list[Step]:
        found: dict[int, Step] = {}
        waiting = [value]
        while waiting:
            for source in sources_of(waiting.pop()):
                step = self.made.get(source)
                if step is not None and id(step) not in self.paired and id(step) not in found:
                    found[id(step)] = step
                    waiting += step.inputs.values()
        return sorted(found.values(), key=lambda step: step.number)


def _made(value: Value, step: Step, place: str) -> Value:
    """A result, with the call that made it noted."""
    return Value(value.root, {**value.record, "from": [(step.number, place)]})


def _wrong(run: str, step: Step, other: Step | None, gap: Gap | None, alone: Alone) -> Divergence:
    text = "; ".join(one.message for one in alone.wrong)
    return Divergence(kind="wrong", reason=text, run=run, step=step, other=other, gap=gap, alone=alone)


def _divergence(
    kind: str, reason: str, run: str, step: Step, other: Step | None, gap: Gap | None, between: tuple[Step, ...] = ()
) -> Divergence:
    return Divergence(kind=kind, reason=reason, run=run, step=step, other=other, gap=gap, alone=None, between=between)


def counterparts(a: list[Segment], b: list[Segment]) -> Iterator[tuple[Segment | None, Segment | None]]:
    """The phases of two runs side by side, in the order of A."""
    matcher = SequenceMatcher(None, [one.phase for one in a], [one.phase for one in b], autojunk=False)
    for kind, left, right, low, high in matcher.get_opcodes():
        if kind == "equal":
            yield from zip(a[left:right], b[low:high], strict=True)
        else:
            yield from ((one, None) for one in a[left:right])
            yield from ((None, one) for one in b[low:high])

"""What a comparison of two runs found, as lines for people and as JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from op_tools import judgement
from op_tools.runs.comparison import Compared
from op_tools.runs.difference import Value
from op_tools.runs.divergence import Divergence
from op_tools.runs.steps import Step

_ROWS = 6


def first_of(found: Sequence[Compared]) -> Compared | None:
    """The process that diverged first, by how far its recording had come; None where none did."""
    parted = [(one.divergence.step.record_number, one) for one in found if one.divergence is not None]
    return min(parted, key=lambda entry: entry[0])[1] if parted else None


def lines(found: Sequence[Compared]) -> Iterator[str]:
    """A table of the processes, what they did not share, and the first divergence of each that has one."""
    yield f"{'rank':>6} {'calls A':>8} {'calls B':>8} {'paired':>8} {'only A':>8} {'only B':>8}  result"
    for one in found:
        ranks = str(one.a.rank) if one.a.rank == one.b.rank else f"{one.a.rank}, {one.b.rank}"
        result = "equal but for rounding" if one.divergence is None else f"diverged: {one.divergence.step.operator}"
        left = f"{len(one.left[0]):8} {len(one.left[1]):8}" if one.divergence is None else f"{'-':>8} {'-':>8}"
        yield f"{ranks:>6} {one.steps[0]:8} {one.steps[1]:8} {one.paired:8} {left}  {result}"
    for one in found if first_of(found) is None else ():
        for name, steps in zip("AB", one.left, strict=True):
            if steps:
                counted = Counter(step.operator for step in steps).most_common(_ROWS)
                yield f"only {name}: {', '.join(f'{operator} ({count})' for operator, count in counted)}"
    first = first_of(found)
    if first is not None and first.divergence is not None:
        yield from _divergence(first, first.divergence)


def _divergence(compared: Compared, found: Divergence) -> Iterator[str]:
    step = found.step
    yield ""
    rank = f" on rank {compared.a.rank}" if compared.a.header["rank"] or compared.a.rank != compared.b.rank else ""
    yield f"first divergence{rank}: {step.title}, in {found.run}: {found.reason}"
    yield f"  {_occurrence(step)}, {step.phase}{_module(step)}{_location(step)}"
    yield f"  arguments: {', '.join(f'{place}={shown(value)}' for place, value in step.arguments_by_place.items())}"
    yield f"  results: {', '.join(f'{place}={shown(value)}' for place, value in step.outputs.items())}"
    if found.kind == "wrong" and found.gap is not None and found.gap.both is not None:
        yield f"  beside the other run: {found.gap.text}"
    for other in found.between:
        yield f"  between: {other.title}, {_occurrence(other)}{_location(other)}"
    for one in (step, found.other):
        if one is not None:
            yield f"  recorded in {one.run.path}:{one.record_number}"


def shown(value: Value) -> str:
    """e.g. "float32[2, 3]"."""
    return f"{value.dtype}{list(value.shape)}"


def _occurrence(step: Step) -> str:
    count = sum(
        line["operator"] == step.operator for line in step.run.lines[: step.record_number - 1] if "operator" in line
    )
    return f"call {step.number}, {_ordinal(count)} of this operator"


def _ordinal(count: int) -> str:
    ending = "th" if count % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count}{ending}"


def _module(step: Step) -> str:
    return f", module {step.line['module']}" if step.line["module"] else ""


def _location(step: Step) -> str:
    return f", at {step.line['location']}" if step.line["location"] else ""


def facts(found: Sequence[Compared]) -> dict[str, Any]:
    """As JSON holds it: each process, and the first divergence."""
    first = first_of(found)
    return {
        "equal": first is None,
        "processes": [_process(one) for one in found],
        "first": None if first is None or first.divergence is None else _parted(first.divergence),
    }


def _process(one: Compared) -> dict[str, Any]:
    return {
        "ranks": [one.a.rank, one.b.rank],
        "files": [str(one.a.path), str(one.b.path)],
        "calls": list(one.steps),
        "paired": one.paired,
        "only": [dict(Counter(step.operator for step in steps)) for steps in one.left],
        "divergence": None if one.divergence is None else _parted(one.divergence),
    }


def _parted(found: Divergence) -> dict[str, Any]:
    gap = found.gap
    return {
        "kind": found.kind,
        "reason": found.reason,
        "run": found.run,
        "call": _call(found.step),
        "counterpart": None if found.other is None else _call(found.other),
        "between": [_call(step) for step in found.between],
        "gap": None if gap is None else {name: getattr(gap, name) for name in type(gap).__slots__},
        "differences": [] if found.alone is None else [judgement.facts(one) for one in found.alone.differences],
    }


def _call(step: Step) -> dict[str, Any]:
    told = {name: step.line[name] for name in ("operator", "function", "phase", "node", "module", "location", "device")}
    return {
        **told,
        "rank": step.run.rank,
        "number": step.number,
        "entry": step.entry,
        "arguments": {place: shown(value) for place, value in step.arguments_by_place.items()},
        "results": {place: shown(value) for place, value in step.outputs.items()},
        "file": str(step.run.path),
        "line": step.record_number,
    }

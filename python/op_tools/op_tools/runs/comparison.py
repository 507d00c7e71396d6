"""Two recorded runs, process by process."""

from dataclasses import dataclass
from pathlib import Path

from op_tools.runs.divergence import Diverged, Divergence
from op_tools.runs.pairing import Pairing, counterparts
from op_tools.runs.steps import Step, segments
from op_tools.store.recording import BadRecording, Recording, recordings


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One process of A and one of B."""

    a: Recording
    b: Recording
    steps: tuple[int, int]  # of each run
    paired: int
    left: tuple[tuple[Step, ...], tuple[Step, ...]]  # without counterparts, as far as the runs were walked
    divergence: Divergence | None


class CannotCompare(ValueError):
    """The recordings have too little in common; the text says what to do."""


def compared(a: Path, b: Path) -> list[Compared]:
    """The calls of each rank of two runs. Raises BadRecording and CannotCompare."""
    return [_compared(one, two) for one, two in processes(a, b)]


def processes(a: Path, b: Path) -> list[tuple[Recording, Recording]]:
    """Each rank of two runs: folders, or single files. Raises BadRecording and CannotCompare."""
    first, second = recordings(a), recordings(b)
    if len(first) != len(second):
        raise CannotCompare(
            f"{a} has {len(first)} processes and {b} has {len(second)}; name single files to compare two of them"
        )
    return list(zip(first, second, strict=True))


def _compared(a: Recording, b: Recording) -> Compared:
    pairing = Pairing()
    parts = segments(a), segments(b)
    totals = tuple(sum(len(segment.steps) for segment in own) for own in parts)
    for recording, total in zip((a, b), totals, strict=True):
        if not total:
            raise CannotCompare(f"{recording.path} holds no calls")
    divergence = None
    try:
        for one, two in counterparts(*parts):
            pairing.walk(one, two)
    except Diverged as parted:
        divergence = parted.divergence
    except ValueError as error:
        raise BadRecording(str(error)) from None
    if divergence is None and not pairing.pairs:
        raise CannotCompare(f"{a.path} and {b.path} have no call in common: are they runs of one program?")
    return Compared(
        a=a,
        b=b,
        steps=(totals[0], totals[1]),
        paired=len(pairing.pairs),
        left=(tuple(pairing.left[0]), tuple(pairing.left[1])),
        divergence=divergence,
    )

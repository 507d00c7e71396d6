"""Which operators break a run: those that it does not bear on the device while all others are on the CPU.

That a run is bad is certain, since all that is right is on the CPU. That it is good is not, where a fault shows at
times only.
"""

from collections.abc import Callable, Sequence

# Whether a run is bad whose operators are all on the CPU but for these.
IsBad = Callable[[Sequence[str]], bool]


def culprits(
    operators: Sequence[str], is_bad: IsBad, confirmed: Callable[[str], bool] | None = None, trials: int = 1
) -> list[str]:
    """One operator that is bad alone, or, where none is, operators that are bad together.

    `operators` are bad together. A single culprit takes ceil(log2(n)) runs, and asks `confirmed` once where it was
    never run alone: a run of it alone, unless something better is known. Of several culprits one is found. Where the
    search ends at an operator that is good, the fault may show at times only: halves are run in turns then, each up to
    `trials` times, until one is bad.
    """
    left, within, shown = list(operators), list(operators), True
    while len(left) > 1:
        half = left[: (len(left) + 1) // 2]
        shown = is_bad(half)
        left = half if shown else left[len(half) :]
        within = left if shown else within
    sure = confirmed or (lambda operator: is_bad([operator]))
    if shown or not left or sure(left[0]):
        return left
    found = _by_turns(within, is_bad, trials) if trials > 1 else within
    return found if len(found) == 1 else _together(found, is_bad)


def _by_turns(within: list[str], is_bad: IsBad, trials: int) -> list[str]:
    """Operators that were bad together, and halves of which never were; one, where its fault shows at times only."""
    while len(within) > 1:
        middle = (len(within) + 1) // 2
        halves = (within[:middle], within[middle:])
        bad = next((half for _ in range(trials) for half in halves if is_bad(half)), None)
        if bad is None:
            break
        within = bad
    return within


def _together(operators: list[str], is_bad: IsBad) -> list[str]:
    """Operators of which none can be left out: each half's part is found while the other half stays whole."""

    def needed(part: list[str], beside: list[str]) -> list[str]:
        if is_bad(beside):
            return []
        if len(part) == 1:
            return part
        half, rest = part[: len(part) // 2], part[len(part) // 2 :]
        first = needed(half, [*beside, *rest])
        return [*first, *needed(rest, [*beside, *first])]

    return needed(operators, [])

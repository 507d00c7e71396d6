"""Which operators break a run: those that it does not bear on the device while all others are on the CPU."""

from collections.abc import Callable, Sequence

# Whether a run is bad whose operators are all on the CPU but for these.
IsBad = Callable[[Sequence[str]], bool]


def culprits(operators: Sequence[str], is_bad: IsBad) -> list[str]:
    """One operator that is bad alone, or, where none is, operators that are bad together.

    `operators` are bad together. A single culprit takes ceil(log2(n)) runs, and one more where it was never run alone;
    of several culprits one is found.
    """
    left, shown = list(operators), True
    while len(left) > 1:
        half = left[: (len(left) + 1) // 2]
        shown = is_bad(half)
        left = half if shown else left[len(half) :]
    if shown or is_bad(left):
        return left
    return _together(list(operators), is_bad)


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

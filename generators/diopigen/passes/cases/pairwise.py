"""Few combinations of the values of several axes in which every pair of values that may meet meets.

Values are numbered through all axes, and sets of them are the bits of an integer. Each combination runs on one row of
the schema; which rows suit is a set of bits too. The order of the numbers decides all ties, so that equal spaces give
equal combinations.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What there is to combine. The first value of an axis is the usual one, which goes with every other."""

    axes: tuple[tuple[int, ...], ...]  # e.g. ((0, 1), (2, 3, 4)): the values of each; the first axis chooses the rows
    rows: tuple[tuple[int, ...], ...]  # [value of the first axis][value]: the rows that suit both
    apart: tuple[int, ...]  # [value]: the values that it cannot meet
    needed: tuple[int, ...]  # [value]: the values that it must meet
    hiding: int  # values next to which others are not seen, as in a tensor without elements
    row_needed: int  # values that must meet every row that suits them


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One value of each axis, and a row."""

    values: tuple[int, ...]
    row: int


@lru_cache(maxsize=4096)  # most functions share their space with others
def combinations(space: Space) -> tuple[Combination, ...]:
    """Each row with the usual values, then what else shows every needed pair, the greediest choice first."""
    search = _Search(space=space)
    usual = tuple(axis[0] for axis in space.axes)
    found = [search.taken(usual, row) for row in bits(space.rows[usual[0]][usual[0]])]
    found.extend(search.run())
    return tuple(found)


def may_meet(space: Space, first: int, second: int) -> bool:
    """Whether a row suits both values, and none of them excludes the other."""
    leading = next((v for v in (first, second) if v in space.axes[0]), space.axes[0][0])
    suited = space.rows[leading][first] & space.rows[leading][second]
    return bool(suited) and not space.apart[first] >> second & 1


def bits(mask: int) -> Iterator[int]:
    """The numbers in a set, the smallest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


@dataclass(slots=True, kw_only=True)
class _Search:
    space: Space
    left: list[int] = field(init=False)  # [value]: the values that it has still to meet
    rows_left: list[int] = field(init=False)  # [value]: the rows
    used: list[int] = field(init=False)  # [row]: how often

    def __post_init__(self) -> None:
        space = self.space
        count = len(space.needed)
        pairs = [[b for b in bits(space.needed[a]) if may_meet(space, a, b)] for a in range(count)]
        self.left = [sum(1 << b for b in partners) for partners in pairs]
        usual = space.axes[0][0]
        self.rows_left = [space.rows[usual][v] if space.row_needed >> v & 1 else 0 for v in range(count)]
        self.used = [0] * max(mask.bit_length() for masks in space.rows for mask in masks)

    def run(self) -> Iterator[Combination]:
        for value in range(len(self.left)):
            while self.left[value]:
                other = next(bits(self.left[value]))
                yield from self._combined((value, other), -1)
                self._drop(value, other)
        for value in range(len(self.left)):
            while self.rows_left[value]:
                row = self.rows_left[value] & -self.rows_left[value]
                yield from self._combined((value,), row)
                self.rows_left[value] &= ~row

    def _drop(self, first: int, second: int) -> None:
        self.left[first] &= ~(1 << second)
        self.left[second] &= ~(1 << first)

    def _combined(self, seed: tuple[int, ...], suited: int) -> Iterator[Combination]:
        """A combination with the values of `seed`, on one of the rows in `suited`; none where there is none."""
        space = self.space
        chosen = sum(1 << value for value in seed)
        leading = next((v for v in seed if v in space.axes[0]), space.axes[0][0])
        for value in seed:
            suited &= space.rows[leading][value]
        values: list[int] = []
        for axis in space.axes:
            value = next((v for v in seed if v in axis), -1)
            if value < 0:
                value = self._best(axis, chosen, leading, suited)
                if value < 0:
                    return
                chosen |= 1 << value
                if axis is space.axes[0]:
                    leading = value
                suited = self._suited(leading, chosen, suited)
            values.append(value)
        if suited:
            yield self.taken(tuple(values), self._row(chosen, suited))

    def _suited(self, leading: int, chosen: int, suited: int) -> int:
        for value in bits(chosen):
            suited &= self.space.rows[leading][value]
        return suited

    def _best(self, axis: tuple[int, ...], chosen: int, leading: int, suited: int) -> int:
        """The value that meets most of `chosen` for the first time; the first that suits where none does, else -1."""
        space = self.space
        best, most = -1, -1
        hidden = chosen & space.hiding
        for value in axis:
            found = (self.left[value] & (hidden or chosen)).bit_count()
            if found <= most or space.apart[value] & chosen or space.hiding >> value & 1:
                continue
            if self._suited(value if axis is space.axes[0] else leading, chosen | 1 << value, suited):
                best, most = value, found
        return best

    def _row(self, chosen: int, suited: int) -> int:
        """The row that most of `chosen` have still to meet, of these the least used."""
        wanted = [self.rows_left[value] for value in bits(chosen)]
        return max(bits(suited), key=lambda row: (sum(w >> row & 1 for w in wanted), -self.used[row], -row))

    def taken(self, values: tuple[int, ...], row: int) -> Combination:
        """The combination; what it shows is needed no longer."""
        chosen = sum(1 << value for value in values)
        hidden = chosen & self.space.hiding
        for value in values:
            if hidden and not hidden >> value & 1:
                self.left[value] &= ~hidden
                continue
            self.left[value] &= ~chosen
            if not hidden:
                self.rows_left[value] &= ~(1 << row)
        for value in bits(hidden):
            self.rows_left[value] &= ~(1 << row)
        self.used[row] += 1
        return Combination(values=values, row=row)


__all__ = ["Combination", "Space", "bits", "combinations", "may_meet"]

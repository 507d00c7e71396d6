"""Combinations of axes: every pair that may meet meets, on a row that suits it."""

from itertools import combinations as couples

from hypothesis import given, settings
from hypothesis import strategies as st

from diopigen.passes.cases.pairwise import Space, combinations, may_meet


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """Axes of random length whose first values go with all others, random exclusions and rows."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    axes = tuple(tuple(range(start, start + size)) for start, size in zip(starts, sizes, strict=True))
    count, rows = sum(sizes), draw(st.integers(1, 3))
    usual = {axis[0] for axis in axes}
    every = (1 << rows) - 1
    suited = []
    for leading in axes[0]:
        own = every if leading in usual else draw(st.integers(1, every))
        masks = [0 if v in axes[0] and v != leading else own for v in range(count)]
        for value in set(range(count)) - usual - set(axes[0]):
            masks[value] = own & draw(st.integers(0, every))
        suited.append(tuple(masks))
    apart = [0] * count
    for first, second in couples(sorted(set(range(count)) - usual), 2):
        if draw(st.booleans()):
            apart[first] |= 1 << second
            apart[second] |= 1 << first
    needed = [sum(1 << v for axis in axes if value not in axis for v in axis) for value in range(count)]
    hiding = sum(1 << v for v in set(range(count)) - usual if draw(st.integers(0, 4)) == 0)
    row_needed = draw(st.integers(0, (1 << count) - 1)) & ~hiding
    return Space(
        axes=axes, rows=tuple(suited), apart=tuple(apart), needed=tuple(needed), hiding=hiding, row_needed=row_needed
    )


def shown(space: Space, values: tuple[int, ...]) -> set[frozenset[int]]:
    """The pairs that a combination lets one see."""
    hidden = {v for v in values if space.hiding >> v & 1}
    return {frozenset(pair) for pair in couples(values, 2) if not hidden or hidden & set(pair)}


@settings(max_examples=200, deadline=None)
@given(spaces())
def test_every_pair_that_may_meet_is_shown_and_no_other(space):
    found = combinations(space)
    seen = set().union(*(shown(space, c.values) for c in found))
    wanted = {frozenset(p) for a, b in couples(space.axes, 2) for p in ((x, y) for x in a for y in b)}
    assert {pair for pair in wanted if may_meet(space, *sorted(pair))} <= seen
    for c in found:
        assert all(value in axis for value, axis in zip(c.values, space.axes, strict=True))
        assert not any(space.apart[a] >> b & 1 for a, b in couples(c.values, 2))
        leading = space.axes[0].index(c.values[0])
        assert all(space.rows[leading][value] >> c.row & 1 for value in c.values)


@settings(max_examples=100, deadline=None)
@given(spaces())
def test_values_meet_every_row_that_suits_them_where_that_is_asked(space):
    found = combinations(space)
    for value in range(len(space.needed)):
        if space.row_needed >> value & 1 and value not in space.axes[0]:
            rows = {c.row for c in found if value in c.values}
            assert rows >= {r for r in range(3) if space.rows[0][value] >> r & 1}


@given(spaces())
def test_equal_spaces_give_equal_combinations(space):
    first = combinations(space)
    combinations.cache_clear()
    assert combinations(space) == first


def test_three_axes_of_three_need_nine_combinations_or_little_more():
    axes = ((0, 1, 2), (3, 4, 5), (6, 7, 8))
    every = [sum(1 << v for axis in axes if value not in axis for v in axis) for value in range(9)]
    rows = tuple(tuple(int(v == leading or v > 2) for v in range(9)) for leading in axes[0])
    space = Space(axes=axes, rows=rows, apart=(0,) * 9, needed=tuple(every), hiding=0, row_needed=0)
    assert 9 <= len(combinations(space)) <= 12

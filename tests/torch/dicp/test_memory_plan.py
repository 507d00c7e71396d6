"""The memory plan: values that live at the same time never share memory, and the arena is small."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from dicp.passes.memory import ALIGNMENT, planned
from dicp.program import Call, Program, Root, RootKind, View

Lives = list[tuple[int, int, int]]  # bytes, first and last instruction

lives = st.lists(
    st.tuples(st.integers(1, 5000), st.integers(0, 11), st.integers(0, 11)).map(lambda t: (t[0], *sorted(t[1:]))),
    min_size=1,
    max_size=24,
)


def program_of(rows: Lives) -> tuple[Program, list[Root]]:
    """Instructions that write each value first and read it last."""
    roots = [Root(kind=RootKind.ARENA, bytes=size) for size, _, _ in rows]
    views = [View(root=root, dtype=torch.uint8, sizes=(root.bytes,), strides=(1,)) for root in roots]
    instructions = [
        Call(
            symbol="diopiCopy",
            arguments=(),
            reads=tuple(view for view, (_, _, last) in zip(views, rows, strict=True) if last == at),
            writes=tuple(view for view, (_, first, _) in zip(views, rows, strict=True) if first == at),
        )
        for at in range(12)
    ]
    program = Program(device=torch.device("cpu"), arguments=0, symbols={}, instructions=instructions, results=[])
    return planned(program), roots


@given(lives)
def test_what_lives_at_the_same_time_lies_apart(rows: Lives) -> None:
    program, roots = program_of(rows)
    for i, (size, first, last) in enumerate(rows):
        assert roots[i].offset % ALIGNMENT == 0 and roots[i].offset + size <= program.arena_bytes
        for j, (other, other_first, other_last) in enumerate(rows[:i]):
            if first <= other_last and other_first <= last:
                apart = roots[i].offset + size <= roots[j].offset or roots[j].offset + other <= roots[i].offset
                assert apart, (rows[i], rows[j])


@given(lives)
def test_the_arena_is_no_larger_than_all_values(rows: Lives) -> None:
    program, _ = program_of(rows)
    assert program.arena_bytes <= program.unplanned_bytes


def test_values_one_behind_the_other_share_their_place() -> None:
    program, roots = program_of([(1000, at, at + 1) for at in range(10)])
    assert program.arena_bytes == 2048 and {root.offset for root in roots} == {0, 1024}

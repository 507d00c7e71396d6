"""The memory plan: values that live at the same time never share memory, and the arena is small."""

from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from dicp.passes.memory import ALIGNMENT, planned
from dicp.passes.reuse import heirs
from dicp.program import Instruction, Kernel, LibraryCall, Program, Root, RootKind, Step, View

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
        LibraryCall(
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


SIZES = (3, 4)
# Ways to read or write a value of 3 x 4 elements in a loop over (3, 4), by strides and offset.
WAYS = {"rows": ((4, 1), 0), "columns": ((1, 3), 0), "one row": ((0, 1), 4), "one column": ((4, 0), 1)}


def value() -> Root:
    return Root(kind=RootKind.ARENA, bytes=48)


def seen(root: Root, way: str, dtype: torch.dtype = torch.float32) -> View:
    strides, offset = WAYS[way]
    return View(root=root, dtype=dtype, sizes=SIZES, strides=strides, offset=offset)


def step(operands: tuple[Any, ...], fold: bool = False) -> Step:
    kind = torch.float32
    return Step(kernel="sum", operands=operands, compute=kind, dtype=kind, rounds=False, name="x", fold=fold)


@st.composite
def programs(draw: Any) -> Program:
    """Loops, loops over rows that are reduced, and calls, over what the instructions before them made."""
    values = [value(), value()]
    instructions: list[Instruction] = [
        LibraryCall(symbol="", arguments=(), reads=(), writes=(seen(v, "rows"),)) for v in values
    ]
    for _ in range(draw(st.integers(1, 8))):
        ways = st.sampled_from(("rows", "rows", "rows", *WAYS))
        reads = [seen(draw(st.sampled_from(values[-4:])), draw(ways)) for _ in range(draw(st.integers(1, 3)))]
        made = [value() for _ in range(draw(st.integers(1, 2)))]
        writes = [seen(root, draw(st.sampled_from(("rows", "rows", "columns")))) for root in made]
        kind = draw(st.sampled_from(("loop", "loop", "rows", "call")))
        if kind == "call":
            instructions.append(LibraryCall(symbol="", arguments=(), reads=tuple(reads), writes=tuple(writes)))
        else:
            inner = (step((reads[0],), fold=True),) if kind == "rows" else ()
            instructions.append(Kernel(sizes=SIZES, results=[(view, step((*reads, *inner))) for view in writes]))
        values += made
    return Program(device=torch.device("cpu"), arguments=0, symbols={}, instructions=instructions, results=[])


class Memory:
    """Whose element lies at each place of the arena."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[int, int]] = {}

    def write(self, view: View, at: tuple[int, ...]) -> None:
        element = self._element(view, at)
        self._held[int(view.root.offset) + 4 * element] = (id(view.root), element)

    def check(self, view: View, at: tuple[int, ...]) -> None:
        element = self._element(view, at)
        assert self._held[int(view.root.offset) + 4 * element] == (id(view.root), element)

    @staticmethod
    def _element(view: View, at: tuple[int, ...]) -> int:
        return int(view.offset + sum(stride * place for stride, place in zip(view.strides, at, strict=True)))


def run(program: Program) -> None:
    """Moves elements as the instructions do: a loop writes behind its reads, a call writes when it likes."""
    memory, everywhere = Memory(), list(product(range(SIZES[0]), range(SIZES[1])))
    for instruction in program.instructions:
        if not isinstance(instruction, Kernel):
            for view, at in product(instruction.writes, everywhere):
                memory.write(view, at)
            for view, at in product(instruction.reads, everywhere):
                memory.check(view, at)
            continue
        for at in everywhere:
            row = [(at[0], column) for column in range(SIZES[1])] if instruction.folds and at[1] == 0 else [at]
            for view, place in product(instruction.reads, row):
                memory.check(view, place)
            for view in instruction.writes:
                memory.write(view, at)


@given(programs())
def test_every_value_is_there_while_it_is_read(program: Program) -> None:
    run(planned(program))


@given(programs())
def test_taking_the_place_of_a_value_never_costs_memory(program: Program) -> None:
    taken = planned(program).arena_bytes
    program.instructions = [  # nobody takes the place of what is read as another type
        replace(i, results=[(retyped(view), made) for view, made in i.results]) if isinstance(i, Kernel) else i
        for i in program.instructions
    ]
    assert not heirs(program) and taken <= planned(program).arena_bytes


def retyped(view: View) -> View:
    return View(root=view.root, dtype=torch.int32, sizes=view.sizes, strides=view.strides, offset=view.offset)


def test_a_chain_of_loops_needs_one_place() -> None:
    values = [value() for _ in range(6)]
    instructions: list[Instruction] = [
        LibraryCall(symbol="", arguments=(), reads=(), writes=(seen(values[0], "columns"),))
    ]
    for one, other in pairwise(values):
        results = [(seen(other, "columns"), step((seen(one, "columns"),)))]
        instructions.append(Kernel(sizes=SIZES, results=results))
    program = Program(device=torch.device("cpu"), arguments=0, symbols={}, instructions=instructions, results=[])
    assert planned(program).arena_bytes == ALIGNMENT

"""The memory plan: each value that lives only inside a run gets a place in one arena, and places are used again."""

from torch.utils._sympy.functions import FloorDiv

from dicp.program import Dim, Program, Root, RootKind

ALIGNMENT = 256  # bytes: what vendors' libraries may expect of memory


def planned(program: Program) -> Program:
    """Sets the offset of every root in the arena, and the arena's size."""
    lives = _lives(program)
    fixed = [(root, first, last) for root, first, last in lives if isinstance(root.bytes, int)]
    grows = [(root, first, last) for root, first, last in lives if not isinstance(root.bytes, int)]
    top = _best_fit(fixed)
    end: Dim = top
    # What follows from the symbols shares a place with values of the same size only.
    places: list[tuple[Dim, Dim, int]] = []  # offset, bytes, the last instruction that needs it
    for root, first, last in sorted(grows, key=lambda life: life[1]):
        size = _aligned(root.bytes)
        for at, (offset, bytes_, until) in enumerate(places):
            if until < first and bytes_ == size:
                root.offset = offset
                places[at] = (offset, bytes_, last)
                break
        else:
            root.offset = end
            places.append((end, size, last))
            end = end + size
    program.arena_bytes = end
    total: Dim = 0
    for root, _, _ in lives:
        total = total + _aligned(root.bytes)
    program.unplanned_bytes = total
    return program


def _lives(program: Program) -> list[tuple[Root, int, int]]:
    """Each root of the arena with the first and the last instruction that touches it."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    roots: dict[int, Root] = {}
    for at, instruction in enumerate(program.instructions):
        for view in (*instruction.reads, *instruction.writes):
            if view.root.kind is RootKind.ARENA:
                roots[id(view.root)] = view.root
                first.setdefault(id(view.root), at)
                last[id(view.root)] = at
    return [(root, first[key], last[key]) for key, root in roots.items()]


def _best_fit(lives: list[tuple[Root, int, int]]) -> int:
    """Large ones first, each at the lowest free place; gives the bytes that all of them take."""
    placed: list[tuple[int, int, int, int]] = []  # offset, end, first, last
    top = 0
    for root, first, last in sorted(lives, key=lambda life: (-int(life[0].bytes), life[1])):
        size = int(_aligned(root.bytes))
        offset = 0
        for start, end, other_first, other_last in sorted(placed):
            if other_first <= last and first <= other_last:
                if offset + size <= start:
                    break
                offset = max(offset, end)
        root.offset = offset
        placed.append((offset, offset + size, first, last))
        top = max(top, offset + size)
    return top


def _aligned(size: Dim) -> Dim:
    if isinstance(size, int):
        return -(-size // ALIGNMENT) * ALIGNMENT
    return FloorDiv(size + ALIGNMENT - 1, ALIGNMENT) * ALIGNMENT

"""The memory plan: each value that lives only inside a run gets a place in one arena, and places are used again."""

from bisect import insort
from dataclasses import dataclass
from typing import TypeAlias

from torch.utils._sympy.functions import FloorDiv

from dicp.passes.reuse import heirs
from dicp.program import Dim, Program, Root, RootKind

ALIGNMENT = 256  # bytes: what vendors' libraries may expect of memory


@dataclass(slots=True)
class Life:
    """Roots that have one place, each the heir of the one before."""

    roots: list[Root]
    touched: int  # the instructions that need it, as bits
    before: int  # those that are over before any of these begins

    @property
    def bytes(self) -> Dim:
        return self.roots[0].bytes

    @property
    def first(self) -> int:
        return (self.touched & -self.touched).bit_length()

    def ends_before(self, other: "Life") -> bool:
        return not self.touched & ~other.before

    def joined(self, heir: "Life") -> "Life":
        return Life([*self.roots, *heir.roots], self.touched | heir.touched, self.before & heir.before)


Place: TypeAlias = tuple[Life, Dim]  # and its offset in the arena


def planned(program: Program) -> Program:
    """Sets the offset of every root in the arena, and the arena's size."""
    touches = program.touches()
    arena = [root for root in program.roots() if root.kind is RootKind.ARENA]
    lives = [Life([root], touches[id(root)], _before_all(program, touches[id(root)])) for root in arena]
    total: Dim = 0
    for life in lives:
        total = total + _aligned(life.bytes)
    program.unplanned_bytes = total
    chains = _chained(lives, heirs(program))
    # One place for several values binds the plan: rarely it needs more of the arena than a plan that is free.
    plans = [_best_fit([life for life in plan if isinstance(life.bytes, int)]) for plan in (chains, lives)]
    fixed = min(plans, key=_end)
    growing, program.arena_bytes = _behind(_end(fixed), [life for life in chains if not isinstance(life.bytes, int)])
    for life, offset in (*fixed, *growing):
        for root in life.roots:
            root.offset = offset
    return program


def _chained(lives: list[Life], taken: dict[int, Root]) -> list[Life]:
    """The lives with each heir in that of whose place it takes."""
    chains: dict[int, Life] = {}
    last: dict[int, int] = {}  # by the id of a root: the first root of its chain
    for life in sorted(lives, key=lambda life: life.first):
        (root,) = life.roots
        earlier = taken.get(id(root))
        key = id(root) if earlier is None else last[id(earlier)]
        chains[key] = chains[key].joined(life) if key in chains else life
        last[id(root)] = key
    return list(chains.values())


def _before_all(program: Program, touched: int) -> int:
    """The instructions that are over before any of `touched` begins."""
    common = (1 << len(program.instructions)) - 1
    for at in range(touched.bit_length()):
        if touched >> at & 1:
            common &= program.before(at)
    return common


def _best_fit(lives: list[Life]) -> list[Place]:
    """Large ones first, each at the lowest free place."""
    placed: list[Place] = []  # in the order of their offsets
    for life in sorted(lives, key=lambda life: (-int(life.bytes), life.first)):
        size, offset = int(_aligned(life.bytes)), 0
        for other, start in placed:
            if not other.ends_before(life) and not life.ends_before(other):
                if offset + size <= int(start):
                    break
                offset = max(offset, int(start + _aligned(other.bytes)))
        insort(placed, (life, offset), key=lambda place: int(place[1]))
    return placed


def _behind(end: Dim, lives: list[Life]) -> tuple[list[Place], Dim]:
    """What follows from the symbols, from `end` on, and where it ends; a place is shared by values of one size only."""
    found: list[Place] = []
    open_: list[Place] = []  # the last life of each place
    for life in sorted(lives, key=lambda life: life.first):
        for at, (other, offset) in enumerate(open_):
            if other.ends_before(life) and _aligned(other.bytes) == _aligned(life.bytes):
                open_[at] = (life, offset)
                break
        else:
            open_.append((life, end))
            offset, end = end, end + _aligned(life.bytes)
        found.append((life, offset))
    return found, end


def _end(places: list[Place]) -> int:
    """The bytes up to the end of the last place, all of known sizes."""
    return max((int(offset + _aligned(life.bytes)) for life, offset in places), default=0)


def _aligned(size: Dim) -> Dim:
    if isinstance(size, int):
        return -(-size // ALIGNMENT) * ALIGNMENT
    return FloorDiv(size + ALIGNMENT - 1, ALIGNMENT) * ALIGNMENT

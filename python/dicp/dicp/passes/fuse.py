"""Groups elementwise kernels that loop over the same elements, so that what one gives the next stays in a register."""

from dataclasses import dataclass, field, replace

from dicp.dims import all_same, apart, same, same_access
from dicp.loops import common, lifted, reshaped, spread, turned
from dicp.program import Instruction, Island, Kernel, Operand, Program, RootKind, Step, View

_MOST_STEPS = 96  # of a kernel: compilers and registers have an end
_MOST_VIEWS = 24
_FEW_STEPS = 3  # e.g. a conversion and a factor: what is done again rather than stored and read
_OUTSIDE = -1  # what no id of a root is: where operators that are not torch's own meet


@dataclass(slots=True)
class _Group:
    instruction: Instruction | None  # None: another group has it
    before: int = 0  # the groups that must run first, as bits
    reads: set[int] = field(default_factory=set)
    writes: set[int] = field(default_factory=set)


def fused(program: Program) -> Program:
    """Joins each kernel with one that gives or shares what it reads, where nothing between stands in the way."""
    groups: list[_Group] = []
    passed = _passed_on(program)
    for instruction in program.instructions:
        new = _group(instruction)
        direct = [g for g in range(len(groups)) if _depends(new, groups[g])]
        joined = _joined(groups, new, direct, passed) if isinstance(instruction, Kernel) else None
        if joined is not None:
            _absorb(groups, joined, direct, passed)
        else:
            new.before = _closure(groups, direct)
            groups.append(new)
    program.instructions = _scheduled(groups)
    return program


def _group(instruction: Instruction) -> _Group:
    group = _Group(
        instruction=instruction,
        reads={id(view.root) for view in instruction.reads},
        writes={id(view.root) for view in instruction.writes},
    )
    if isinstance(instruction, Island) and instruction.foreign:
        group.writes.add(_OUTSIDE)
    return group


def _depends(later: _Group, earlier: _Group) -> bool:
    return bool(later.reads & earlier.writes or later.writes & (earlier.reads | earlier.writes))


def _closure(groups: list[_Group], direct: list[int]) -> int:
    bits = 0
    for g in direct:
        group = groups[g]
        bits |= group.before | 1 << g
    return bits


def _absorb(groups: list[_Group], at: int, direct: list[int], passed: set[int]) -> None:
    """Joins a group with others that give what its last kernel reads."""
    group = groups[at]
    for d in reversed(direct):
        other = groups[d]
        if d == at or not isinstance(other.instruction, Kernel) or not isinstance(group.instruction, Kernel):
            continue
        between = any(group.before >> k & 1 and groups[k].before >> d & 1 for k in range(len(groups)) if k != d)
        if between or other.before >> at & 1:
            continue
        kernel = _merged(other.instruction, group.instruction, passed)
        if kernel is None:
            continue
        group.instruction, other.instruction = kernel, None
        group.reads |= other.reads
        group.writes |= other.writes
        group.before = (group.before | other.before) & ~(1 << d)
        other.reads, other.writes = set(), set()
        for after in groups:
            if (after.before >> d & 1 or after.before >> at & 1) and after is not group:
                after.before = (after.before | group.before | 1 << at) & ~(1 << d)


def _joined(groups: list[_Group], new: _Group, direct: list[int], passed: set[int]) -> int | None:
    """The group that takes the kernel: one that it depends on, the last first, or one that reads what it reads."""
    siblings = [
        g
        for g, other in enumerate(groups)
        if g not in direct and isinstance(other.instruction, Kernel) and other.reads & new.reads
    ]
    for g in [*reversed(direct), *reversed(siblings[-8:])]:
        group = groups[g]
        if not isinstance(group.instruction, Kernel):
            continue
        others = _closure(groups, [d for d in direct if d != g])
        if others >> g & 1:
            continue  # what runs between them needs the one and is needed by the other
        # Those that come after the group must not be needed by the kernel that joins it: that is what was just asked.
        assert isinstance(new.instruction, Kernel)
        kernel = _merged(group.instruction, new.instruction, passed)
        if kernel is None:
            continue
        group.instruction = kernel
        group.reads |= new.reads
        group.writes |= new.writes
        group.before |= others & ~(1 << g)
        for after in groups:
            if after.before >> g & 1:
                after.before |= group.before
        return g
    return None


def _passed_on(program: Program) -> set[int]:
    """The roots, by id, that one instruction writes and one other reads."""
    touches = program.touches()
    own = (view.root for i in program.instructions for view in i.writes if view.root.kind is RootKind.ARENA)
    return {id(root) for root in own if touches[id(root)].bit_count() == 2}


def _merged(first: Kernel, second: Kernel, passed: set[int]) -> Kernel | None:
    """One loop that does both; None where they do not visit the same elements in the same order."""
    if not all_same(first.sizes, second.sizes):
        found = _over_one_loop(first, second) or _repeated(first, second, passed)
        if found is None:
            return None
        first, second = found
    substitutes: dict[int, View | Step] = {}
    for view in second.reads:
        stored = [(written, step) for written, step in first.results if written.root is view.root]
        if stored:
            given = next((step for written, step in stored if same_access(view, written)), None)
            if given is None:
                return None
            substitutes[id(view)] = given
            continue
        for other_view in first.reads:
            if same_access(view, other_view):
                substitutes[id(view)] = other_view
    for view, _ in second.results:
        read = [v for v in first.reads if v.root is view.root]
        if any(not same_access(view, v) for v in read):
            return None
        if any(v.root is view.root and not apart(v, view) for v in first.writes):
            return None
    steps: dict[int, Step] = {}
    for step in second.steps:
        operands = tuple(_substituted(operand, substitutes, steps) for operand in step.operands)
        steps[id(step)] = replace(step, operands=operands)
    results = [*first.results, *((view, steps[id(step)]) for view, step in second.results)]
    kernel = Kernel(sizes=first.sizes, results=results, names=[*first.names, *second.names])
    if len(kernel.steps) > _MOST_STEPS or len(kernel.reads) + len(results) > _MOST_VIEWS:
        return None
    return kernel


def _repeated(first: Kernel, second: Kernel, passed: set[int]) -> tuple[Kernel, Kernel] | None:
    """A short loop of few steps, again for each element that reads its result, which nobody else needs."""
    few = not first.folds and not first.counts and len(first.steps) <= _FEW_STEPS
    if not few or any(id(view.root) not in passed for view in first.writes):
        return None
    for view in second.reads:
        given = next((written for written in first.writes if written.root is view.root), None)
        if given is None or not any(same(stride, 0) for stride in view.strides):
            continue
        kept = [d for d, stride in enumerate(view.strides) if not same(stride, 0)]
        split = reshaped(first, tuple(view.sizes[d] for d in kept))
        other = None if split is None else spread(split, second.sizes, kept)
        if other is not None and any(v.root is view.root and same_access(v, view) for v in other.writes):
            return other, second
    return None


def _over_one_loop(first: Kernel, second: Kernel) -> tuple[Kernel, Kernel] | None:
    """Both as loops over the same sizes."""
    if first.folds and second.folds:
        return None
    if first.folds and (other := reshaped(second, first.sizes) or lifted(second, first.sizes)) is not None:
        return first, other
    if second.folds and (other := reshaped(first, second.sizes) or lifted(first, second.sizes)) is not None:
        return other, second
    if (found := _in_one_order(first, second)) is not None:
        return found
    sizes = common(first.sizes, second.sizes)
    one, other = (None, None) if sizes is None else (reshaped(first, sizes), reshaped(second, sizes))
    return None if one is None or other is None else _in_one_order(one, other) or (one, other)


def _in_one_order(first: Kernel, second: Kernel) -> tuple[Kernel, Kernel] | None:
    """Both with the dimensions in one order, where what the second reads of the first says how: rows that fold stay."""
    for view in second.reads:
        given = next((written for written in first.writes if written.root is view.root), None)
        if given is None:
            continue
        if len(given.sizes) == len(view.sizes):
            pairs: list[tuple[Kernel | None, Kernel | None]] = [(first, second)]
        else:  # one of them has several dimensions where the other has one
            pairs = [(_split_as(first, view), second), (first, _split_as(second, given))]
        for one, other in pairs:
            if one is None or other is None:
                continue
            written = next(v for v in one.writes if v.root is view.root)
            read = next(v for v in other.reads if v.root is view.root)
            if other.folds:
                if (turn := turned(one, written, read)) is not None:
                    return turn, other
            elif (turn := turned(other, read, written)) is not None:
                return one, turn
    return None


def _split_as(kernel: Kernel, view: View) -> Kernel | None:
    """The loop over the dimensions of a view of other rank, the slowest first; None where it is not one of those."""
    if not all(isinstance(stride, int) and stride > 0 for stride in view.strides):
        return None
    steps = sorted(zip(view.strides, view.sizes, strict=True), key=lambda step: -int(step[0]))
    return reshaped(kernel, tuple(size for _, size in steps))


def _substituted(operand: Operand, substitutes: dict[int, View | Step], steps: dict[int, Step]) -> Operand:
    if isinstance(operand, View):
        return substitutes.get(id(operand), operand)
    return steps[id(operand)] if isinstance(operand, Step) else operand


def _scheduled(groups: list[_Group]) -> list[Instruction]:
    """In an order that every group's needs come before it; as the graph had them where that is free."""
    done = 0
    result: list[Instruction] = []
    waiting = [at for at, group in enumerate(groups) if group.instruction is not None]
    while waiting:
        ready = next(at for at in waiting if groups[at].before & ~done == 0)
        waiting.remove(ready)
        done |= 1 << ready
        instruction = groups[ready].instruction
        assert instruction is not None
        result.append(instruction)
    return result

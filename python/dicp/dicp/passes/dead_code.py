"""Instructions and stores that nobody reads."""

from dataclasses import replace

from dicp.program import Instruction, Island, Kernel, Program, Root, RootKind, View


def without_dead_code(program: Program) -> Program:
    """Drops what only writes memory that is neither read later nor returned; random operators draw on."""
    needed = {id(r.value.root) for r in program.results if isinstance(r.value, View)}
    kept = []
    for instruction in reversed(program.instructions):
        if isinstance(instruction, Kernel):
            own = {id(view.root) for view in instruction.reads}
            live = [(v, s) for v, s in instruction.results if _lives(v.root, needed) or id(v.root) in own]
            if not live:
                continue
            instruction = replace(instruction, results=live)
        elif not _matters(instruction, needed):
            continue
        needed |= {id(view.root) for view in instruction.reads}
        kept.append(instruction)
    program.instructions = kept[::-1]
    return program


def _matters(instruction: Instruction, needed: set[int]) -> bool:
    if isinstance(instruction, Island) and (instruction.foreign or not instruction.writes):
        return True
    if not isinstance(instruction, Kernel) and instruction.random:
        return True
    return any(_lives(view.root, needed) for view in instruction.writes)


def _lives(root: Root, needed: set[int]) -> bool:
    own = root.kind in (RootKind.ARENA, RootKind.ISLAND) or (root.kind is RootKind.SLOT and root.index < 0)
    return not own or id(root) in needed

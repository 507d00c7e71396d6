"""Which instructions may run at once: each gets a stream, and what it needs of the others is waited for."""

from dicp.program import Dim, Instruction, Island, Program, Schedule, View, product

_LAUNCH = 1 << 14  # bytes that are moved in the time of a launch
_HANDOVER = 1 << 15  # and in that of an event between two streams
_PAYS = 0.85  # of the time on one stream


def on_streams(program: Program, streams: int) -> Program:
    """Spreads the instructions over up to `streams` streams; leaves them on one where that saves little.

    What each costs is estimated by the memory that it touches. Operators of the framework stay on the first stream.
    """
    needs = _needs(program.instructions)
    costs = [_cost(instruction) for instruction in program.instructions]
    placed, end = _placed(program.instructions, needs, costs, streams)
    if max(placed, default=0) > 0 and end < _PAYS * sum(costs):
        program.schedule = _schedule(placed, needs)
    return program


def _needs(instructions: list[Instruction]) -> list[list[int]]:
    """By instruction: those before it that touch the same memory, where one of the two writes."""
    reads = [{id(view.root) for view in i.reads} for i in instructions]
    writes = [{id(view.root) for view in i.writes} for i in instructions]
    return [
        [e for e in range(at) if writes[e] & (reads[at] | writes[at]) or reads[e] & writes[at]]
        for at in range(len(instructions))
    ]


def _placed(
    instructions: list[Instruction], needs: list[list[int]], costs: list[int], streams: int
) -> tuple[list[int], int]:
    """The stream on which each would end first, and when the last ends."""
    placed: list[int] = []
    ends: list[int] = []
    free = [0] * streams
    for at, instruction in enumerate(instructions):

        def start(stream: int, at: int = at) -> int:
            given = (ends[e] + (0 if placed[e] == stream else _HANDOVER) for e in needs[at])
            return max(free[stream], *given, 0)

        choice = 0 if isinstance(instruction, Island) else min(range(streams), key=lambda s: (start(s), s))
        ends.append(start(choice) + costs[at])
        placed.append(choice)
        free[choice] = ends[at]
    return placed, max(ends, default=0)


def _schedule(placed: list[int], needs: list[list[int]]) -> Schedule:
    known = [0] * (max(placed) + 1)  # what is over, by stream, when its next instruction begins
    waits: list[tuple[int, ...]] = []
    before: list[int] = []
    for at, stream in enumerate(placed):
        waited = []
        for earlier in reversed(needs[at]):
            if not known[stream] >> earlier & 1:
                waited.append(earlier)
                known[stream] |= before[earlier] | 1 << earlier
        waits.append(tuple(waited))
        before.append(known[stream])
        known[stream] |= 1 << at
    return Schedule(streams=tuple(placed), waits=tuple(waits), before=tuple(before))


def _cost(instruction: Instruction) -> int:
    return _LAUNCH + sum(_bytes(view) for view in (*instruction.reads, *instruction.writes))


def _bytes(view: View) -> int:
    """Of elements that differ; of symbols nobody knows."""
    lengths = [size for size, stride in zip(view.sizes, view.strides, strict=True) if stride != 0]
    elements: Dim = product(lengths)
    return elements * view.dtype.itemsize if isinstance(elements, int) else _LAUNCH

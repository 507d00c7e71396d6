"""Programs on several streams: what needs another thing waits for it, in memory, too, and results are right."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dicp.passes.memory import planned
from dicp.passes.streams import on_streams
from dicp.program import Instruction, Island, LibraryCall, Program, Root, RootKind, View
from tests.processes import run_python


def value(size: int) -> View:
    return View(root=Root(kind=RootKind.ARENA, bytes=size), dtype=torch.uint8, sizes=(size,), strides=(1,))


@st.composite
def scheduled(draw: Any) -> Program:
    """Calls and operators of the framework over what those before them made; some write to it again."""
    values = [value(1 << 20)]
    first = LibraryCall(symbol="", arguments=(), reads=(), writes=(values[0],))
    instructions: list[Instruction] = [first]
    for _ in range(draw(st.integers(1, 12))):
        reads = tuple(draw(st.lists(st.sampled_from(values), min_size=1, max_size=3)))
        again = draw(st.integers(0, 5)) == 0
        writes = (draw(st.sampled_from(values)) if again else value(draw(st.sampled_from((256, 1 << 20)))),)
        values.extend(writes)
        if draw(st.integers(0, 4)) == 0:
            island: dict[str, Any] = {"operator": "", "overload": "", "results": (), "reason": ""}
            instructions.append(Island(arguments=(), reads=reads, writes=writes, **island))
        else:
            instructions.append(LibraryCall(symbol="", arguments=(), reads=reads, writes=writes))
    program = Program(device=torch.device("cpu"), arguments=0, symbols={}, instructions=instructions, results=[])
    return planned(on_streams(program, draw(st.integers(2, 4))))


def over_before(program: Program) -> list[set[int]]:
    """By instruction: what is over when it begins, by the order of each stream and by the waits."""
    count = len(program.instructions)
    if program.schedule is None:
        return [set(range(at)) for at in range(count)]
    found: list[set[int]] = []
    last: dict[int, int] = {}  # by stream
    for at in range(count):
        stream = program.schedule.streams[at]
        direct = [*program.schedule.waits[at], *([last[stream]] if stream in last else [])]
        found.append(set().union(*(found[e] | {e} for e in direct)))
        last[stream] = at
    return found


@given(scheduled())
def test_instructions_that_touch_one_value_are_in_order(program: Program) -> None:
    over = over_before(program)
    for at, instruction in enumerate(program.instructions):
        assert {e for e in range(at) if program.before(at) >> e & 1} == over[at]
        if isinstance(instruction, Island) and program.schedule is not None:
            assert program.schedule.streams[at] == 0
        for earlier, other in enumerate(program.instructions[:at]):
            written = {id(view.root) for view in (*instruction.writes, *other.writes)}
            both = {id(v.root) for v in (*instruction.reads, *instruction.writes)}
            both &= {id(v.root) for v in (*other.reads, *other.writes)}
            assert not both & written or earlier in over[at]


@given(scheduled())
def test_values_of_instructions_that_run_at_once_lie_apart(program: Program) -> None:
    over, touches, roots = over_before(program), program.touches(), program.roots()
    for i, root in enumerate(roots):
        for other in roots[:i]:
            apart = root.offset + root.bytes <= other.offset or other.offset + other.bytes <= root.offset
            one, two = ({at for at in range(len(over)) if touches[id(r)] >> at & 1} for r in (root, other))
            assert apart or all(one <= over[at] for at in two) or all(two <= over[at] for at in one)


def chain(length: int, after: View | None = None) -> list[Instruction]:
    instructions: list[Instruction] = []
    for _ in range(length):
        made = value(1 << 20)
        reads = () if after is None else (after,)
        instructions.append(LibraryCall(symbol="", arguments=(), reads=reads, writes=(made,)))
        after = made
    return instructions


@pytest.mark.parametrize(("instructions", "streams"), [([*chain(4), *chain(4)], 2), (chain(8), 1), (chain(1), 1)])
def test_streams_are_taken_where_they_pay(instructions: list[Instruction], streams: int) -> None:
    program = Program(device=torch.device("cpu"), arguments=0, symbols={}, instructions=instructions, results=[])
    schedule = on_streams(program, 3).schedule
    assert streams == (1 if schedule is None else max(schedule.streams) + 1)


PROGRAM = """
import torch, torch_dipu
torch_dipu.start()
from dicp import explain

def branches(x, w):
    made = []
    for factor in range(1, 5):
        y = x.t().contiguous() if factor % 2 else x
        for _ in range(3):
            y = torch.softmax((y @ w).tanh() * factor, -1).cumsum(-1)
        made.append(y)
    joined = torch.cat(made, 0)
    return joined.sum(), made[0] * made[3], joined

torch.manual_seed(1)
x, w = torch.randn(96, 96, dtype=torch.float64), torch.randn(96, 96, dtype=torch.float64) / 10
leaves = [x.clone().requires_grad_(), w.clone().requires_grad_()]
expected = branches(*leaves)
(expected[0] + expected[1].sum()).backward()
there = [x.to("dipu").requires_grad_(), w.to("dipu").requires_grad_()]
run = torch.compile(branches, backend="diopi", dynamic=False)
for step in range(12):
    for leaf in there:
        leaf.grad = None
    found = run(*there)
    (found[0] + found[1].sum()).backward()
    scratch = torch.full((96, 96), float(step), device="dipu", dtype=torch.float64) * found[2][:96]
    for one, other in zip((*found, *(leaf.grad for leaf in there)), (*expected, *(leaf.grad for leaf in leaves))):
        torch.testing.assert_close(one.detach().cpu(), other.detach())
    torch.testing.assert_close(scratch.cpu(), expected[2].detach()[:96] * step)
print([1 if r.program.schedule is None else max(r.program.schedule.streams) + 1 for r in explain.reports()])
"""


@pytest.mark.parametrize("mode", ["0", "1"], ids=["synchronous", "asynchronous"])
def test_training_on_several_streams_gives_what_the_cpu_gives(compiler: Any, programs: Path, mode: str) -> None:
    result = run_python("-c", PROGRAM, DICP_STREAMS="3", DROPLET_ASYNC=mode, DICP_CACHE=str(programs))
    assert result.stdout.strip() == "[3, 3]", result.stdout + result.stderr


def test_a_number_of_streams_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    from dicp.settings import BadSetting, settings

    monkeypatch.setenv("DICP_STREAMS", "many")
    with pytest.raises(BadSetting, match="DICP_STREAMS is 'many': set it to a number from 1 to 16"):
        settings()

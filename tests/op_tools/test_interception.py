"""One mode for all tools: they come and go in any order, in several threads, among other modes."""

import os
import threading

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import op_tools


class Seen(op_tools.OpObserve):
    """Notes the overloads that it sees."""

    def __init__(self, ops: str = ".*", **options: object) -> None:
        super().__init__(ops, write=lambda line: self.lines.append(line), labels=True, **options)
        self.lines: list[str] = []

    @property
    def overloads(self) -> list[str]:
        return [word.partition("(")[0] for line in self.lines for word in line.split() if word.startswith("aten.")]


def test_a_tool_sees_what_runs_while_it_is_on():
    x = torch.ones(2)
    with Seen() as seen:
        x + 1
    x * 2
    assert seen.overloads == ["aten.add.Tensor"]


def test_tools_stop_in_any_order():
    x = torch.ones(2)
    first, second = Seen().start(), Seen().start()
    first.stop()
    x + 1
    second.end()
    x * 2
    assert (first.overloads, second.overloads) == ([], ["aten.add.Tensor"])


def test_a_tool_stops_below_modes_that_came_after_it():
    class Other(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Other.calls += 1
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    seen = Seen().start()
    with Other():
        seen.stop()
        x + 1
    x * 2
    assert (seen.overloads, Other.calls) == ([], 1)


def test_a_tool_that_is_on_is_not_started_again():
    with Seen() as seen, pytest.raises(RuntimeError, match="the tool is on in this thread already; stop it first"):
        seen.start()
    torch.ones(2) + 1
    assert op_tools.active() == ()


def test_forward_backward_and_optimizer_are_told_apart():
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    with Seen() as seen:
        layer(torch.ones(1, 3)).sum().backward()
        optimizer.step()
    phases = {line.split()[1] for line in seen.lines}
    assert phases == {"forward", "backward", "optimizer"}
    assert any(line.split()[1:3] == ["forward", "torch.nn.functional.linear"] for line in seen.lines)


def test_lists_name_functions_of_torch_overloads_packets_and_functions_of_the_contract():
    x = torch.ones(2, 3)
    layer = torch.nn.Linear(3, 2)

    def seen_by(ops: str) -> list[str]:
        with torch.no_grad(), Seen(ops) as seen:
            layer(x)
            torch.relu(x)
            x.mul(2)
        return seen.overloads

    assert "aten.addmm.default" in seen_by("torch.nn.functional.linear") and "aten.relu.default" not in seen_by(
        "torch.nn.functional.linear"
    )
    assert seen_by("aten.relu") == ["aten.relu.default"]
    assert seen_by("aten.mul.Tensor, aten.relu.default") == ["aten.relu.default", "aten.mul.Tensor"]
    assert seen_by("diopiRelu") == ["aten.relu.default"]
    assert seen_by("aten.re.*") == ["aten.relu.default"]
    assert seen_by("relu") == []


def test_what_is_disabled_wins(monkeypatch):
    monkeypatch.setenv("OP_OBSERVE_LIST", "aten.*")
    monkeypatch.setenv("OP_OBSERVE_DISABLE_LIST", "aten.relu")
    lines: list[str] = []
    with op_tools.OpObserve(write=lines.append):
        torch.relu(torch.ones(2)) + 1
    assert not any("relu" in line for line in lines) and any("aten.add.Tensor" in line for line in lines)


def test_a_condition_chooses_calls():
    with Seen(condition_func=lambda name, *args, **kwargs: "relu" in name and args[0].dim() == 2) as seen:
        torch.ones(2).relu()
        torch.ones(2, 2).relu()
    assert seen.overloads == ["aten.relu.default"]


def test_a_list_that_is_no_expression_is_refused():
    with pytest.raises(ValueError, match=r"'aten\.\(' is neither the name of an operator nor a regular expression"):
        Seen("aten.(")


def test_threads_that_start_meanwhile_are_watched():
    x = torch.ones(2)
    with Seen() as seen:
        thread = threading.Thread(target=lambda: x + 1)
        thread.start()
        thread.join()
    other = threading.Thread(target=lambda: x * 2)
    other.start()
    other.join()
    assert seen.overloads == ["aten.add.Tensor"]


# The thread lets go of what is torch's own 0.3 s after it was joined, when the interpreter ends and holds its lock.
ENDING = """
import atexit, ctypes, threading

atexit.register(ctypes.PyDLL(None).usleep, 600_000)  # runs last: no bytecode between it and the end

import torch
import op_tools

libc = ctypes.CDLL(None)


def work():
    x + 1
    if started_inside:
        tool.start()
    assert libc.__cxa_thread_atexit_impl(libc.usleep, ctypes.c_void_p(300_000), None) == 0


started_inside = STARTED_INSIDE
x = torch.ones(3)
tool = op_tools.OpFallback("aten.add")
if not started_inside:
    tool.start()
thread = threading.Thread(target=work)
thread.start()
thread.join()
tool.stop()
"""


@pytest.mark.parametrize("started_inside", [False, True])
def test_a_thread_that_ended_holds_no_tool_when_the_process_ends(run_python, started_inside):
    done = run_python("-c", ENDING.replace("STARTED_INSIDE", str(started_inside)))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_process_is_not_watched():
    with Seen():
        child = os.fork()
        if child == 0:
            os._exit(len(op_tools.active()))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_compiled_functions_are_seen_as_eager_ones():
    compiled = torch.compile(lambda x: torch.relu(x) + 1, backend="eager")
    with Seen() as seen:
        compiled(torch.ones(2))
    assert seen.overloads[-2:] == ["aten.relu.default", "aten.add.Tensor"]


def test_recomputation_and_autocast_are_seen():
    layer = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
    x = torch.ones(2, 4, requires_grad=True)
    with Seen() as seen, torch.autocast("cpu", torch.bfloat16):
        torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).sum().backward()
    products = [line for line in seen.lines if "aten.addmm.default" in line]
    assert [line.split()[1] for line in products] == ["forward", "forward", "backward"]
    assert all("bfloat16" in line for line in products)

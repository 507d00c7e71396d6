"""The device and forks: before its first use a process may be forked, and its children use the device; later not."""

from collections.abc import Callable
from typing import Any

import pytest

START = """
import os, threading, time, torch, torch_dipu
torch_dipu.start()

def backward(device):
    x = torch.ones(3, device=device, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]

def child(function):
    pid = os.fork()
    if pid == 0:
        try:
            function()
            os._exit(0)
        except BaseException as error:
            print(type(error).__name__, str(error).splitlines()[0], flush=True)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def backward_threads():
    names = (open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task"))
    return sum(name.startswith("pt_autograd") for name in names)

def has_a_thread_for_each_device():
    until = time.monotonic() + 20
    while backward_threads() < torch.dipu.device_count() and time.monotonic() < until:  # one names itself once it runs
        time.sleep(0.01)
    return backward_threads() == torch.dipu.device_count()
"""

PROGRAMS = {
    "the device in a child": "print(child(lambda: backward('dipu')))",
    "the device in a child after a backward on the CPU": "backward('cpu'); print(child(lambda: backward('dipu')))",
    "both in a child": "backward('cpu'); print(child(lambda: (backward('dipu'), backward('cpu'), backward('dipu:1'))))",
    "the device in two children": "print(child(lambda: backward('dipu')) + child(lambda: backward('dipu')))",
    "the device in a child of a child": "print(child(lambda: os._exit(child(lambda: backward('dipu')))))",
    "the device after a child": "child(lambda: backward('cpu')); backward('dipu'); print(0)",
    "questions before a fork": """
torch.manual_seed(1)
torch.dipu.device_count(), torch.dipu.is_available(), torch.accelerator.device_count(), torch.dipu.get_rng_state()
print(child(lambda: backward("dipu")))
""",
    "the CPU in a child of a process that uses the device without a backward": """
torch.ones(3, device="dipu")
print(child(lambda: backward("cpu")))
""",
    "the device after a backward on the CPU": """
backward("cpu")
assert backward_threads() == 0
backward("dipu"), backward("dipu:1"), backward("cpu")
assert has_a_thread_for_each_device()
print(0)
""",
    "the device first used in another thread": """
backward("cpu")
threads = [threading.Thread(target=backward, args=(f"dipu:{index % 2}",)) for index in range(4)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
backward("dipu")
assert has_a_thread_for_each_device()
print(0)
""",
    "the device first used in a backward on the CPU": """
class Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            backward("dipu")
        return (grad.to("dipu") * 3).cpu()

x = torch.ones(2, requires_grad=True)
Through.apply(x).sum().backward()
assert x.grad.tolist() == [3, 3]
print(0)
""",
    "a seed from before the first use": """
torch.manual_seed(7)
first = torch.rand(4, device="dipu")
torch.manual_seed(7)
assert torch.dipu.initial_seed() == 7 and torch.equal(first, torch.rand(4, device="dipu"))
print(0)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_before_the_first_use(run_python: Callable[..., Any], name: str) -> None:
    result = run_python(START + PROGRAMS[name])
    assert result.stdout.split() == ["0"], result.stdout + result.stderr


def test_after_the_first_use(run_python: Callable[..., Any]) -> None:
    result = run_python(START + "torch.ones(1, device='dipu'); print(child(lambda: backward('dipu')))")
    refusal = "RuntimeError dipu cannot be used in a forked process; start workers with the method 'spawn'"
    assert result.stdout.splitlines() == [refusal, "1"], result.stderr

"""In which thread a backward runs."""

from collections.abc import Callable
from typing import Any

import pytest

PROGRAM = """
import threading, torch, torch_dipu
torch_dipu.start()

def stays(device):
    threads = []
    x = torch.ones(2, device=device, requires_grad=True)
    doubled = 2 * x
    doubled.register_hook(lambda gradient: threads.append(threading.get_ident()))
    doubled.sum().backward()
    return threads == [threading.get_ident()] and x.grad.tolist() == [2, 2]

def first():
    print(stays("dipu"), stays("dipu:1"), stays("cpu"))
    with torch.autograd.set_multithreading_enabled(True):
        print(stays("dipu"), stays("dipu:1"), stays("cpu"))
    print(stays("dipu"))
"""
HERE = [["True"] * 3, ["False", "False", "True"], ["True"]]
APART = [["False", "False", "True"]] * 2 + [["False"]]


@pytest.mark.parametrize(("asynchronous", "expected"), [("0", HERE), ("1", APART)])
def test_where_the_chip_works(run_python: Callable[..., Any], asynchronous: str, expected: list[list[str]]) -> None:
    """In the caller's where the chip works in it too, unless asked otherwise; else in torch's thread for the device."""
    result = run_python(PROGRAM + "first()", DROPLET_ASYNC=asynchronous)
    assert [line.split() for line in result.stdout.splitlines()] == expected, result.stderr


def test_threads_that_come_later_keep_what_torch_does(run_python: Callable[..., Any]) -> None:
    result = run_python(
        PROGRAM + "first = threading.Thread(target=first)\nfirst.start(), first.join(), print(stays('dipu'))"
    )
    assert [line.split() for line in result.stdout.splitlines()] == [*HERE, ["False"]], result.stderr


def test_an_import_changes_nothing(run_python: Callable[..., Any]) -> None:
    result = run_python(
        "import torch, torch_dipu\nprint(torch._C._is_multithreading_enabled(), torch.dipu.device_count())\n"
        "torch.empty(1, device='dipu')\nprint(torch._C._is_multithreading_enabled())"
    )
    assert result.stdout.split() == ["True", "2", "False"], result.stderr

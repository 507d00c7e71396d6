"""`import ditorch`: programs for CUDA run on the accelerator that is there, and torch is put back."""

from collections.abc import Callable
from typing import Any

import pytest

DIPU = "import sys, torch, torch_dipu\ntorch_dipu.start()\n"
PROGRAM = """
import ditorch
x = torch.ones(3, device="cuda", requires_grad=True)
torch.nn.Linear(3, 1).cuda()(x).sum().backward()
torch.cuda.synchronize()
print(x.is_cuda, x.device == torch.device("cuda:0"), x.grad.device.type, torch.cuda.is_available(), ditorch.is_on())
"""
BEFORE_AND_AFTER = """
names = ("zeros", "device", "Generator")
before = [getattr(torch, name) for name in names] + [torch.Tensor.to, torch.cuda.synchronize]
import ditorch
during = torch.zeros
ditorch.undo()
ditorch.undo()
after = [getattr(torch, name) for name in names] + [torch.Tensor.to, torch.cuda.synchronize]
print(during is before[0], all(a is b for a, b in zip(before, after)), ditorch.is_on())
ditorch.start()
print(torch.zeros(1, device="cuda").device.type)
"""


@pytest.fixture
def printed(on_dipu: Callable[..., Any]) -> Callable[..., str]:
    def run(program: str, **variables: str) -> str:
        done = on_dipu("-c", program, **variables)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return run


def test_a_program_for_cuda_runs_on_dipu(printed: Callable[..., str]) -> None:
    assert printed(DIPU + PROGRAM) == "True True dipu True True\n"


def test_the_switch_is_undone_exactly(printed: Callable[..., str]) -> None:
    assert printed(DIPU + BEFORE_AND_AFTER) == "False True False\ndipu\n"


def test_it_is_off_on_request(printed: Callable[..., str]) -> None:
    program = DIPU + "before = torch.zeros\nimport ditorch\nprint(torch.zeros is before, ditorch.is_on())"
    assert printed(program, DITORCH_DISABLE_MOCK="1") == "True False\n"


@pytest.mark.parametrize("shown", ["0", "1"])
def test_a_device_is_equal_to_that_of_cuda_however_it_is_to_be_shown(printed: Callable[..., str], shown: str) -> None:
    assert printed(DIPU + PROGRAM, DITORCH_SHOW_DEVICE_AS_CUDA=shown) == "True True dipu True True\n"


def test_a_switch_that_means_nothing_is_refused(printed: Callable[..., str]) -> None:
    program = "try:\n    import ditorch\nexcept ValueError as error:\n    print(error)"
    assert printed(program, DITORCH_DISABLE_MOCK="off") == "DITORCH_DISABLE_MOCK is 'off': set it to 1, or to 0\n"


def test_without_an_accelerator_it_warns(printed: Callable[..., str]) -> None:
    told = printed("import torch, ditorch\nprint(ditorch.is_on())")
    assert told.startswith("False\n")
    assert "RuntimeWarning: ditorch: there is no accelerator, and the names of CUDA stay those of CUDA\n" in told

"""`out=` of an operator that falls back: the same tensor, the same warnings and the same errors as on the CPU."""

import subprocess
from collections.abc import Callable
from pathlib import Path

# The fake vendor has no operator of these; every warning is an error.
PROGRAM = """
import warnings
warnings.simplefilter("error")
import torch
import torch_dipu
torch_dipu.start()
x, y = (torch.arange(12.0).reshape(4, 3).add(n).to("dipu") for n in (0, 1))
host = x.cpu(), y.cpu()

# Its result is smaller than what it computes on the way; torch allocates the result beforehand.
assert torch.nn.functional.mse_loss(x, y).item() == 1

out = torch.full((4, 3), float("nan"), device="dipu")
assert torch.sub(x, y, out=out) is out and out.cpu().eq(-1).all()
empty = torch.empty(0, device="dipu")
assert torch.sub(x, y, out=empty) is empty and empty.shape == (4, 3)
gaps = torch.zeros(3, 8, device="dipu")
torch.sub(x, y, out=gaps[:, ::2].t())
assert gaps[:, ::2].cpu().eq(-1).all() and gaps[:, 1::2].cpu().eq(0).all()
values, indices = torch.empty(4, 2, device="dipu"), torch.empty(4, 2, dtype=torch.int64, device="dipu")
given = torch.topk(x, 2, out=(values, indices))
assert given[0] is values and given[1] is indices and indices.cpu().tolist() == [[2, 1]] * 4
torch.mul(x, y, out=x)  # an input at the same time
assert torch.equal(x.cpu(), host[0] * host[1])

for out in (torch.empty(2, device="dipu"), torch.empty(1, device="dipu").expand(4, 3), empty.long()):
    try:
        torch.sub(x, y, out=out)
    except (UserWarning, RuntimeError) as error:
        print(type(error).__name__, str(error)[:60])
print(sorted({row.cause for row in torch.dipu.fallback.report()}))
"""


def test_outputs(fake_vendor: Callable[..., Path], run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run_python(PROGRAM, DIPU_VENDOR_LIBRARY=str(fake_vendor("FAKE_FORM=1")))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "UserWarning An output with one or more elements was resized since it had",
        "RuntimeError unsupported operation: more than one element of the written-",
        "RuntimeError result type Float can't be cast to the desired output type L",
        "['no diopiCopyInp', 'no kernel']",
    ]

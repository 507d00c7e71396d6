"""torch's own compiler has no code for dipu: it says what to use, and compiles for the CPU as ever."""

from collections.abc import Callable
from typing import Any

import pytest

_PROGRAM = """
torch.set_num_threads(1)
x = torch.linspace(-1, 1, 8)
class Increment(torch.nn.Module):
    def forward(self, x):
        return x + 1
programs = {
    "elementwise": lambda: torch.compile(lambda x: x + 1)(x.to("dipu")),
    "reduction": lambda: torch.compile(lambda x: x.softmax(0).sum())(x.to("dipu")),
    "product": lambda: torch.compile(lambda x: x[None] @ x[:, None])(x.to("dipu")),
    "mode": lambda: torch.compile(lambda x: x + 1, mode="max-autotune")(x.to("dipu")),
    "gradient": lambda: torch.compile(lambda x: (x * x).sum())(x.to("dipu").requires_grad_()).backward(),
    "both devices": lambda: torch.compile(lambda x, y: x.cpu() + y)(x.to("dipu"), x),
    "package": lambda: torch._inductor.aoti_compile_and_package(torch.export.export(Increment(), (x.to("dipu"),))),
}
for name, run in programs.items():
    torch.compiler.reset()
    try:
        run()
        print(name, "ran")
    except Exception as error:
        print(name, "use torch.compile(model, backend='diopi')" in str(error), "KeyError" in str(error))
torch.compiler.reset()
print(torch.equal(torch.compile(lambda x: (x * 2).relu().sum())(x), (x * 2).relu().sum()))
"""


def test_a_program_without_a_backend_says_which_to_use(droplet: Callable[..., Any]) -> None:
    run = droplet(_PROGRAM)
    names = ("elementwise", "reduction", "product", "mode", "gradient", "both devices", "package")
    assert run.stdout.splitlines() == [*(f"{name} True False" for name in names), "True"], run.stderr


@pytest.mark.parametrize("program", ["import torch", "import torch._dynamo"])
def test_what_starts_the_device_imports_no_part_of_inductor(droplet: Callable[..., Any], program: str) -> None:
    run = droplet(f"{program}\nimport sys\nprint('torch_dipu.inductor' in sys.modules)")
    assert run.stdout.split() == ["False"], run.stderr

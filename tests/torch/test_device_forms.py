"""A vendor offers its device functions in one of three forms; each lacking optional entry has its fallback."""

from collections.abc import Callable
from typing import Any

import pytest

PROGRAM = """
import torch, torch_dipu
torch_dipu.start()
assert torch.dipu.device_count() == 1
x = torch.arange(6.0).reshape(2, 3)
d = x.to("dipu")
assert torch.equal((d + d).cpu(), x + x)
assert torch.equal(d.t().cpu(), x.t())
s, start, end = torch.dipu.Stream(), torch.dipu.Event(enable_timing=True), torch.dipu.Event(enable_timing=True)
with torch.dipu.stream(s):
    start.record()
    y = d + 1
    end.record()
torch.dipu.current_stream().wait_event(end)
y.record_stream(torch.dipu.current_stream())
end.synchronize()
assert end.query() and start.elapsed_time(end) >= 0 and s.query()
torch.dipu.synchronize()
assert torch.empty(4).pin_memory().is_pinned()
assert torch.dipu.get_device_properties().name == "dipu"
print("done")
"""


@pytest.mark.parametrize("form", [1, 2, 3])
def test_every_form_serves(form: int, fake_vendor: Callable[..., Any], run_python: Callable[..., Any]) -> None:
    result = run_python(PROGRAM, DIPU_VENDOR_LIBRARY=str(fake_vendor(f"FAKE_FORM={form}")))
    assert result.stdout.strip() == "done", result.stderr


def test_a_function_that_is_missing_sends_its_operators_to_the_cpu(
    fake_vendor: Callable[..., Any], run_python: Callable[..., Any]
) -> None:
    program = """
import torch, torch_dipu
torch_dipu.start()
x = torch.eye(2, device="dipu")
torch.dipu.fallback.reset()
assert torch.equal((x @ x).cpu(), torch.eye(2))
print([(row.operator, row.cause) for row in torch.dipu.fallback.report()])
print(("mm", "diopiMm") in torch.dipu.debug.unavailable_operators())
"""
    result = run_python(program, DIPU_VENDOR_LIBRARY=str(fake_vendor("FAKE_FORM=1", "FAKE_WITHOUT_MM")))
    counts, unavailable = result.stdout.splitlines()
    assert "no kernel" in counts and "aten::mm" in counts, result.stderr
    assert unavailable == "True"


ADDITIONS = """
import torch, torch_dipu
torch_dipu.start()
x = torch.arange(6.0).reshape(2, 3).to("dipu")
torch.dipu.fallback.reset()
assert torch.equal((x + x).cpu(), x.cpu() * 2)
assert torch.equal((x + 1).cpu(), x.cpu() + 1)
out_of_place = ("aten::add.Tensor", "aten::add.out")
print([(row.operator, row.cause) for row in torch.dipu.fallback.report() if row.operator in out_of_place])
unavailable = dict(torch.dipu.debug.unavailable_operators())
print("add.Tensor" in torch.dipu.debug.native_operators(), unavailable.get("add.Tensor"))
"""


@pytest.mark.parametrize(
    ("missing", "fallbacks", "state"),
    [
        ([], [], "True None"),
        (["FAKE_WITHOUT_ADD_SCALAR"], [("aten::add.Tensor", "no diopiAddScalar")], "True None"),
        (["FAKE_WITHOUT_ADD"], [("aten::add.Tensor", "no diopiAdd")], "True None"),
        (
            ["FAKE_WITHOUT_ADD", "FAKE_WITHOUT_ADD_SCALAR"],
            [("aten::add.out", "no kernel")],
            "False diopiAddScalar",
        ),
    ],
)
def test_an_operator_of_several_functions_runs_with_those_that_are_there(
    missing: list[str],
    fallbacks: list[tuple[str, str]],
    state: str,
    fake_vendor: Callable[..., Any],
    run_python: Callable[..., Any],
) -> None:
    result = run_python(ADDITIONS, DIPU_VENDOR_LIBRARY=str(fake_vendor("FAKE_FORM=1", *missing)))
    assert result.stdout.splitlines() == [str(fallbacks), state], result.stderr


def test_a_missing_function_for_some_values_leaves_them_to_the_general_one(
    fake_vendor: Callable[..., Any], run_python: Callable[..., Any]
) -> None:
    program = """
import torch, torch_dipu
torch_dipu.start()
x = torch.arange(6.0).to("dipu")
torch.dipu.fallback.reset()
assert torch.equal((x**0.5).cpu(), x.cpu() ** 0.5)
assert torch.equal((x**2).cpu(), x.cpu() ** 2)
print([(row.operator, row.cause) for row in torch.dipu.fallback.report()])
"""
    result = run_python(program, DIPU_VENDOR_LIBRARY=str(fake_vendor("FAKE_FORM=1", "FAKE_POW")))
    assert result.stdout.strip() == "[]", result.stderr

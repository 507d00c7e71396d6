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

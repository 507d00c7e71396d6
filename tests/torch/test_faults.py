"""A vendor that fails: memory runs out, a function refuses or breaks. The process goes on."""

from collections.abc import Callable
from typing import Any

import pytest

START = "import torch, torch_dipu; torch_dipu.start()\n"


def test_out_of_memory(fake_vendor: Callable[..., Any], run_python: Callable[..., Any]) -> None:
    program = """
kept = torch.empty(1 << 20, dtype=torch.uint8, device="dipu")
try:
    torch.empty(8 << 20, dtype=torch.uint8, device="dipu")
except torch.OutOfMemoryError as error:
    print(str(error).splitlines()[0])
print(kept.fill_(3).sum().item(), torch.dipu.memory_stats()["num_ooms"])
"""
    library = str(fake_vendor("FAKE_FORM=1"))
    result = run_python(START + program, DIPU_VENDOR_LIBRARY=library, FAKE_MEMORY=str(4 << 20))
    text, after = result.stdout.splitlines()
    assert text.startswith("dipu:0 is out of memory: tried to allocate 8.00 MiB; 1.00 MiB are in use by tensors"), text
    assert after == f"{3 << 20} 1", result.stderr


def test_the_cache_is_emptied_before_memory_counts_as_out(
    fake_vendor: Callable[..., Any], run_python: Callable[..., Any]
) -> None:
    program = """
first = torch.empty(3 << 20, dtype=torch.uint8, device="dipu")
del first
second = torch.empty(2 << 20, dtype=torch.uint8, device="dipu")
stats = torch.dipu.memory_stats()
print(stats["num_alloc_retries"], stats["num_ooms"], torch.dipu.memory_reserved())
"""
    library = str(fake_vendor("FAKE_FORM=1"))
    result = run_python(START + program, DIPU_VENDOR_LIBRARY=library, FAKE_MEMORY=str(4 << 20))
    assert result.stdout.strip() == f"1 0 {2 << 20}", result.stderr


RELU = """
x = torch.tensor([-1.0, 2.0]).to("dipu")
try:
    print(torch.relu(x).cpu().tolist(), [(row.operator, row.cause) for row in torch.dipu.fallback.report()])
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""


def relu_output(fake_vendor: Callable[..., Any], run_python: Callable[..., Any], status: int, **variables: str) -> str:
    library = str(fake_vendor("FAKE_FORM=1"))
    result = run_python(START + RELU, DIPU_VENDOR_LIBRARY=library, FAKE_STATUS=str(status), **variables)
    return str(result.stdout.strip() or result.stderr)


def test_statuses_that_ask_for_the_cpu(fake_vendor: Callable[..., Any], run_python: Callable[..., Any]) -> None:
    causes = {1000: "dtype not supported", 14: "forced by the vendor", 13: "not implemented"}
    for status, cause in causes.items():
        assert relu_output(fake_vendor, run_python, status) == (f"[0.0, 2.0] [('aten::relu', 'diopiRelu: {cause}')]")


def test_an_error_is_the_vendors_own_text(fake_vendor: Callable[..., Any], run_python: Callable[..., Any]) -> None:
    assert relu_output(fake_vendor, run_python, 1) == "diopiRelu failed with status 1: the fake chip is tired"


@pytest.mark.parametrize(
    ("byte", "length", "text"),
    [
        ("233", "3", "???"),
        ("101", "2000", "e" * 2000),
        ("101", "1048576", "e" * 2000 + "... (1046576 more bytes)"),
        ("255", "1048576", "?" * 2000 + "... (1046576 more bytes)"),
    ],
)
def test_an_error_is_a_text_whatever_the_vendor_gives(
    fake_vendor: Callable[..., Any], run_python: Callable[..., Any], byte: str, length: str, text: str
) -> None:
    found = relu_output(fake_vendor, run_python, 1, FAKE_ERROR_BYTE=byte, FAKE_ERROR_LENGTH=length)
    assert found == f"diopiRelu failed with status 1: {text}"


SCRATCH = """
x = torch.tensor([-1.0, 2.0]).to("dipu")
try:
    print(torch.relu(x).cpu().tolist())
except torch.OutOfMemoryError as error:
    print(type(error).__name__, error)
print(torch.dipu.memory_stats()["num_ooms"], (x.cpu() + 1).tolist())
"""


def test_a_function_that_gets_no_memory_is_out_of_memory(
    fake_vendor: Callable[..., Any], run_python: Callable[..., Any]
) -> None:
    library = str(fake_vendor("FAKE_FORM=1"))
    limits = {"DIPU_VENDOR_LIBRARY": library, "FAKE_MEMORY": str(4 << 20), "FAKE_SCRATCH": str(8 << 20)}
    result = run_python(START + SCRATCH, **limits)
    text, *_, after = result.stdout.splitlines()
    assert text.startswith("OutOfMemoryError dipu:0 is out of memory: tried to allocate 8.00 MiB"), result.stderr
    assert "It was asked for by diopiRelu." in result.stdout and after == "1 [0.0, 3.0]"


def test_a_function_that_gets_no_memory_may_ask_for_the_cpu(
    fake_vendor: Callable[..., Any], run_python: Callable[..., Any]
) -> None:
    limits = {"FAKE_MEMORY": str(4 << 20), "FAKE_SCRATCH": str(8 << 20), "FAKE_SCRATCH_STATUS": "14"}
    result = run_python(START + SCRATCH, DIPU_VENDOR_LIBRARY=str(fake_vendor("FAKE_FORM=1")), **limits)
    assert result.stdout.splitlines() == ["[0.0, 2.0]", "1 [0.0, 3.0]"], result.stderr


def test_a_forked_process_cannot_use_the_device(
    fake_vendor: Callable[..., Any], run_python: Callable[..., Any]
) -> None:
    program = """
import os
torch.ones(2, device="dipu")
child = os.fork()
if child == 0:
    try:
        torch.empty(1, device="dipu")
        os._exit(1)
    except RuntimeError as error:
        os._exit(0 if "forked process" in str(error) else 2)
print(os.waitpid(child, 0)[1])
"""
    result = run_python(START + program, DIPU_VENDOR_LIBRARY=str(fake_vendor("FAKE_FORM=1")))
    assert result.stdout.strip() == "0", result.stderr


def test_attention_whose_dropout_is_refused(fake_vendor: Callable[..., Any], run_python: Callable[..., Any]) -> None:
    """The CPU serves the first call, both ways with the same weights dropped; then torch's products do."""
    program = """
query = torch.zeros(1, 2, 6, 8).to("dipu")
value = torch.eye(8)[:6].expand(1, 2, 6, 8).contiguous().to("dipu").requires_grad_()
for _ in range(2):
    out = torch.nn.functional.scaled_dot_product_attention(query, query, value, dropout_p=0.5)
    seen = (out[..., :6] > 0).cpu()
    alike = True
    for at in range(6):
        grad = torch.zeros_like(out)
        grad[:, :, at, 0] = 1
        told = torch.autograd.grad(out, value, grad, retain_graph=True)[0][..., 0] > 0
        alike = alike and torch.equal(told.cpu(), seen[:, :, at])
    print("Fused" in out.grad_fn.name(), alike, 0.2 < seen.double().mean().item() < 0.8)
print([(row.operator, row.cause) for row in torch.dipu.fallback.report() if "fused_attention" in row.operator])
"""
    library = str(fake_vendor("FAKE_FORM=1", "FAKE_ATTENTION"))
    result = run_python(START + program, DIPU_VENDOR_LIBRARY=library)
    name = "aten::_scaled_dot_product_fused_attention_overrideable"
    assert result.stdout.splitlines() == [
        "True True True",
        "False True True",
        str(
            [
                (f"{name}_backward", "diopiMultiHeadAttentionBackward: not implemented"),
                (name, "diopiMultiHeadAttention: not implemented"),
            ]
        ),
    ], result.stderr

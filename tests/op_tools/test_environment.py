"""The environment's variables: each is documented, and each does what it says."""

import re
from pathlib import Path

import pytest
import torch

import op_tools
from op_tools import casts, environment

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "op-tools.md").read_text(encoding="utf-8")


def test_every_variable_is_in_the_documentation():
    for variable in environment.VARIABLES:
        name = variable.name.replace("<OP>", "LINEAR").replace("<DTYPE>", "(FLOAT16|BFLOAT16)")
        spelled = re.sub(r"_DISABLE_LIST$", "_LIST", name)
        assert re.search(rf"`{spelled}`", DOCS), variable.name


@pytest.mark.parametrize(
    ("tool", "variable"),
    [
        (op_tools.OpCapture, "CAPTURE"),
        (op_tools.OpAutoCompare, "AUTOCOMPARE"),
        (op_tools.OpTimeMeasure, "TIME_MEASURE"),
        (op_tools.OpFallback, "FALLBACK"),
        (op_tools.OpDtypeCast, "DTYPE_CAST"),
        (op_tools.OpObserve, "OBSERVE"),
        (op_tools.OpOverflowCheck, "OVERFLOW_CHECK"),
        (op_tools.OpRecord, "RECORD"),
    ],
)
def test_each_tool_has_its_lists(tool, variable, monkeypatch):
    from op_tools.overloads import overload_of

    relu, neg = overload_of(torch.ops.aten.relu.default), overload_of(torch.ops.aten.neg.default)
    monkeypatch.setenv(f"OP_{variable}_LIST", "aten.relu, torch.Tensor.neg")
    assert tool().selects(relu, "") and tool().selects(neg, "torch.Tensor.neg") and not tool().selects(neg, "torch.neg")
    monkeypatch.setenv(f"OP_{variable}_DISABLE_LIST", "aten.re.*")
    assert not tool().selects(relu, "torch.relu")


def test_casts_are_read_at_each_call(monkeypatch):
    x = torch.ones(2, dtype=torch.float16)
    lines: list[str] = []
    with op_tools.OpDtypeCast(), op_tools.OpObserve(write=lines.append):
        pass
    seen = _dtypes_below(x, monkeypatch, "torch.float16->torch.float64"), _dtypes_below(
        x, monkeypatch, "torch.int8->torch.int16"
    )
    assert seen == (torch.float64, torch.float16)


def _dtypes_below(x, monkeypatch, text):
    """The dtype that an operator below the cast is called with."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Below(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(args[0].dtype)
            return func(*args, **(kwargs or {}))

    monkeypatch.setenv("OP_DTYPE_CAST_DICT", text)
    with Below(), op_tools.OpDtypeCast("aten.exp"):
        assert x.exp().dtype is torch.float16
    return seen[-1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("torch.float16", "'torch.float16' is no cast; write 'torch.float16->torch.float32'"),
        ("torch.float16->torch.float", None),
        ("torch.half->torch.flaot32", "'torch.flaot32' is no dtype of torch; write 'torch.float16->torch.float32'"),
    ],
)
def test_a_cast_that_is_none_is_refused(text, message):
    if message is None:
        assert casts.parsed(text) == {torch.float16: torch.float32}
        return
    with pytest.raises(ValueError, match=re.escape(message)):
        casts.parsed(text)


def test_a_number_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("OP_TOOLS_MAX_CACHE_SIZE", "many")
    with pytest.raises(ValueError, match="OP_TOOLS_MAX_CACHE_SIZE is 'many': set it to a whole number"):
        environment.count(environment.MAX_ROWS)


def test_stacks_are_printed_on_request(monkeypatch, capsys):
    monkeypatch.setenv("OP_TOOLS_PRINT_STACK", "1")
    with op_tools.OpObserve("aten.neg", write=lambda _: None):
        torch.ones(1).neg()
    printed = capsys.readouterr().out
    assert (
        printed.startswith("torch.Tensor.neg at test_environment.py:")
        and "test_stacks_are_printed_on_request" in printed
    )

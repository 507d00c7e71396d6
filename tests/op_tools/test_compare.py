"""What is compared with the CPU, what is wrong then, and what a mismatch says."""

import csv
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

import op_tools
from op_tools.judgement import tolerance_for
from op_tools.overloads import overload_of
from op_tools.tools.compare import COLUMNS
from tests.op_tools.faulty import Faulty, harmed_input, wrong_value


def compared(**options):
    return op_tools.OpAutoCompare(".*", table=False, write=lambda _: None, **options)


def step(model, *inputs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(2):
        optimizer.zero_grad()
        model(*inputs).square().mean().backward()
        optimizer.step()


class Everything(torch.nn.Module):
    """Layers of many kinds in one small model."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(11, 8)
        self.convolution = torch.nn.Conv1d(8, 8, 3, padding=1)
        self.norm, self.batch = torch.nn.LayerNorm(8), torch.nn.BatchNorm1d(8)
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        self.lstm = torch.nn.LSTM(8, 4, bidirectional=True)

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = self.batch(self.convolution(x.transpose(1, 2))).transpose(1, 2)
        x = x + self.attention(self.norm(x), x, x)[0]
        first, second = self.lstm(x)[0].chunk(2, -1)
        return F.gelu(first) * torch.var_mean(second, -1, keepdim=True)[0] + F.softmax(x, -1).cumsum(-1)[..., :4]


def test_a_training_step_has_no_mismatch():
    torch.manual_seed(3)
    with compared() as tool:
        step(Everything(), torch.randint(11, (3, 7)))
    assert [m.text for m in tool.mismatches] == []
    assert tool.compared["aten.addcdiv_.default"] > 0
    assert sum(tool.compared.values()) > 60


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes_have_no_mismatch(dtype):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 8)).to(dtype)
    with compared() as tool:
        step(model, torch.randn(16, 64, dtype=dtype))
    assert [m.text for m in tool.mismatches] == []


@pytest.mark.parametrize(
    ("overload", "phase"),
    [("aten.gelu.default", "forward"), ("aten.gelu_backward.default", "backward"), ("aten.addmm.default", "forward")],
)
def test_a_wrong_value_is_named(overload, phase):
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU())
    with Faulty(overload, wrong_value), compared() as tool:
        step(model, torch.randn(2, 4))
    assert {m.operator for m in tool.mismatches} == {overload}
    first = tool.mismatches[0]
    (wrong,) = [d for d in first.differences if not d.good]
    assert first.phase == phase and wrong.index == (1, 7) and abs(wrong.absolute - 0.01) < 1e-4


def test_a_harmed_input_is_named():
    with Faulty("aten.relu.default", harmed_input), compared() as tool:
        torch.relu(torch.ones(3))
    assert tool.mismatches[0].harmed == ("self",)
    assert (
        tool.mismatches[0].text.startswith("call ")
        and "'self' was changed, though it is only read" in tool.mismatches[0].text
    )


def test_a_write_that_is_not_made_is_named():
    x = torch.ones(1)
    with Faulty("aten.add_.Tensor", lambda func, args, kwargs: args[0]), compared() as tool:
        x.add_(1)
    assert [d.message for d in tool.mismatches[0].differences] == [
        "self[0] is 1, expected 2, 4.19e+06 ULP off (1 of 1 is wrong)"
    ]


def test_the_wrong_dtype_is_named():
    with Faulty("aten.add.Tensor", lambda func, args, kwargs: func(*args, **kwargs).double()), compared() as tool:
        torch.ones(2) + 1
    assert tool.mismatches[0].differences[0].message == "result is of torch.float64, expected torch.float32"


def test_a_mismatch_can_end_the_program():
    said = pytest.raises(op_tools.OpMismatch, match=r"torch.relu \(aten.relu.default, forward\): result\[0\] is")
    with said, Faulty("aten.relu.default", wrong_value), compared(stop_on_mismatch=True):
        torch.relu(torch.ones(1))
    assert op_tools.active() == ()


def test_random_operators_are_left_out_with_the_reason():
    with compared() as tool:
        F.dropout(torch.ones(64), 0.5)
        torch.rand(3)
    assert tool.mismatches == [] and {reason for _, reason in tool.skipped} == {"random"}


def test_nan_and_infinity_are_like_themselves_only():
    x = torch.tensor([float("nan"), float("inf"), -float("inf")])
    with compared() as tool:
        x + 1
    assert tool.mismatches == []
    with Faulty("aten.add.Tensor", lambda func, args, kwargs: func(*args, **kwargs).nan_to_num()), compared() as tool:
        x + 1
    assert "3 of 3 are wrong" in tool.mismatches[0].text


def test_long_sums_are_given_their_roundings():
    torch.manual_seed(1)
    with compared() as tool:
        (torch.randn(8, 20000) @ torch.randn(20000, 8)).sum()
        torch.randn(100000).cumsum(0)
    assert [m.text for m in tool.mismatches] == []


def test_the_environment_sets_tolerances(monkeypatch):
    linear = overload_of(torch.ops.aten.addmm.default)
    reads = {torch.bfloat16}
    assert tolerance_for(linear, "torch.nn.functional.linear", torch.bfloat16, reads).pair is None
    monkeypatch.setenv("AUTOCOMPARE_ERROR_TOLERANCE", "1e-3,2e-3")
    assert tolerance_for(linear, "", torch.bfloat16, reads).pair == (2e-3, 1e-3)
    monkeypatch.setenv("AUTOCOMPARE_ERROR_TOLERANCE_BFLOAT16", "1e-4,1e-4")
    assert tolerance_for(linear, "", torch.bfloat16, reads).pair == (1e-4, 1e-4)
    monkeypatch.setenv("LINEAR_AUTOCOMPARE_ERROR_TOLERANCE_BFLOAT16", "0.5,0.25")
    assert tolerance_for(linear, "torch.nn.functional.linear", torch.bfloat16, reads).pair == (0.25, 0.5)
    monkeypatch.setenv("LINEAR_AUTOCOMPARE_ERROR_TOLERANCE_BFLOAT16", "0.5")
    with pytest.raises(
        ValueError, match=r"LINEAR_AUTOCOMPARE_ERROR_TOLERANCE_BFLOAT16 is '0.5': set it to two numbers"
    ):
        tolerance_for(linear, "torch.nn.functional.linear", torch.bfloat16, reads)


def test_rows_go_to_one_table_with_one_header(tmp_path, monkeypatch):
    monkeypatch.setenv("OP_TOOLS_RESULTS_DIR", str(tmp_path))
    monkeypatch.setenv("OP_TOOLS_MAX_CACHE_SIZE", "2")
    with op_tools.OpAutoCompare(".*"):
        for _ in range(7):
            torch.ones(2) + 1
    (path,) = Path(tmp_path, "op_autocompare_result").glob("*.csv")
    rows = list(csv.reader(path.open()))
    assert rows[0] == list(COLUMNS)
    assert sum(row[1].startswith("torch.Tensor.add") for row in rows) == 7 and sum(row == rows[0] for row in rows) == 1

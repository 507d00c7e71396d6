"""Casts, times, overflows, and tools for single functions."""

import json

import pytest
import torch

import op_tools
from op_tools.apply import apply_feature, apply_hook_to_ops


def trained(*tools, dtype=torch.float32):
    """The weights after three steps of AdamW under tools."""
    from contextlib import ExitStack

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 8, bias=False), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    ).to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    x = torch.randn(16, 6, dtype=dtype)
    with ExitStack() as stack:
        for tool in tools:
            stack.enter_context(tool)
        for _ in range(3):
            optimizer.zero_grad()
            y = model(x)
            y[0, 0] = 0.5  # an indexed write
            y.square().sum().backward()
            optimizer.step()
    return [value.clone() for value in model.state_dict().values()]


def test_training_in_a_wider_dtype_gives_the_same_weights_but_for_roundings(monkeypatch):
    monkeypatch.setenv("OP_DTYPE_CAST_DICT", "torch.float32->torch.float64")
    for cast, plain in zip(trained(op_tools.OpDtypeCast()), trained(), strict=True):
        assert cast.dtype is plain.dtype
        torch.testing.assert_close(cast, plain, rtol=1e-4, atol=1e-5)


def test_in_place_operators_are_cast_and_written(monkeypatch):
    monkeypatch.setenv("OP_DTYPE_CAST_DICT", "torch.float16->torch.float32")
    x = torch.ones(2, 2, dtype=torch.float16)
    with op_tools.OpDtypeCast():
        x[:, 0].add_(1)
        x[1] = 5
        y = torch.softmax(x, 1)
    assert x.tolist() == [[2, 1], [5, 5]] and y.dtype is torch.float16


def test_results_that_are_wider_by_rule_stay_wider():
    x = torch.ones(3, dtype=torch.bfloat16)
    with op_tools.OpDtypeCast():
        assert x.sum(dtype=torch.float64).dtype is torch.float64
        assert (x == x).dtype is torch.bool and x.argmax().dtype is torch.int64


def test_times_have_percentiles_bytes_and_flop(tmp_path, monkeypatch):
    monkeypatch.setenv("OP_TOOLS_RESULTS_DIR", str(tmp_path))
    a, b = torch.ones(64, 32), torch.ones(32, 16)
    with op_tools.OpTimeMeasure("aten.mm") as tool:
        for _ in range(10):
            a @ b
    (timing,) = tool.timings()
    assert (timing.calls, len(timing.samples)) == (10, 8)
    assert timing.flop == 2 * 64 * 32 * 16 and timing.bytes == 4 * (64 * 32 + 32 * 16 + 64 * 16)
    assert 0 < timing.percentile(0.5) <= timing.percentile(0.95) and timing.bandwidth > 0
    assert len(json.loads(json.dumps(tool.trace()))["traceEvents"]) == 10
    (table,) = (tmp_path / "op_time_measure_result").glob("*.csv")
    header = "name,forward_id,forward_elasped,backward_elasped,unit,input,output,grad_inputs,grad_outputs"
    assert table.read_text().splitlines()[0] == header and len(table.read_text().splitlines()) == 11


def test_overflows_are_told_where_they_come_up():
    lines = []
    with op_tools.OpOverflowCheck(write=lines.append) as tool:
        x = torch.tensor([1.0, 0.0]).log()
        x * 2
    first = tool.found[0]
    assert (first.operator, first.numbers.inf, first.numbers.nan) == ("aten.log.default", 1, 0)
    assert "aten.log.default, forward" in lines[0] and "(so were inputs)" in lines[1]


def test_an_overflow_can_end_the_program():
    with (
        pytest.raises(op_tools.Overflow, match=r"torch.Tensor.log \(aten.log.default, forward\)"),
        op_tools.OpOverflowCheck(stop_on_overflow=True, write=lambda _: None),
    ):
        torch.zeros(1).log()


def test_a_feature_is_for_one_function_and_is_undone():
    before = torch.nn.functional.gelu
    with apply_feature("torch.nn.functional.gelu", "overflow_check") as applied:
        torch.nn.functional.gelu(torch.full((1,), float("inf")) - float("inf"))
        torch.zeros(1).log()
    assert [found.operator for found in applied.tool.found] == ["aten.gelu.default"]
    assert torch.nn.functional.gelu is before


def test_two_features_of_one_function_are_undone_in_any_order():
    before = torch.softmax
    first, second = apply_feature("torch.softmax", "overflow_check"), apply_feature("torch.softmax", "overflow_check")
    first.remove()
    torch.softmax(torch.full((2,), float("nan")), 0)
    assert (len(first.tool.found), len(second.tool.found)) == (0, 1)
    second.remove()
    torch.softmax(torch.full((2,), float("nan")), 0)
    assert len(second.tool.found) == 1 and torch.softmax.__wrapped__ is before
    torch.softmax = before


def test_functions_that_are_not_torch_s_own_can_be_named(monkeypatch):
    import statistics

    def scaled(x):
        return x.log() * 2

    monkeypatch.setattr(statistics, "scaled", scaled, raising=False)
    with apply_hook_to_ops("statistics.scaled", op_tools.OpOverflowCheck, lambda x: x.dim() == 1) as applied:
        statistics.scaled(torch.zeros(1))
        statistics.scaled(torch.zeros(1, 1))
    assert len(applied.tool.found) == 2


@pytest.mark.parametrize(
    ("ops", "feature", "message"),
    [
        ("torch.addd", "fallback", "there is no function 'torch.addd'"),
        ("torch.add", "fallbak", "'fallbak' is no feature; there are op_capture, autocompare"),
    ],
)
def test_what_does_not_exist_is_refused(ops, feature, message):
    with pytest.raises(ValueError, match=message):
        apply_feature(ops, feature)


def test_lines_of_observed_calls_say_what_was_there_before_the_call_and_wait_for_the_end(monkeypatch):
    lines: list[str] = []
    x = torch.ones(2, 3).t()
    with op_tools.OpObserve(".*", write=lines.append):
        x.resize_(4)
        torch.eye(2).to_sparse()
        waiting = list(lines)
    assert waiting == []
    resized = lines[0].partition(" ")[2]
    assert resized == "forward aten.resize_.default(self=float32[3, 2] strides [1, 3], size=[4]) -> float32[4]"
    assert any(line.endswith("-> float32[2, 2]") for line in lines)
    monkeypatch.setenv("OP_TOOLS_MAX_CACHE_SIZE", "1")
    with op_tools.OpObserve(".*", write=lines.append, labels=True, locations=True):
        torch.relu(x)
        assert " torch.relu aten.relu.default(self=float32[4]) -> float32[4] at test_tools.py:" in lines[-1]

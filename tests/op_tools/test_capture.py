"""Captured calls: what is kept, how often, and that they give the same again."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import op_tools
from op_tools.replay import replay
from op_tools.store.layout import captures_in
from op_tools.store.reader import BadCapture, captures
from tests.op_tools.test_compare import Everything, step


def test_each_call_of_a_training_step_replays_to_what_it_gave(tmp_path):
    torch.manual_seed(3)
    with op_tools.OpCapture(".*", folder=tmp_path) as tool:
        step(Everything(), torch.randint(11, (3, 7)))
    found = list(captures(tmp_path))
    assert len(found) == sum(tool.writer.written.values()) > 100 and not tool.writer.left
    assert {c.record["phase"] for c in found} == {"forward", "backward", "optimizer"}
    again = [replay(capture, "cpu", against_cpu=False) for capture in found]
    assert [r.text for r in again if not r.good] == []


def test_strides_offsets_and_shared_memory_are_kept(tmp_path):
    x = torch.arange(12.0).view(3, 4)
    with op_tools.OpCapture("aten.add_", folder=tmp_path):
        x[:, 1:3].add_(x[:, :2])
    (capture,) = captures(tmp_path)
    call = capture.call("cpu")
    target, other = call.args
    assert target.stride() == (4, 1) and target.storage_offset() == 1
    assert target.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
    assert capture.outputs()["self"].tolist() == x[:, 1:3].tolist()


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[:, ::2],
        lambda x: x.t()[1:],
        lambda x: x.flatten()[5:],
        lambda x: x[:, :1].expand(3, 7),
        lambda x: x.flatten().unfold(0, 3, 1),
        lambda x: x.flatten()[:0],
        lambda x: x[1, 1],
    ],
)
def test_a_tensor_alone_keeps_its_strides_and_offset(tmp_path, view):
    x = view(torch.arange(12.0).view(3, 4))
    with op_tools.OpCapture("aten.neg", folder=tmp_path):
        x.neg()
    (capture,) = captures(tmp_path)
    (again,) = capture.call("cpu").args
    assert (again.stride(), again.storage_offset()) == (x.stride(), x.storage_offset()) and again.equal(x)


def test_a_tensor_far_apart_is_kept_without_its_gaps(tmp_path):
    x = torch.randn(1000, 1000)[:, 3]
    with op_tools.OpCapture("aten.neg", folder=tmp_path):
        x.neg()
    (capture,) = captures(tmp_path)
    assert capture.call("cpu").args[0].equal(x)
    assert sum(path.stat().st_size for path in (tmp_path / "memory").iterdir()) < 10_000


def test_equal_memory_is_kept_once(tmp_path):
    x = torch.randn(1000)
    with op_tools.OpCapture("aten.neg", folder=tmp_path):
        for _ in range(5):
            x.neg()
    assert len(list((tmp_path / "memory").iterdir())) == 2 and len(captures_in(tmp_path)) == 5


def test_equal_memory_is_not_shared_by_arguments_that_did_not_share_it(tmp_path):
    with op_tools.OpCapture("aten.native_batch_norm", folder=tmp_path):
        torch.nn.BatchNorm1d(4)(torch.randn(8, 4))  # bias and running mean are zeros both
    (capture,) = captures(tmp_path)
    assert replay(capture, "cpu", against_cpu=False).text == "torch.nn.functional.batch_norm: equal"


def test_quotas_hold(tmp_path):
    with op_tools.OpCapture(".*", folder=tmp_path, per_operator=2) as tool:
        for _ in range(5):
            torch.ones(2).neg()
    assert tool.writer.written["aten.neg.default"] == 2
    assert tool.writer.left["aten.neg.default", "2 are kept"] == 3


def test_no_more_bytes_are_kept_than_the_quota(tmp_path):
    with op_tools.OpCapture("aten.neg", folder=tmp_path, total=10_000) as tool:
        torch.zeros(100).neg()
        torch.randn(5000).neg()
        torch.randn(700).neg()
        for _ in range(3):
            torch.randn(700).neg()
        torch.ones(100).neg()
    kept = sum(path.stat().st_size for path in (tmp_path / "memory").iterdir())
    assert 7_000 < kept <= 10_000
    assert tool.writer.written["aten.neg.default"] == len(list(captures(tmp_path))) == 3
    assert tool.writer.left == {("aten.neg.default", "it would be more than 10000 bytes"): 4}
    assert all(replay(capture, "cpu", against_cpu=False).good for capture in captures(tmp_path))


def test_what_is_kept_already_costs_nothing_of_the_quota(tmp_path):
    x = torch.zeros(100)
    with op_tools.OpCapture("aten.neg", folder=tmp_path, total=1000) as tool:
        for _ in range(4):
            x.neg()
        torch.ones(100).neg()
    assert tool.writer.written["aten.neg.default"] == 4
    assert tool.writer.left == {("aten.neg.default", "it would be more than 1000 bytes"): 1}


def test_numbers_of_every_kind_come_back(tmp_path):
    with op_tools.OpCapture(".*", folder=tmp_path):
        torch.full((2,), float("inf"), dtype=torch.float64)
        torch.mul(torch.ones(1, dtype=torch.complex64), 2 + 3j)
        torch.empty(1).fill_(float("nan")).to(torch.bfloat16, memory_format=torch.preserve_format)
    assert all(replay(capture, "cpu", against_cpu=False).good for capture in captures(tmp_path))


def test_a_capture_that_was_cut_off_is_no_capture_and_a_damaged_one_is_named(tmp_path):
    with op_tools.OpCapture("aten.neg", folder=tmp_path):
        -torch.ones(2)
        -torch.zeros(2)
    first, second = captures_in(tmp_path)
    (first / "output.json").unlink()
    assert captures_in(tmp_path) == [second]
    digest = json.loads((second / "input.json").read_text())["arguments"]["self"]["tensor"]
    (tmp_path / "memory" / f"{digest}.safetensors").write_bytes(b"no")
    (capture,) = captures(tmp_path)
    with pytest.raises(BadCapture, match=rf"{digest}\.safetensors cannot be read"):
        capture.call("cpu")


def test_what_a_killed_process_has_written_is_readable(tmp_path):
    program = (
        "import torch, op_tools\n"
        "x = torch.randn(5000)\n"
        "with op_tools.OpCapture('.*', folder=r'%s'):\n"
        "    while True: x = x * 1.001 + 1"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program % tmp_path], env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    )
    try:
        while len(captures_in(tmp_path) if tmp_path.exists() else ()) < 20 and process.poll() is None:
            pass
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    found = list(captures(tmp_path))
    assert len(found) >= 20 and all(replay(capture, "cpu", against_cpu=False).good for capture in found)


def test_a_folder_without_captures_is_named(tmp_path: Path):
    with pytest.raises(BadCapture, match="holds no captures"):
        list(captures(tmp_path))


def test_a_mismatch_is_kept_where_it_is_asked_for(tmp_path):
    from tests.op_tools.faulty import Faulty, wrong_value

    with (
        Faulty("aten.relu.default", wrong_value),
        op_tools.OpAutoCompare(".*", table=False, dump=tmp_path, write=lambda _: None),
    ):
        torch.relu(torch.ones(3))
    (capture,) = captures(tmp_path)
    assert capture.result["mismatch"]["operator"] == "aten.relu.default"
    assert not replay(capture, "cpu", against_cpu=False).good and replay(capture, "cpu", against_cpu=True).good

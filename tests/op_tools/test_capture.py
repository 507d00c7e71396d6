"""Captured calls: what is kept, how often, and that they give the same again."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

import op_tools
from op_tools.cli import main
from op_tools.overloads import beyond_tensors
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


def edited(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def one_call(root: Path) -> Path:
    """The folder of the one call that is captured in `root`."""
    with op_tools.OpCapture("aten.neg", folder=root):
        torch.arange(4.0).view(2, 2).neg()
    (folder,) = captures_in(root)
    return folder


def given(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = content["arguments"]["self"]
    return found


def refusal(offset: int) -> str:
    """What torch says to a tensor that begins there."""
    with pytest.raises(RuntimeError) as error:
        torch.empty(4).as_strided((2, 2), (2, 1), offset)
    return str(error.value).splitlines()[0]


DAMAGE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no operator": (lambda c: c.pop("operator"), "is damaged: its 'operator' is missing or of another kind"),
    "a number as the operator": (lambda c: c.update(operator=3), "its 'operator' is missing or of another kind"),
    "no arguments": (lambda c: c.update(arguments=[]), "is damaged: its 'arguments' is missing or of another kind"),
    "an unknown operator": (lambda c: c.update(operator="aten.negg.default"), "has no operator 'aten.negg.default'"),
    "a packet": (lambda c: c.update(operator="aten.neg"), "has no operator 'aten.neg'"),
    "a function of Python": (lambda c: c.update(operator="load_library.x.y"), "has no operator 'load_library.x.y'"),
    "another format": (lambda c: c.update(format=7), "is of format 7; this version reads 1"),
    "a memory outside": (lambda c: given(c).update(tensor="../x"), "x.safetensors cannot be read: No such file"),
    "no shape": (lambda c: given(c).pop("shape"), "a tensor lacks 'shape'"),
    "a shape of text": (lambda c: given(c).update(shape="2"), "as_strided()"),
    "a shape beyond the memory": (lambda c: given(c).update(shape=[9, 9]), "out of bounds for storage"),
    "a size beyond 64 bits": (lambda c: given(c).update(shape=[1 << 70, 2]), "as_strided()"),
    "an offset before the memory": (lambda c: given(c).update(storage_offset=-4), refusal(-4)),
    "an attribute of torch": (lambda c: c["arguments"].update(self={"dtype": "load"}), "torch has no dtype 'load'"),
    "an unknown kind": (lambda c: c["arguments"].update(self={"class": "x"}), "'class' is no kind of value"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_capture_is_named_and_not_run(tmp_path: Path, name: str) -> None:
    change, told = DAMAGE[name]
    folder = one_call(tmp_path)
    edited(folder / "input.json", change)
    with pytest.raises(BadCapture, match=re.escape(told)) as error:
        for capture in captures(tmp_path):
            replay(capture, "cpu", against_cpu=False)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b"[" * 100_000])
def test_a_capture_that_is_not_json_is_named(tmp_path: Path, content: bytes) -> None:
    folder = one_call(tmp_path)
    (folder / "input.json").write_bytes(content)
    with pytest.raises(BadCapture, match=r"input\.json (cannot be read: |is no capture)"):
        list(captures(tmp_path))


def test_memory_that_has_changed_is_not_read(tmp_path: Path) -> None:
    folder = one_call(tmp_path)
    digest = json.loads((folder / "input.json").read_text())["arguments"]["self"]["tensor"]
    path = tmp_path / "memory" / f"{digest}.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    (capture,) = captures(tmp_path)
    with pytest.raises(BadCapture, match="cannot be read: its content is not what was written"):
        capture.call("cpu")


def from_file(root: Path, made: Path) -> None:
    """A capture that was changed to call an operator that writes a file."""
    arguments = {"filename": str(made), "shared": True, "size": 4, "dtype": {"dtype": "uint8"}}
    change = {"operator": "aten.from_file.default", "function": "", "arguments": arguments}
    edited(one_call(root) / "input.json", lambda content: content.update(change))


def test_an_operator_that_does_more_than_compute_tensors_needs_the_users_word(tmp_path: Path) -> None:
    made = tmp_path / "made"
    from_file(tmp_path / "captures", made)
    told = CliRunner().invoke(main, ["replay", str(tmp_path / "captures"), "--device", "cpu"])
    (folder,) = captures_in(tmp_path / "captures")
    assert told.exit_code == 2 and told.stderr == (
        f"op-tools: {folder}: 'aten.from_file.default' is not run, because its argument 'filename' is neither a tensor "
        "nor a number; if you trust this capture, let it run with --allow aten.from_file.default\n"
    )
    assert not made.exists()
    allowed = ["--allow", "aten.from_file.default"]
    CliRunner().invoke(main, ["replay", str(tmp_path / "captures"), "--device", "cpu", *allowed])
    assert made.stat().st_size == 4


@pytest.mark.parametrize(
    ("operator", "reason"),
    [
        (torch.ops.aten.from_file.default, "its argument 'filename' is neither a tensor nor a number"),
        (torch.ops.aten.set_.source_Storage, "its argument 'source' is neither a tensor nor a number"),
        (torch.ops.aten._print.default, "its argument 's' is neither a tensor nor a number"),
        (torch.ops.aten.add.int, "it has nothing to do with tensors"),
        (torch.ops._c10d_functional.all_reduce.default, "it is not one of torch's own operators"),
        (torch.ops.inductor._reinterpret_tensor.default, "it is not one of torch's own operators"),
        (torch.ops.aten.div.Tensor_mode, ""),
        (torch.ops.aten.einsum.default, ""),
        (torch.ops.aten.cat.default, ""),
        (torch.ops.aten.index_put_.default, ""),
        (torch.ops.aten.bernoulli_.float, ""),
        (torch.ops.aten._foreach_add.List, ""),
        (torch.ops.aten.empty.memory_format, ""),
    ],
)
def test_operators_that_do_more_than_compute_tensors(operator: Any, reason: str) -> None:
    assert beyond_tensors(operator) == reason


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

"""Arguments on another device: copies share memory as they do, and what is written comes back; dipu counts it."""

import json

import pytest
import torch

from op_tools.calls import OperatorCall
from op_tools.copies import CannotCopy, Copies
from op_tools.devices import CPU
from op_tools.overloads import overload_of

aten = torch.ops.aten


def run_on_copies(function, *args, **kwargs):
    call = OperatorCall(overload_of(function), "", args, kwargs)
    copies = Copies(call, CPU)
    return copies.given_back(call, copies.call(), CPU)


def test_what_is_written_in_place_comes_back_and_is_the_result():
    x = torch.zeros(3)
    assert run_on_copies(aten.add_.Tensor, x, torch.ones(3)) is x
    assert x.tolist() == [1, 1, 1]


def test_views_are_written_through():
    x = torch.zeros(2, 3)
    run_on_copies(aten.fill_.Scalar, x[:, 1], 5)
    assert x.tolist() == [[0, 5, 0], [0, 5, 0]]


def test_out_is_resized_and_written():
    x, out = torch.arange(4.0), torch.empty(0)
    assert run_on_copies(aten.mul.out, x, x, out=out) is out
    assert out.tolist() == [0, 1, 4, 9]


def test_lists_are_written():
    lists = [torch.zeros(2), torch.zeros(3)]
    run_on_copies(aten._foreach_add_.Scalar, lists, 2.0)
    assert [t.tolist() for t in lists] == [[2, 2], [2, 2, 2]]


def test_arguments_that_share_memory_share_it_as_copies():
    x = torch.arange(6.0)
    call = OperatorCall(overload_of(aten.add_.Tensor), "", (x[:3], x[1:4]), {})
    copies = Copies(call, CPU)
    first, second = copies.call.args
    first[1] = 50
    assert second[0] == 50 and x[1] == 1


def test_one_tensor_twice_is_one_copy():
    x = torch.ones(2)
    copies = Copies(OperatorCall(overload_of(aten.mul.Tensor), "", (x, x), {}), CPU)
    assert copies.call.args[0] is copies.call.args[1]


def test_statistics_of_batch_norm_are_written_and_its_gradient_still_works():
    norm = torch.nn.BatchNorm1d(3)
    x = torch.randn(8, 3)
    mean, var = torch.zeros(3), torch.ones(3)
    run_on_copies(aten.native_batch_norm.default, x, None, None, mean, var, True, 0.1, 1e-5)
    norm(x)
    torch.testing.assert_close((mean, var), (norm.running_mean, norm.running_var))
    assert mean._version == 0


def test_conjugated_views_are_copied_as_numbers():
    x = torch.tensor([1 + 2j]).conj()
    assert run_on_copies(aten.add.Tensor, x, x).tolist() == [2 - 4j]


def test_views_without_elements_are_copied():
    whole = torch.ones(0, 3, 3)
    views = (whole[..., 1:], whole[..., :2], whole)
    copies = Copies(OperatorCall(overload_of(aten.stack.default), "", ([*views],), {}), CPU)
    assert [copies.copy_of(view).shape for view in views] == [view.shape for view in views]


def test_zeros_without_memory_have_no_copy():
    with pytest.raises(CannotCopy, match="a tensor of zeros that has no memory"):
        Copies(OperatorCall(overload_of(aten.neg.default), "", (torch._efficientzerotensor((3,)),), {}), CPU)


def test_sparse_tensors_have_no_copy():
    sparse = torch.eye(2).to_sparse()
    with pytest.raises(CannotCopy, match=r"layout torch\.sparse_coo"):
        Copies(OperatorCall(overload_of(aten.neg.default), "", (sparse,), {}), CPU)


# In place, through a view, into lists and into out=; lgamma falls back by itself, and one addition is forced below.
LEDGER = """
import json, threading
import torch, torch_dipu
import op_tools

torch_dipu.start()
fallback = torch.dipu.fallback
x, out = torch.ones(3).to("dipu"), torch.empty(0).to("dipu")
fallback.reset()
fallback.deny("mul.*")
with fallback.strict(), op_tools.OpFallback("aten.add, aten.add_, aten._foreach_mul_, aten.mul") as tool:
    y = x + x
    x[:2].add_(1)
    torch._foreach_mul_([x, y], 3.0)
    torch.mul(x, y, out=out)
    fallback.allow("lgamma.*")
    torch.lgamma(x)
    thread = threading.Thread(target=lambda: x + 1)
    thread.start()
    thread.join()
    torch.rand(2, device="dipu").relu()
fallback.deny()
fallback.set("add.Tensor")
x + x
fallback.set()
print(json.dumps([x.tolist(), y.tolist(), out.tolist()]))
print(json.dumps([[row.operator, row.cause, row.count, row.bytes, row.seconds > 0] for row in fallback.report()]))
print(json.dumps(tool.calls))
fallback.reset()
print(json.dumps(fallback.report()))
"""


def test_what_is_forced_on_dipu_stands_in_the_backend_s_own_ledger_beside_its_fallbacks(on_dipu):
    done = on_dipu("-c", LEDGER)
    assert done.returncode == 0, done.stderr
    tensors, ledger, calls, after = map(json.loads, done.stdout.splitlines())
    assert tensors == [[6, 6, 3], [6, 6, 6], [36, 36, 18]]
    lgamma = [row for row in ledger if "lgamma" in row[0]]
    assert [row[1:3] for row in lgamma] == [["no kernel", 1]]
    assert [row for row in ledger if row not in lgamma] == [
        ["aten::add.Tensor", "forced", 3, 36 + 24 + 36, True],
        ["aten::_foreach_mul_.Scalar", "forced", 1, 24, True],
        ["aten::add_.Tensor", "forced", 1, 16, True],
        ["aten::mul.out", "forced", 1, 48, True],
    ]
    own = {"aten.add.Tensor": 2, "aten._foreach_mul_.Scalar": 1, "aten.add_.Tensor": 1, "aten.mul.out": 1}
    assert calls == own and after == []

"""Indexing with arguments that do not fit: the class of torch's error, and its words where they say what was wrong."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest

# Each runs on the CPU, too, which gives the class of the error.
REFUSED = {
    "beyond the end": "x[at(7)]",
    "before the beginning": "x[at(-6)]",
    "of a dimension without elements": "t.ones(4, 0, device=d)[:, at(0)]",
    "put beyond the end": "x.index_put((at(7),), one)",
    "index_select": "x.index_select(0, at(7))",
    "index_select from the end": "x.index_select(0, at(-1))",
    "index_select of two dimensions": "x.index_select(0, at([0]))",
    "index_add": "x.index_add(0, at(7), one)",
    "index_add from the end": "x.index_add(0, at(-1), one)",
    "index_add of another shape": "m.index_add(0, at(0, 1), t.ones(2, 3, device=d))",
    "index_add at float positions": "m.index_add(0, t.zeros(2, device=d), t.ones(2, 4, device=d))",
    "index_copy": "x.index_copy(0, at(7), one)",
    "index_copy from the end": "x.index_copy(0, at(-1), one)",
    "index_copy of a number": "t.tensor(5.0, device=d).index_copy(0, at(3), one)",
    "index_copy of another shape": "m.index_copy(0, at(0, 1), t.ones(2, 3, device=d))",
    "index_copy of another length": "m.index_copy(0, at(0, 1), t.ones(3, 4, device=d))",
    "index_copy at int32 positions": "m.index_copy(0, at(0, 1).int(), t.ones(2, 4, device=d))",
    "index_copy at a table of positions": "m.index_copy(0, at([0], [1]), t.ones(2, 4, device=d))",
    "index_add in place": "x.index_add_(0, at(7), one)",
    "index_add in place of another dtype": "x.index_add_(0, at(0), one.double())",
    "index_copy in place": "x.index_copy_(0, at(7), one)",
    "index_copy in place of another shape": "m.index_copy_(0, at(0, 1), t.ones(2, 3, device=d))",
    "index_copy in place to one place": "t.zeros(1, device=d).expand(3).index_copy_(0, at(0), one)",
    "index_fill": "x.index_fill(0, at(7), 1)",
    "take": "x.take(at(7))",
    "take from before the beginning": "x.take(at(-6))",
    "take from nothing": "t.ones(0, device=d).take(at(0))",
    "put": "x.put(at(7), one)",
    "put of another dtype": "x.put(at(0), one.double())",
    "embedding": "t.nn.functional.embedding(at(7), m)",
    "nll_loss": "t.nn.functional.nll_loss(m, at(0, 1, 2, 3, 4))",
    "cross_entropy": "t.nn.functional.cross_entropy(m, at(0, 1, 2, 3, -1))",
    "gather": "x.gather(0, at(7))",
    "scatter": "x.scatter(0, at(7), 1.0)",
    "no positions": "t.ops.aten.index.Tensor(x, [])",
    "more positions than dimensions": "t.ops.aten.index.Tensor(x, [at(0), at(0)])",
    "put at more positions than dimensions": "x.index_put((at(0), at(0)), one)",
    "a mask of more dimensions": "x[t.ones(2, 2, dtype=t.bool, device=d)]",
    "positions that do not meet": "m[at(0, 1), at(0, 1, 2)]",
    "put at positions that do not meet": "m.index_put((at(0, 1), at(0, 1, 2)), one)",
    "a mask of another length": "x[t.tensor([True, False], device=d)]",
    "put through a mask of another length": "x.index_put((t.tensor([True, False], device=d),), one)",
    "float positions": "x[t.ones(1, device=d)]",
    "put of values of another shape": "x.index_put((at(0, 1),), t.ones(3, device=d))",
    "put of more dimensions": "x.index_put((at(0, 1),), t.ones(3, 2, device=d))",
    "put of values of another dtype": "x.index_put((at(0, 1),), t.ones(2, device=d).double())",
    "put of values of another dtype and shape": "x.index_put((at(0, 1),), t.ones(3, device=d).double())",
    "put through a mask of another dtype and shape": "x.index_put((x > 1,), t.ones(2, device=d).double())",
    "put at no position": "t.ones((), device=d).index_put((), one, True)",
}


def outcome(torch: Any, device: str, program: str) -> BaseException:
    names = {
        "t": torch,
        "d": device,
        "x": torch.arange(5.0, device=device),
        "m": torch.ones(5, 4, device=device),
        "one": torch.ones(1, device=device),
        "at": lambda *positions: torch.tensor(positions, device=device),
    }
    with pytest.raises(Exception) as caught:
        eval(program, names)
    return caught.value


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_as_on_the_cpu(torch: Any, name: str) -> None:
    wanted, ours = (outcome(torch, device, REFUSED[name]) for device in ("cpu", "dipu"))
    assert type(ours) is type(wanted), (wanted, ours)


WORDS = {
    "of a dimension without elements": "index is out of bounds for dimension with size 0",
    "beyond the end": "index 7 is out of bounds for dimension 0 with size 5",
    "no positions": "at least one index must be provided",
    "more positions than dimensions": "too many indices for tensor of dimension 1 (got 2)",
    "positions that do not meet": "indexing tensors could not be broadcast together with shapes [2], [3]",
    "a mask of another length": "mask [2] at index 0 does not match the shape of the indexed tensor [5] at index 0",
    "put of values of another shape": "value tensor of shape [3] cannot be broadcast to indexing result of shape [2]",
    "put of values of another dtype and shape": "value tensor of shape [3] cannot be broadcast to indexing",
    "put through a mask of another dtype and shape": "shape mismatch: value tensor of shape [2]",
    "index_copy of another shape": "index_copy_(): Source/destination tensor must have same slice shapes",
}


@pytest.mark.parametrize("name", WORDS)
def test_the_words_are_those_of_the_cpu(torch: Any, name: str) -> None:
    for device in ("cpu", "dipu"):
        assert WORDS[name] in str(outcome(torch, device, REFUSED[name]))


@pytest.mark.parametrize(
    "use",
    [
        lambda x, mask: x[mask],
        lambda x, mask: x.index_put((mask,), x[mask.bool()]),
        lambda x, mask: x.index_put((mask,), x[mask.bool()], accumulate=True),
    ],
)
def test_byte_masks_are_warned_of(torch: Any, use: Callable[..., Any]) -> None:
    x, mask = torch.arange(3.0, device="dipu"), torch.tensor([1, 0, 1], dtype=torch.uint8, device="dipu")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours = use(x, mask)
    assert ["torch.uint8" in str(warning.message) for warning in caught] == [True]
    torch.testing.assert_close(ours.cpu(), use(x.cpu(), mask.cpu().bool()))


def test_an_index_of_the_device_does_not_index_the_host(torch: Any) -> None:
    with pytest.raises(RuntimeError, match=r"indices should be either on .*cpu.* \(cpu\)"):
        torch.ones(3)[torch.tensor([0], device="dipu")]


def test_a_number_on_the_cpu_is_put_through_a_mask(torch: Any) -> None:
    x, mask = torch.zeros(2, 3, 4), torch.tensor([True, False, True])
    torch.dipu.fallback.reset()
    ours = torch.ops.aten.index_put(x.to("dipu"), [None, mask.to("dipu")], torch.tensor(2.0))
    torch.testing.assert_close(ours.cpu(), torch.ops.aten.index_put(x, [None, mask], torch.tensor(2.0)))
    assert torch.dipu.fallback.report() == []


def test_positions_may_lie_on_the_cpu_and_values_may_not(torch: Any) -> None:
    x, at = torch.zeros(5, device="dipu"), torch.tensor([1, 3])
    assert x.index_put((at,), torch.ones(2, device="dipu")).cpu().tolist() == [0, 1, 0, 1, 0]
    with pytest.raises(RuntimeError, match="same device"):
        x.index_put((at,), torch.ones(2))

"""Arguments that torch refuses and a vendor's function would take: the class and the words of the CPU's error."""

from typing import Any

import pytest

# Each runs on the CPU, too, which gives what is wanted; `run` says what the names are.
REFUSED = {
    "fill with a great number": "b.fill_(300)",
    "fill with a number below zero": "t.zeros(2, dtype=t.int8, device=d).fill_(-129)",
    "fill with an imaginary number": "i.fill_(1j)",
    "fill with what is no number": "i.fill_(float('nan'))",
    "fill halves": "x.half().fill_(1e6)",
    "full": "t.full((2,), 300, dtype=t.uint8, device=d)",
    "masked fill with a great number": "b.masked_fill(b > 0, 300)",
    "masked fill with an imaginary number": "i.masked_fill(i > 0, t.tensor(1j, device=d))",
    "masked fill with a number on the CPU": "b.masked_fill(b > 0, t.tensor(300))",
    "masked fill with several numbers": "x.masked_fill(x > 1, t.ones(1, device=d))",
    "masked fill by numbers": "x.masked_fill(x, 1)",
    "masked fill by bytes": "x.masked_fill_(b, 1)",
    "masked scatter by numbers": "x.masked_scatter(x, x)",
    "masked scatter by bytes": "x.masked_scatter(b, x)",
    "masked select into what it reads": "t.masked_select(x, x > 1, out=x)",
    "masked select into one place": "t.masked_select(x, x > 1, out=t.zeros(1, device=d).expand(3))",
    "masked select into another dtype": "t.masked_select(x, x > 1, out=x.double())",
    "average of whole numbers": "t.nn.functional.avg_pool2d(v[0].short(), 2)",
    "adaptive average of whole numbers": "t.nn.functional.adaptive_avg_pool2d(v[0].int(), 2)",
    "adaptive maximum of whole numbers": "t.nn.functional.adaptive_max_pool3d(v.int(), 2)",
    "gradient of no averages": "t.nn.functional.adaptive_avg_pool2d(v[0].requires_grad_(), 0).sum().backward()",
    "gradient of no averages of volumes": "t.nn.functional.adaptive_avg_pool3d(v.requires_grad_(), 0).sum().backward()",
    "gradient of windows of less than nothing": "t.ops.aten.unfold_backward(m, [6], 0, -1, 1)",
    "evenly drawn whole numbers": "i.uniform_()",
    "normal whole numbers": "i.normal_()",
    "exponential whole numbers": "i.exponential_()",
    "drawn from a number to a smaller one": "x.uniform_(2, 1)",
    "exponential unit of whole numbers": "t.nn.functional.elu(i)",
    "sigmoid unit of bytes": "t.nn.functional.silu(b)",
    "gated unit of whole numbers": "t.nn.functional.glu(v.long())",
    "distance of whole numbers": "t.nn.functional.mse_loss(i, i)",
    "hypotenuse of whole numbers": "t.hypot(i, i)",
    "decimals of whole numbers": "t.round(i, decimals=1)",
    "list less a bool": "t._foreach_sub([x], True)",
    "write at positions what is written": "x.index_put_((i,), x)",
    "write at positions that are written": "i.index_put_((i,), i.clone())",
    "too many numbers": "t.arange(1e-38, 3e38, device=d)",
    "windows at no distance": "t.nn.functional.unfold(v[0], 3, stride=0)",
    "windows of nothing": "t.nn.functional.unfold(v[0], (0, 1))",
    "windows from outside": "t.nn.functional.unfold(v[0], 3, padding=-1)",
    "windows beyond a plane": "t.nn.functional.unfold(v[0], 9)",
    "columns at no distance": "t.nn.functional.fold(m[None], 3, (2, 1), stride=0)",
    "padding of nothing": "t.nn.functional.pad(v[0][..., :0], (1, 1, 1, 1), mode='reflect')",
    "padding of more than there is": "t.nn.functional.pad(v[0], (4, 1, 1, 1), mode='reflect')",
    "gradient of another padding": "t.ops.aten.reflection_pad1d_backward(v[0, :, 0, :1], v[0, :, 0], [2, 2])",
    "slope of what was written over": "t.ops.aten.leaky_relu_backward(x, x, -0.1, True)",
    "losses of no probabilities": "t.nn.functional.ctc_loss(v[0, :, :0, 0].log_softmax(-1), *[t.zeros(0).long()] * 3)",
    "stretched whole numbers": "t.nn.functional.interpolate(v[0].int(), scale_factor=2, mode='nearest')",
    "stretched whole numbers by another rule": "t.nn.functional.interpolate(v[0].int(), 7, mode='nearest-exact')",
    "take into one place": "t.take(x, i, out=t.zeros(1, device=d).expand(3))",
    "take into what it reads": "t.take(x, i, out=x)",
    "take into the positions": "t.take(i, i, out=i)",
    "take into another dtype": "t.take(x, i, out=t.zeros(3, dtype=t.float64, device=d))",
    "kthvalue into what it reads": "t.kthvalue(x, 1, out=(x, i))",
    "write a number by bytes": "x.index_put_((b,), t.tensor(2.0, device=d))",
    "write a number of another kind by bytes": "i.index_put_((b,), t.tensor(2.0, device=d))",
    "write a great number by a mask": "b.index_put_((b > 0,), t.tensor(300))",
    "write at a mask and positions": "m.index_put_((t.tensor([True, False], device=d), i[:1]), t.ones(17, device=d))",
    "a mask that does not meet positions": "m[t.tensor([True, True], device=d), i]",
    "unpooling of a matrix": "t.ops.aten.max_unpool2d(m, m.long(), [4, 4])",
    "unpooling of a line": "t.ops.aten.max_unpool3d(x, i, [4, 4, 4], [2] * 3, [0] * 3)",
    "unpooling to three sizes": "t.ops.aten.max_unpool2d(m.unsqueeze(0), m.unsqueeze(0).long(), [4, 4, 4])",
    "parts of integers": "t.complex(x, i)",
    "parts of two dtypes": "t.complex(x, x.double())",
    "parts into another dtype": "t.complex(x, x, out=t.zeros(3, dtype=t.complex128, device=d))",
    "polar of integers": "t.polar(i, x)",
    "polar of two dtypes": "t.polar(x, x.double())",
    "polar into another dtype": "t.polar(x, x, out=t.zeros(3, dtype=t.complex128, device=d))",
    "aminmax into another dtype": "t.aminmax(x, dim=0, out=(t.zeros((), dtype=t.float64, device=d), x[0]))",
    "amin along an empty dimension, twice": "t.ones(0, device=d).amin(dim=(0, 0))",
    "amin of nothing": "t.ones(0, device=d).amin()",
    "mean into integers": "t.mean(m, 0, out=i)",
    "mean into bools": "t.mean(m, (0,), out=i > 0)",
    "mean of integers into integers": "t.mean(i, 0, out=i[0])",
    "gelu by another way": "t.nn.functional.gelu(x, approximate='tan')",
    "gradient of gelu by another way": "t.ops.aten.gelu_backward(x, x, approximate='tan')",
    "roll beyond the dimensions": "t.roll(x, 1, 2)",
    "roll a number": "t.roll(x[0], 1, 0)",
    "roll along too many dimensions": "t.roll(m, (1,), (0, 1))",
    "roll by too much": "t.roll(m, (1, 2, 3))",
    "roll by nothing": "t.roll(m, (), ())",
    "pool with padding beyond the window": "t.nn.functional.max_pool3d(v, 2, padding=2)",
    "pool with a window of two lengths": "t.nn.functional.max_pool3d(v, (2, 2))",
    "pool to nothing": "t.nn.functional.max_pool3d(v, 9)",
    "pool of nothing": "t.nn.functional.max_pool3d(v[:, :, :0], 2)",
    "pool without a step": "t.nn.functional.max_pool3d(v, 2, stride=0)",
    "draw nothing": "t.multinomial(x, 0)",
    "draw too much": "t.multinomial(x, 4)",
    "draw from integers": "t.multinomial(i, 1)",
    "draw from a volume": "t.multinomial(v, 1)",
    "draw into floats": "t.multinomial(x, 1, out=x)",
    "draw below zero": "t.multinomial(x - 2, 1)",
    "draw below zero, again and again": "t.multinomial(x - 2, 9, True)",
    "draw from no number": "t.multinomial(x / 0 * 0, 1)",
    "draw from no number, again and again": "t.multinomial(x / 0 * 0, 2, True)",
    "toss beyond one": "t.bernoulli(x + 2)",
    "toss below zero": "t.bernoulli(x - 9, out=x)",
    "toss no number": "t.bernoulli(x / 0 * 0)",
    "toss in place below zero": "x.bernoulli_(x - 9)",
    "toss in place by a number": "x.bernoulli_(1.5)",
    "spread below zero": "t.normal(0., x - 9)",
    "spread a tensor below zero": "t.normal(x, x - 9)",
    "spread by a number below zero": "t.normal(x, -1.)",
    "draw without end": "t.multinomial(x / 0, 1)",
    "draw without end, again and again": "t.multinomial(t.tensor([1, float('inf')], device=d), 2, True)",
    "draw from zeros": "t.multinomial(m * 0, 1)",
    "draw from a row of zeros": "t.multinomial(m * t.tensor([[1.0], [0.0]], device=d), 2, True)",
    "draw from too many": "t.multinomial(t.ones(1, device=d).expand(2**24 + 1), 1)",
}

# The class alone: the CPU names a file's line, its own device, or another loop than ours.
CLASS_ONLY = {
    "select along the second dimension": "m.index_select(1, i + 9)",
    "select along the first dimension": "m.index_select(0, i + 9)",
    "select along the last of three dimensions": "v[0].index_select(-1, i + 9)",
    "add along the first dimension": "m.index_add(0, i[:1] + 9, m[:1])",
    "add along the last dimension": "v.index_add(-1, i[:1] + 9, v[..., :1])",
    "add along a dimension between": "v.index_add(1, i[:1] + 9, v[:, :1])",
    "add to a line": "x.index_add(0, i[:1] + 9, x[:1])",
}


def run(torch: Any, device: str, program: str) -> Any:
    names = {
        "t": torch,
        "d": device,
        "x": torch.tensor([1.0, 2.0, 3.0], device=device),
        "m": torch.ones(2, 3, device=device),
        "v": torch.arange(128.0, device=device).reshape(1, 2, 4, 4, 4),
        "i": torch.tensor([0, 1, 2], device=device),
        "b": torch.tensor([0, 1, 1], dtype=torch.uint8, device=device),
    }
    return torch.utils._pytree.tree_map(lambda tensor: tensor.cpu(), eval(program, names))


def outcome(torch: Any, device: str, program: str) -> tuple[type[Exception], str]:
    with pytest.raises(Exception) as caught:
        run(torch, device, program)
    return caught.type, str(caught.value).splitlines()[0]


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses_is_refused_in_its_words(torch: Any, name: str) -> None:
    wanted, ours = (outcome(torch, device, REFUSED[name]) for device in ("cpu", "dipu"))
    assert ours == wanted


@pytest.mark.parametrize("name", CLASS_ONLY)
def test_what_torch_refuses_is_refused_with_its_class(torch: Any, name: str) -> None:
    wanted, ours = (outcome(torch, device, CLASS_ONLY[name]) for device in ("cpu", "dipu"))
    assert ours[0] is wanted[0]


# What the checks must let through.
TAKEN = {
    "fill with a number below zero": "b.fill_(-1)",
    "fill with infinity": "x.half().fill_(float('inf'))",
    "masked fill with a number on the CPU": "i.masked_fill(i > 0, t.tensor(7))",
    "masked fill with a number of another kind": "i.masked_fill(i > 0, t.tensor(2.5, device=d))",
    "masked fill with a number of another kind on the CPU": "i.masked_fill(i > 0, t.tensor(2.5))",
    "masked fill with a number of another kind in place": "i.masked_fill_(i > 0, t.tensor(2.5, device=d))",
    "masked fill of bools": "(i > 1).masked_fill(i > 0, t.tensor(2, device=d))",
    "write a number of another kind by a mask": "i.index_put((i > 0,), t.tensor([2.5], device=d))",
    "write a number by a mask of rows": "m.int().index_put((t.tensor([True, False], device=d),), t.tensor(2.5))",
    "write a number by a mask of columns": "t.ops.aten.index_put(m.int(), [None, i > 0], t.tensor(2.5))",
    "read at a mask and positions": "v[0, 0][t.tensor([True, False, True, False], device=d), i[:2]]",
    "read at positions and a mask of two dimensions": "v[0, :, :, :2][i[:1], v[0, 0, :, :2, 0] > 3]",
    "write at a mask and positions": "m.index_put((t.tensor([True, False], device=d), i), x)",
    "sum integers into bools": "t.nansum(i, 0, out=i[0] > 0)",
    "sum integers into floats": "t.nansum(i, 0, out=x[0])",
    "take": "t.take(x, i, out=t.zeros(3, device=d))",
    "kthvalue": "t.kthvalue(x, 2, out=(t.zeros((), device=d), i[0]))",
    "aminmax": "t.aminmax(m, dim=0, out=(t.zeros(3, device=d), t.zeros(3, device=d)))",
    "mean": "t.mean(m, 0, out=t.zeros(3, dtype=t.float64, device=d))",
    "roll nothing": "t.roll(t.ones(0, device=d), 1, 0)",
    "roll as one line": "t.roll(m * x, 2)",
    "roll from the end": "t.roll(m * x, (1, 1), (-1, 0))",
    "draw from nothing": "t.multinomial(t.ones(0, 3, device=d), 1)",
    "draw what is sure": "t.multinomial(t.tensor([[0.0, 1.0], [1.0, 0.0]], device=d), 4, True)",
    "pool": "t.nn.functional.max_pool3d(v, 2, padding=1, ceil_mode=True)",
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_torch_takes_is_taken(torch: Any, name: str) -> None:
    torch.testing.assert_close(run(torch, "dipu", TAKEN[name]), run(torch, "cpu", TAKEN[name]))

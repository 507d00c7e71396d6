"""Operands of two dtypes or devices, shared memory, numbers beyond a dtype: the CPU's results, or its words."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.torch.test_argument_checks import outcome, run

_STEP = "weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False, is_first_step=False"
_SCORES = "v[0, :, 0].log_softmax(-1), t.ones(4, 2, dtype=t.int64, device=d)"

# `run` says what the names are; `m` is of two rows and three columns.
REFUSED = {
    # Operands of two dtypes.
    "product of integers and floats": "m.long() @ m.T",
    "product of floats and doubles": "m.mm(m.T.double())",
    "batched product of floats and halves": "t.bmm(m[None] * 1e6, m.T.half()[None])",
    "sum with a product of doubles": "t.addmm(m[:, :2], m, m.T.double())",
    "convolution with a weight of doubles": "t.nn.functional.conv2d(v[:, 0], v[:, 0].double())",
    "convolution of halves with a weight of floats": "t.nn.functional.conv2d(v[:, 0].half(), v[:, 0])",
    "layer norm with a weight of doubles": "t.nn.functional.layer_norm(m, (3,), x.double())",
    "batch norm with statistics of doubles": "t.nn.functional.batch_norm(m, x.double(), x.double())",
    "loss with a weight of doubles": "t.nn.functional.nll_loss(m, i[:2], x.double())",
    "gather with positions that are floats": "m.gather(0, m)",
    "scatter another dtype": "m.scatter(0, i[None], m.double())",
    "add another dtype at positions": "m.index_add(0, i[:1], m[:1].double())",
    "copy another dtype to positions": "m.index_copy(0, i[:1], m[:1].double())",
    "dot of two dtypes": "x.dot(x.double())",
    "dot of conjugates of two dtypes": "t.vdot(x, x.half())",
    "sample at doubles": "t.nn.functional.grid_sample(v[:, 0], v[:, 1, :1, :, :2].double())",
    # Memory that is written and shared.
    "product into one place": "t.mm(m, m.T, out=t.zeros(1, device=d).expand(2, 2))",
    "running sum into one place": "t.cumsum(m, 0, out=t.zeros(1, device=d).expand(2, 3))",
    "running sum in place at one place": "t.zeros(1, device=d).expand(3).cumsum_(0)",
    "sort into one place": "t.sort(x, out=(t.zeros(1, device=d).expand(3), i.clone()))",
    "greatest into one place": "t.topk(x, 2, out=(t.zeros(1, device=d).expand(2), i[:2].clone()))",
    "choice into one place": "t.where(x > 1, x, x, out=t.zeros(1, device=d).expand(3))",
    "count into one place": "t.arange(3, out=t.zeros(1, device=d).expand(3))",
    "draw into one place": "t.zeros(1, device=d).expand(3).uniform_()",
    "draw ones and zeros into one place": "t.zeros(1, device=d).expand(3).bernoulli_(0.5)",
    "normal numbers into one place": "t.zeros(1, device=d).expand(3).normal_()",
    "copy to one place": "t.zeros(1, device=d).expand(3).copy_(x)",
    "copy beside itself": "x[1:].copy_(x[:-1])",
    "copy to positions at one place": "t.zeros(1, device=d).expand(3).index_copy_(0, i, x)",
    "select into what is selected": "t.index_select(m, 1, i, out=m)",
    "select into itself": "t.index_select(x, 0, i, out=x)",
    "stack into one place": "t.stack([x, x], out=t.zeros(1, device=d).expand(2, 3))",
    "fraction into one place": "t.frac(x, out=t.zeros(1, device=d).expand(3))",
    "fraction in place at one place": "t.zeros(1, device=d).expand(3).frac_()",
    "gather into what it reads": "t.gather(x, 0, i, out=x)",
    "cross product into a factor": "t.linalg.cross(x, x + 1, out=x)",
    # The same of operators that no function serves.
    "digamma beside itself": "t.digamma(x[:-1], out=x[1:])",
    "digamma into one place": "t.digamma(x, out=t.zeros(1, device=d).expand(3))",
    "next numbers beside themselves": "t.nextafter(x[:-1], x[1:], out=x[1:])",
    "reduced into what is scattered": "x.scatter_reduce_(0, i, x, 'sum')",
    # Numbers beyond the dtype.
    "scatter a great number": "b.scatter(0, i, 300)",
    "fill positions with a great number": "b.index_fill(0, i, 300)",
    "halves below a great number": "x.half().clamp(max=1e6)",
    "sums times a great number": "b.add(b, alpha=300)",
    # What torch says itself.
    "normal numbers of a negative deviation": "x.normal_(0, -1)",
    "numbers of an empty range": "x.uniform_(3, -1)",
    "layer norm over nothing": "t.native_layer_norm(m, (), None, None, 1e-5)",
    "layer norm with a weight of another shape": "t.native_layer_norm(m, (3,), x[:2], None, 1e-5)",
    "gather beyond the end": "m.gather(1, i[None] + 9)",
    "scatter beyond the end": "m.scatter(1, i[None] + 9, 1.0)",
    "shrink by less than nothing": "t.nn.functional.softshrink(x, -0.5)",
    "unit of negative size": "t.eye(-1, 3, device=d)",
    "copy of a negative part": "t.narrow_copy(x, 0, 0, -1)",
    "cross of another length": "t.linalg.cross(m, m, dim=0)",
    "permutation that halves cannot tell apart": "t.randperm(5000, dtype=t.float16, device=d)",
    "permutation beyond bytes": "t.randperm(5000, dtype=t.uint8, device=d)",
    "draw with a chance above one": "x.bernoulli_(2.0)",
    "classification beyond the inputs": f"t.nn.functional.ctc_loss({_SCORES}, (50,) * 4, (2,) * 4)",
    "classification beyond the targets": f"t.nn.functional.ctc_loss({_SCORES}, (2,) * 4, (20,) * 4)",
    "absolute values into halves": "t.abs(x, out=x.half())",
    "rounded numbers into doubles": "t.round(x, out=x.double())",
    "choice into doubles": "t.where(x > 1, x, x, out=x.double())",
    "selected rows into doubles": "t.index_select(m, 0, i[:2], out=m.double())",
    "logarithms of a softmax into halves": "t.log_softmax(x, 0, out=x.half())",
    "linear layer into doubles": "t._C._nn.linear(m, m, out=t.zeros(2, 2, dtype=t.float64, device=d))",
    "signs into numbers": "t.signbit(x, out=x)",
    "cross product of two dtypes": "t.linalg.cross(x, x.double())",
    "membership of bools": "t.isin(x > 1, x > 2)",
    "distances of a power below zero": "t.cdist(m, m, p=-1.0)",
    "shrink by more than halves hold": "t.nn.functional.softshrink(x.half(), 1e6)",
    "hard shrink by more than halves hold": "t.nn.functional.hardshrink(x.half(), 1e6)",
    "outer product beside itself": "t.addr(m.view(6)[:4].view(2, 2), x[:2], x[:2], out=m.view(6)[1:5].view(2, 2))",
    "whole numbers beyond bytes": "b.random_(0, 300)",
    "whole numbers up to one beyond bytes": "b.random_(300)",
    "whole numbers below bytes": "b.random_(-1, 5)",
    "whole numbers from none": "b.random_(7, 7)",
    "whole numbers beyond halves": "x.half().random_(0, 70000)",
    "bytes added a great number of times": "b.index_add(0, i[:1], b[:1], alpha=300)",
    "steps of lists of two lengths": f"t._fused_sgd_([x, x], [x], [], {_STEP})",
}

TAKEN = {
    "edges of a volume alone": (
        "t.nn.functional.pad(v[0].to(memory_format=t.channels_last), (1,) * 6, mode='replicate')"
    ),
    "sort into itself": "t.sort(x.flip(0).clone(), out=(x, i))",
    "running sum into itself": "t.cumsum(x, 0, out=x)",
    "fill one place": "t.zeros(1, device=d).expand(3).fill_(2)",
    "fraction into itself": "t.frac(x, out=x)",
    "into the sum that is added": "t.addmv(x[:2], m, x + 1, out=x[:2])",
    "running logarithms of sums into themselves": "t.logcumsumexp(x, 0, out=x)",
    "negative into itself": "t.neg(x, out=x)",
    "running sum beside itself": "t.cumsum(m[:, ::2], 0, out=t.zeros(2, 4, device=d)[:, ::2])",
    "sum of halves in floats": "x.half().sum(dtype=t.float32)",
    "running sum of integers in floats": "i.cumsum(0, dtype=t.float32)",
    "small products of integers": "t.tensor([1, -2, 3], dtype=t.int16, device=d).addcmul("
    "t.tensor([2, 3, 1], dtype=t.int16, device=d), t.tensor([-1, 1, 5], dtype=t.int16, device=d), value=0.001)",
    "sum of bools, the second negated": "(i > 0).add(i > 1, alpha=-1)",
    "halves without infinities": "(x.half() / 0).nan_to_num(posinf=1e5)",
    "halves that round to the largest": "(x.half() / 0).nan_to_num(posinf=65510)",
    "logit with both ends swapped": "t.logit(x / 4, eps=0.7)",
    "bytes added two and a half times": "b.index_add(0, i[:1], b[:1], alpha=2.5)",
    "integers added a fraction of times": "i.index_add(0, i[:1], i[:1], alpha=-0.5)",
    "variance of great numbers": "(1e20 + 1e19 * x).var()",
    "variance and mean of great numbers": "t.var_mean(1e20 + 1e19 * m, 1)",
    "deviation and mean of great numbers": "t.std_mean(1e20 + 1e19 * m, 0, keepdim=True)",
    "variance of near numbers": "(1e4 + 0.01 * v).double().float().var(dim=1, correction=0)",
    "variance of halves": "(300 * x.half()).var()",
    "variance of one number": "x[:1].var()",
    "variance of complex numbers": "t.complex(x, x * x).var()",
    "signs of what is no number": "t.signbit(t.tensor([-t.nan, t.nan, -0.0, 0.0, -1], device=d))",
    "signs of halves that are no numbers": "t.signbit(t.tensor([-t.nan, t.nan, -0.0], dtype=t.float16, device=d))",
    "signs of doubles that are no numbers": "t.signbit(t.tensor([-t.nan, t.nan, -0.0], dtype=t.float64, device=d))",
    "sign copied from what is no number": "t.copysign(x, t.tensor([-t.nan, t.nan, 1], device=d))",
    "signs of rounded numbers": "t.signbit(t.tensor([-0.5, -0.2, 0.2, -0.0, -1.5], device=d).round())",
    "signs of numbers rounded to decimals": "t.signbit(t.tensor([-0.04, 0.04], device=d).round(decimals=1))",
    "root of minus infinity": "t.tensor([-t.inf, t.inf, 4, -0.0], device=d) ** 0.5",
    "one over the root of minus infinity": "t.tensor([-t.inf, t.inf, 4], device=d) ** -0.5",
    "root of minus infinity in place": "t.tensor([-t.inf, 4], device=d).pow_(0.5)",
    "power of minus infinity": "t.tensor([-t.inf, 4], device=d) ** t.tensor([0.5, 0.5], device=d)",
    "loss without classes": "t.nn.functional.nll_loss(m[:, :0], i[:2] * 0, ignore_index=0, reduction='none')",
    "linear layer with one row": "t.nn.functional.linear(m, x)",
    "linear layer with a matrix as bias": "t.nn.functional.linear(m, m, m[:, :2])",
    "gradient of a matrix as bias": "t.func.grad(lambda b: t.nn.functional.linear(m, m, b).square().sum())(m[:, :2])",
    "gradient of a column as bias": "t.func.grad(lambda b: t.nn.functional.linear(m, m, b).square().sum())(m[:, :1])",
    "loss with a negative smoothing": "t.nn.functional.cross_entropy(m, i[:2] * 0, label_smoothing=-1.3)",
    "product of fractions as integers": "t.tensor([1.5, 2.7], device=d).prod(0, dtype=t.int64)",
    "directions of complex numbers": "t.sgn(t.complex(x - x[0], x * 0))",
    "truth of complex numbers": "t.complex(x * 0, x - x[0]).bool()",
    "great integers between numbers": "t.nn.functional.hardtanh(i * 2**25 + 1, -1.5, 1e9)",
    "integers above a number": "t.threshold(i - i[1], -0.5, 9.5)",
    "sum of floats into doubles": "t.add(x, x, out=x.double())",
    "sine of integers into doubles": "t.sin(i, out=x.double())",
    "huber loss of two dtypes": "t.nn.functional.huber_loss(x.half(), x * 2, reduction='none')",
    "outer product of two dtypes": "t.addr(m.double(), x[:2], x)",
    "softplus of great halves": "t.nn.functional.softplus(x.half() * 20, threshold=1000)",
    "layer norm of halves with a weight of floats": "t.nn.functional.layer_norm(m.bfloat16(), (3,), x)",
    "batch norm of halves and floats": "t.nn.functional.batch_norm(m.half(), x, x.clone(), training=True)",
}


# What releases of torch refuse, and others take.
EITHER = {
    "bytes below a great number": "b.clamp(max=300)",
    "bytes above a number below zero": "b.clamp(min=-300)",
    "bytes between numbers, one of them below zero": "t.nn.functional.hardtanh(b, -1, 1)",
    "unpooling without a step": "t.ops.aten.max_unpool3d(v[0], v[0].long() % 8, [4, 4, 4], [0] * 3, [0] * 3)",
}


@pytest.mark.parametrize("name", EITHER)
def test_refused_or_taken_as_on_the_cpu(torch: Any, name: str) -> None:
    def done(device: str) -> Any:
        try:
            return run(torch, device, EITHER[name]).tolist()
        except RuntimeError as error:
            return type(error), str(error).splitlines()[0]

    assert done("dipu") == done("cpu")


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_torchs_words(torch: Any, name: str) -> None:
    wanted, ours = (outcome(torch, device, REFUSED[name]) for device in ("cpu", "dipu"))
    assert ours == wanted


@pytest.mark.parametrize("name", TAKEN)
def test_taken_with_the_cpus_result(torch: Any, name: str) -> None:
    wanted, ours = (run(torch, device, TAKEN[name]) for device in ("cpu", "dipu"))
    torch.testing.assert_close(ours, wanted, equal_nan=True)


# Each has tensors on `d` and one on `e`.
ELSEWHERE = {
    "product": "m @ m.T.to(e)",
    "product and sum": "t.addmm(m[:, :2], m, m.T.to(e))",
    "batched product": "t.bmm(m[None], m.T[None].to(e))",
    "sum": "m + m.to(e)",
    "linear layer": "t.nn.functional.linear(m, m.to(e))",
    "bias of a linear layer": "t.nn.functional.linear(m, m, x[:2].to(e))",
    "convolution": "t.nn.functional.conv2d(v[:, 0], v[:, 0].to(e))",
    "joined tensors": "t.cat([m, m.to(e)])",
    "stacked tensors": "t.stack([m, m.to(e)])",
    "gathered elements": "m.gather(0, i[None].to(e) * 0)",
    "selected rows": "m.index_select(0, i[:2].to(e))",
    "written positions": "m.index_copy(0, i[:1].to(e), m[:1])",
    "scattered elements": "m.scatter(0, i[None] * 0, m.to(e))",
    "embedding": "t.nn.functional.embedding(i[:2].to(e), m)",
    "weight of a layer norm": "t.nn.functional.layer_norm(m, (3,), x.to(e))",
    "running statistics": "t.nn.functional.batch_norm(m, x.to(e), x.to(e), training=True)",
    "weight of a batch norm": "t.nn.functional.batch_norm(m, x.clone(), x.clone(), x.to(e))",
    "targets of a loss": "t.nn.functional.nll_loss(m, i[:2].to(e))",
    "masked elements": "t.masked_select(m, (m > 0).to(e))",
    "choice": "t.where(m > 0, m, m.to(e))",
    # The same of operators that no function serves.
    "places in order": "t.searchsorted(x, x.to(e))",
    "buckets": "t.bucketize(x, x.to(e))",
    "reduced rows": "m.index_reduce(0, i[:1].to(e), m[:1], 'amax')",
    "scattered maxima": "m.scatter_reduce(0, i[None] * 0, m.to(e), 'amax')",
    "a bag of rows": "t.nn.functional.embedding_bag(i[:2].to(e), m, i[:1])",
    "put elements": "x.put(i.to(e), x)",
    "an output": "t.mm(m, m.T, out=t.zeros(2, 2, device=e))",
    "an output of a running sum": "t.cumsum(m, 0, out=t.zeros(2, 3, device=e))",
    "an output of a product by parts": "t.nn.functional.relu(m) + t.relu(m.to(e))",
    "an optimizer's step": f"t._fused_sgd_([x], [x.to(e)], [], {_STEP})",
}


@pytest.mark.parametrize("elsewhere", ("cpu", "dipu:1"))
@pytest.mark.parametrize("name", ELSEWHERE)
def test_tensors_of_two_devices_are_refused(torch: Any, name: str, elsewhere: str) -> None:
    if elsewhere != "cpu" and torch.dipu.device_count() < 2:
        pytest.skip("one device")
    program = ELSEWHERE[name].replace("to(e)", f"to('{elsewhere}')").replace("device=e", f"device='{elsewhere}'")
    kind, text = outcome(torch, "dipu:0", program)
    assert kind is RuntimeError and "device" in text


def test_a_number_on_the_cpu_stands_beside_tensors_of_any_device(torch: Any) -> None:
    x = torch.ones(2, device="dipu:0")
    assert (x + torch.tensor(2.0)).cpu().tolist() == (torch.tensor(2.0) + x).cpu().tolist() == [3, 3]
    assert torch.where(x > 0, torch.tensor(3.0), x).cpu().tolist() == [3, 3]
    # Of operators that no function serves, too.
    assert torch.gcd(x.long() * 4, torch.tensor(6)).cpu().tolist() == [2, 2]
    assert torch.nextafter(torch.tensor(0.0), x).cpu().tolist() == [1.401298464324817e-45] * 2


def test_cells_of_gates_that_are_none(torch: Any) -> None:
    x = torch.ones(3, 3, device="dipu")
    for program in (
        lambda: torch.ops.aten._thnn_fused_lstm_cell(x, x, x),
        lambda: torch.ops.aten._thnn_fused_lstm_cell(x, x[:2], x),
        lambda: torch.ops.aten._thnn_fused_lstm_cell(x[0], x[0], x),
        lambda: torch.ops.aten._thnn_fused_gru_cell(x, x, x),
    ):
        with pytest.raises(RuntimeError, match=r"_thnn_fused_.*_cell"):
            program()


def test_what_torch_computes_alone_is_a_fallback_with_its_cause(droplet: Callable[..., Any]) -> None:
    done = droplet(
        "x = torch.arange(4.0, device='dipu')\n"
        "torch.cumsum(x, 0, out=x)\n"
        "print(x.tolist(), [(row.operator, row.cause) for row in torch.dipu.fallback.report()])\n"
        "try: x.long() @ x\n"
        "except RuntimeError as error: print(error)\n"
        "print(len(torch.dipu.fallback.report()))\n"
    )
    shown = "[0.0, 1.0, 3.0, 6.0] [('aten::cumsum.out', 'memory that is written and shared')]"
    assert done.stdout.splitlines()[0] == shown, done.stderr
    assert done.stdout.splitlines()[-1] == "1"


ORDERED = {
    "choice": "t.where(m.T > 0, m.T, 0)",
    "choice of a number on the CPU": "t.where(m.T > 0, t.tensor(1.0), m.T)",
    "choice of two orders": "t.where(m.T > 0, m.T, m.T.contiguous())",
    "choice with a row": "t.where(m.T > 0, m.T, x[:, None])",
    "choice of channels last": "t.where(v[0].to(memory_format=t.channels_last) > 9, 1.0, 0.0)",
    "rounded": "m.T.round()",
    "without what is no number": "m.T.nan_to_num()",
    "remainders": "m.T.fmod(2)",
    "angles": "t.atan2(m.T, m.T)",
    "lengths": "t.hypot(m.T, m.T)",
    "running products": "m.T.cumprod(0)",
    "rolled": "m.T.roll(1, 0)",
    "rolled as one line": "m.T.roll(1)",
    "shifted spectrum": "t.fft.fftshift(m.T)",
    "rows scaled down": "m.T.renorm(2, 0, 1.0)",
    "normalized rows": "t.nn.functional.layer_norm(m.T, m.T.shape[1:])",
    "filled": "m.T.masked_fill(m.T > 0, 1)",
    "filled through a row": "m.T.masked_fill(m.T[:1] > 0, 1)",
    "scattered": "m.T.masked_scatter(m.T > 0, m)",
    "draws of probabilities": "t.bernoulli(m.T.clamp(0, 1))",
    "draws around means": "t.normal(m.T, 1.0).mul_(0)",
    "draws of deviations": "t.normal(0.0, m.T.abs()).mul_(0)",
    "draws of both": "t.normal(m.T, m.T.abs()).mul_(0)",
    "vector products": "t.linalg.cross(v.flatten()[:6].view(3, 2).T, v.flatten()[:6].view(3, 2).T)",
    "smallest": "m.T.kthvalue(1, 0, keepdim=True).values",
    "angles of two shapes": "t.atan2(m.T[:, None], m.T)",
    "both of two shapes": "t.logical_and(m.T[:, None], m.T)",
    "choice of three shapes": "t.where(m.T[:, None] > 0, m.T, m.T[:, :1, None])",
    "convolved": "t.conv2d(v[0], t.ones(3, 4, 3, 3, device=d))",
    "convolved with channels last": "t.conv2d(v[0].to(memory_format=t.channels_last), t.ones(3, 4, 3, 3, device=d))",
    "convolved by channels last": "t.conv2d(v[0], t.ones(3, 4, 3, 3, device=d).to(memory_format=t.channels_last))",
    "convolved back by channels last": (
        "t.conv_transpose2d(v[0], t.ones(4, 3, 3, 3, device=d).to(memory_format=t.channels_last))"
    ),
    "gradients of what is convolved": (
        "(lambda w, b: t.autograd.grad(t.conv2d(v[0], w, b).sum(), (w, b)))(t.ones(3, 4, 3, 3, device=d).to("
        "memory_format=t.channels_last).requires_grad_(), t.ones(3, device=d, requires_grad=True))[0]"
    ),
    "greatest of a volume": "t.max_pool3d(v[0].permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2), 2)",
    "greatest of volumes": "t.max_pool3d(v.to(memory_format=t.channels_last_3d), 2)",
    "halves not above a number": "x.half().mul(0.1).le(0.3)",
    "halves equal to a number": "x.bfloat16().mul(0.1).eq(0.1)",
    "remainders of halves": "x.half().mul(0.1).remainder(0.1)",
    "powers of halves": "x.bfloat16().pow(0.3)",
    "a number's powers of halves": "t.pow(0.3, x.bfloat16())",
    "angle of halves and a number": "t.atan2(x.half(), t.tensor(0.3))",
    "powers of bytes as integers": "t.pow(2, b * 17, out=i.clone())",
    "nothing of a product": "t.addr(m, m[:, 0] / 0, x, alpha=0)",
    "stretched bytes": "t.nn.functional.interpolate(v[0].byte(), scale_factor=2, mode='nearest')",
    "scaled halves": "t.ldexp(x.half() / 1024, i * 20 - 14)",
    "line of numbers in a plane": "(lambda o: (t.linspace(0, 3, 4, out=o[:, 1:]), o)[1])(t.zeros(2, 3, device=d))",
    "powers in a plane": "(lambda o: (t.logspace(0, 3, 4, out=o[:, 1:]), o)[1])(t.zeros(2, 3, device=d))",
    "joined nothing": "t.cat([x[:0], x[:0]], 1)",
    "integers of great numbers": "t.tensor([3e9, -3e9, 1e20], device=d).int()",
    "the greatest integer": "t.zeros(3, dtype=t.uint64, device=d).fill_(2**64 - 1)",
    "greatest of whole numbers": "t.nn.functional.max_pool2d(v[0].int(), 2)",
    "angles that lie as the first": "t.atan2(v[0].to(memory_format=t.channels_last), v[0])",
    "angles of one spread out": "t.atan2(x[:1].expand(2, 3), m)",
    "whole numbers up to one that halves round": (
        "t.empty(4000, dtype=t.half, device=d).random_(32752).lt(32752).all()"
    ),
    "averages with channels last": (
        "t.nn.functional.adaptive_avg_pool2d(v[0].to(memory_format=t.channels_last), (3, 2))"
    ),
    "mirrored with channels last": (
        "t.nn.functional.pad(v[0].to(memory_format=t.channels_last), (1, 0, 1, 1), mode='reflect')"
    ),
    "edges of volumes": "t.nn.functional.pad(v.to(memory_format=t.channels_last_3d), (1,) * 6, mode='replicate')",
    "gradient of a mirrored image": (
        "(lambda w: t.autograd.grad(t.nn.functional.pad(w, (1, 1, 1, 1), mode='reflect').square().sum(), w))("
        "v[0].to(memory_format=t.channels_last).requires_grad_())[0]"
    ),
}


def test_places_go_to_the_device_of_the_elements(torch: Any) -> None:
    words = "expected self and out to be on the same device, but got out on cpu and self on dipu:0"
    with pytest.raises(RuntimeError, match=words):
        torch.nonzero(torch.ones(2, device="dipu"), out=torch.empty(0, dtype=torch.int64))


@pytest.mark.parametrize("name", ORDERED)
def test_dimensions_lie_in_the_cpus_order(torch: Any, name: str) -> None:
    program = f"(lambda result: (result, t.tensor(result.stride())))({ORDERED[name]})"
    wanted, ours = (run(torch, device, program) for device in ("cpu", "dipu"))
    torch.testing.assert_close(ours, wanted, equal_nan=True)

"""Programs as people write them, those that only look like an idiom, and what is said of both."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Program = Callable[..., Any]


def normal(x: Any, dim: int = -1) -> Any:
    return x * (x.pow(2).mean(dim, keepdim=True) + 1e-6).rsqrt()


def llama_norm(torch: Any, x: Any, w: Any) -> Any:
    dtype = x.dtype
    wide = x.to(torch.float32)
    variance = wide.pow(2).mean(-1, keepdim=True)
    return w * (wide * torch.rsqrt(variance + 1e-6)).to(dtype)


def typed_norm(torch: Any, x: Any, w: Any) -> Any:
    wide = x.float()
    return (wide * torch.rsqrt(torch.mean(wide * wide, dim=-1, keepdim=True) + 1e-6)).type_as(x) * w


def gemma_norm(torch: Any, x: Any, w: Any) -> Any:
    wide = x.float()
    normal = wide * torch.rsqrt(wide.square().mean(axis=-1, keepdims=True) + 1e-6)
    return (normal * (1.0 + w.float())).type_as(x)


def bert_norm(torch: Any, x: Any, w: Any) -> Any:
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).pow(2).mean(-1, keepdim=True)
    return torch.mul(w, (x - mean) / torch.sqrt(variance + 1e-12)) + w


def eager_attention(torch: Any, q: Any, k: Any, v: Any) -> Any:
    weights = torch.matmul(q, k.transpose(2, 3)) * q.shape[-1] ** -0.5
    weights = torch.nn.functional.softmax(weights, dim=-1, dtype=torch.float32).to(q.dtype)
    weights = torch.nn.functional.dropout(weights, p=0.0, training=True)
    return torch.matmul(weights, v).transpose(1, 2).contiguous()


def heads_first(torch: Any, q: Any, k: Any, v: Any) -> Any:
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
    return (weights @ v).transpose(1, 2).reshape(q.size(0), q.size(2), -1)


def nano_attention(torch: Any, q: Any, k: Any, v: Any) -> Any:
    length = q.size(2)
    mask = torch.tril(torch.ones(length, length, device=q.device)).view(1, 1, length, length)
    weights = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
    weights = weights.masked_fill(mask[:, :, :length, :length] == 0, float("-inf"))
    return torch.nn.functional.softmax(weights, dim=-1) @ v


def added_mask(torch: Any, q: Any, k: Any, v: Any) -> Any:
    length = q.size(2)
    mask = torch.triu(torch.full((length, length), float("-inf"), device=q.device), diagonal=1)
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.size(-1)) + mask, -1) @ v


def layers(torch: Any, x: Any, w: Any) -> Any:
    hidden = torch.relu(x @ w.T + w[:, 0])
    return torch.matmul(hidden, w) + w[0]


def mean_of_chosen(torch: Any, x: Any, t: Any) -> Any:
    return -torch.log_softmax(x, dim=1)[torch.arange(x.shape[0], device=x.device), t].mean()


def two_norms(torch: Any, x: Any, w: Any) -> Any:
    return llama_norm(torch, llama_norm(torch, x, w) + x, w)


# The program, the sizes of what it takes (of classes where the list says so), and what it is.
FOUND: dict[str, tuple[Program, list[Any], list[str]]] = {
    "rms norm of LLaMA": (llama_norm, [(6, 16), (16,)], ["rms_norm"]),
    "rms norm by type_as": (typed_norm, [(6, 16), (16,)], ["rms_norm"]),
    "rms norm of Gemma": (gemma_norm, [(6, 16), (16,)], ["rms_norm"]),
    "two rms norms": (two_norms, [(6, 16), (16,)], ["rms_norm", "rms_norm"]),
    "rms norm, then rows": (lambda torch, x, w: normal(x) * w[:, None], [(8, 8), (8,)], ["rms_norm"]),
    "rms norm, then one number": (lambda torch, x, w: normal(x) * w[:1], [(8, 8), (8,)], ["rms_norm"]),
    "rms norm, then another dtype": (lambda torch, x, w: normal(x) * w.double(), [(8, 8), (8,)], ["rms_norm"]),
    "layer norm of BERT": (bert_norm, [(6, 16), (16,)], ["layer_norm"]),
    "attention of transformers": (eager_attention, [(2, 3, 5, 8)] * 3, ["attention"]),
    "attention over turned tensors": (heads_first, [(2, 5, 3, 8)] * 3, ["attention"]),
    "attention below a mask": (nano_attention, [(2, 3, 5, 8)] * 3, ["attention"]),
    "attention with an added mask": (added_mask, [(2, 3, 5, 8)] * 3, ["attention"]),
    "layers": (layers, [(6, 8), (8, 8)], ["linear"]),
    "cross entropy by index": (mean_of_chosen, [(6, 8), "classes"], ["cross_entropy"]),
    "softmax by max": (
        lambda torch, x: (e := (x - x.max(-1, keepdim=True).values).exp()) / e.sum(-1, keepdim=True),
        [(6, 8)],
        ["softmax"],
    ),
    "softmax by methods of Python's operators": (
        lambda torch, x: (e := x.__sub__(x.amax(-1, keepdim=True)).exp()).__truediv__(e.sum(-1, keepdim=True)),
        [(6, 8)],
        ["softmax"],
    ),
    "log softmax": (lambda torch, x: x - x.logsumexp(dim=1, keepdim=True), [(6, 8)], ["log_softmax"]),
}


def probabilities(torch: Any, q: Any, k: Any, v: Any) -> Any:
    weights = torch.softmax(q @ k.transpose(-2, -1) * 0.5, -1)
    return weights @ v, weights


def shared_weights(torch: Any, x: Any, w: Any) -> Any:
    with torch.no_grad():
        copy = x.clone()
        spread = copy.pow(2).mean(-1, keepdim=True) + 1e-6
        copy.mul_(2)
        scaled = copy * torch.rsqrt(spread)
    return scaled * w + x


LEFT: dict[str, tuple[Program, list[Any]]] = {
    "rms norm of another dimension": (lambda torch, x, w: normal(x, 0) * w, [(8, 8), (8,)]),
    "rms norm with an added tensor": (
        lambda torch, x, w: x * (x.pow(2).mean(-1, keepdim=True) + w[:1]).abs().rsqrt(),
        [(8, 8), (8,)],
    ),
    "third powers": (lambda torch, x: x * (x.pow(4).mean(-1, keepdim=True) + 1e-6).rsqrt(), [(8, 8)]),
    "spread of another tensor": (
        lambda torch, x, y: x * (y.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt(),
        [(8, 8)] * 2,
    ),
    "an inner value is returned": (
        lambda torch, x: (s := x.pow(2).mean(-1, keepdim=True), x * (s + 1e-6).rsqrt()),
        [(8, 8)],
    ),
    "a write between": (shared_weights, [(8, 8), (8,)]),
    "a variance without bias": (
        lambda torch, x: (x - x.mean(-1, keepdim=True)) * (x.var(-1, keepdim=True) + 1e-6).rsqrt(),
        [(8, 8)],
    ),
    "softmax of two dimensions": (
        lambda torch, x: (e := (x - x.amax(0, keepdim=True)).exp()) / e.sum(1, keepdim=True),
        [(8, 8)],
    ),
    "attention of three dimensions": (
        lambda torch, q, k, v: torch.softmax(q @ k.transpose(-2, -1), -1) @ v,
        [(3, 5, 8)] * 3,
    ),
    "attention along queries": (
        lambda torch, q, k, v: torch.softmax(q @ k.transpose(-2, -1), -2) @ v,
        [(2, 3, 5, 8)] * 3,
    ),
    "attention of shared heads": (
        lambda torch, q, k, v: torch.softmax(q @ k.transpose(-2, -1), -1) @ v,
        [(2, 3, 5, 8), (2, 1, 5, 8), (2, 1, 5, 8)],
    ),
    "attention with a mask of its own": (
        lambda torch, q, k, v: torch.softmax(q @ k.transpose(-2, -1) + q[:, :, :, :5], -1) @ v,
        [(2, 3, 5, 8)] * 3,
    ),
    "attention below another diagonal": (
        lambda torch, q, k, v: torch.softmax(
            (q @ k.mT).masked_fill(torch.ones(5, 5, device=q.device).triu(2) == 1, -torch.inf), -1
        )
        @ v,
        [(2, 3, 5, 8)] * 3,
    ),
    "attention below a small number": (
        lambda torch, q, k, v: torch.softmax(
            (q @ k.mT).masked_fill(torch.ones(5, 5, device=q.device, dtype=torch.bool).triu(1), -1.0), -1
        )
        @ v,
        [(2, 3, 5, 8)] * 3,
    ),
    "attention whose weights are returned": (probabilities, [(2, 3, 5, 8)] * 3),
    "a bias of two dimensions": (lambda torch, x, w, b: x @ w.t() + b, [(4, 8), (6, 8), (4, 6)]),
    "a sum and no mean": (
        lambda torch, x, t: -torch.log_softmax(x, 1).gather(1, t[:, None]).sum(),
        [(6, 8), "classes"],
    ),
    "classes of three dimensions": (
        lambda torch, x, t: -torch.log_softmax(x, -1).gather(-1, t[:, None, None].expand(6, 4, 1)).mean(),
        [(6, 4, 8), "classes"],
    ),
}


@pytest.fixture
def every(monkeypatch: pytest.MonkeyPatch, compiler: Any) -> None:
    monkeypatch.setenv("DICP_PATTERNS", "all")


def check(torch: Any, compiled: Any, program: Program, sizes: list[Any], **options: Any) -> None:
    """Results and gradients of the compiled program, against float64."""
    torch.manual_seed(0)
    given = [torch.randint(8, (6,)) if size == "classes" else torch.randn(size) for size in sizes]
    found = computed(torch, compiled(lambda *args: program(torch, *args), **options), [t.to("dipu") for t in given])
    exact = computed(
        torch, lambda *args: program(_Wide(torch), *args), [t.double() if t.is_floating_point() else t for t in given]
    )
    for one, other in zip(found, exact, strict=True):
        torch.testing.assert_close(one.cpu().double(), other.double(), rtol=2e-5, atol=2e-5)


class _Wide:
    """torch in which float32 is float64."""

    def __init__(self, torch: Any) -> None:
        self._torch, self.float32 = torch, torch.float64

    def __getattr__(self, name: str) -> Any:
        return getattr(self._torch, name)


def computed(torch: Any, program: Callable[..., Any], given: list[Any]) -> list[Any]:
    leaves = [tensor.requires_grad_() for tensor in given if tensor.is_floating_point()]
    out = program(*given)
    results = list(out) if isinstance(out, tuple) else [out]
    torch.manual_seed(1)
    total = sum((r * torch.randn(r.shape).to(r.device, r.dtype)).sum() for r in results)
    return [r.detach() for r in (*results, *torch.autograd.grad(total, leaves))]


@pytest.mark.usefixtures("every")
@pytest.mark.parametrize("name", FOUND)
def test_programs_as_people_write_them(torch: Any, compiled: Any, reports: Any, name: str) -> None:
    program, sizes, patterns = FOUND[name]
    check(torch, compiled, program, sizes)
    assert [one.pattern for one in reports()[0].patterns] == patterns, reports()[0].text()


@pytest.mark.usefixtures("every")
@pytest.mark.parametrize("name", LEFT)
def test_what_only_looks_like_an_idiom_is_left(torch: Any, compiled: Any, reports: Any, name: str) -> None:
    program, sizes = LEFT[name]
    check(torch, compiled, program, sizes)
    assert {p.pattern for r in reports() for p in r.patterns} <= {"log_softmax", "softmax"}, reports()[0].text()


def test_another_length_than_foreseen_is_no_idiom_of_one_length(torch: Any, compiled: Any, reports: Any) -> None:
    """Where the last dimension is a symbol, torch has no gradient for the operator."""
    torch._dynamo.mark_dynamic(x := torch.randn(4, 8).to("dipu"), 1)
    torch.testing.assert_close(compiled(lambda x: normal(x), dynamic=None)(x).cpu(), normal(x.cpu()))
    assert reports()[0].patterns == ()


@pytest.mark.usefixtures("every")
def test_scales_and_masks_whose_lengths_are_symbols(torch: Any, compiled: Any, reports: Any) -> None:
    run = compiled(lambda q, k, v: added_mask(torch, q, k, v), dynamic=True)
    for length in (5, 7):
        torch.manual_seed(0)
        given = [torch.randn(2, 3, length, 8) for _ in range(3)]
        found = run(*(tensor.to("dipu") for tensor in given))
        torch.testing.assert_close(found.cpu(), added_mask(torch, *given), rtol=2e-5, atol=2e-5)
    (report,) = reports()
    assert [one.pattern for one in report.patterns] == ["attention"] and len(report.program.instructions) == 1


@pytest.mark.usefixtures("every")
def test_strides_that_a_program_sees_are_kept(torch: Any, compiled: Any, reports: Any) -> None:
    """The function's result is as its queries are, torch's product is dense; a view of it must stay possible."""
    q = torch.randn(2, 5, 3, 8)

    def run(q: Any) -> Any:
        turned = q.transpose(1, 2)
        out = torch.softmax(turned @ turned.mT, -1) @ turned
        return out.view(6, 5, 8), out

    found = compiled(run)(q.to("dipu"))
    for one, other in zip(found, run(q), strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=2e-5, atol=2e-5)
        assert one.stride() == other.stride()
    assert [one.pattern for one in reports()[0].patterns] == ["attention"]


@pytest.mark.usefixtures("every")
def test_a_vendor_without_the_function_keeps_the_loops(
    torch: Any, compiled: Any, reports: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch_dipu import _native

    native = _native.load()
    lacks = {"diopiLayerNormBackward", "diopiFlashAttention"}

    class Lacking:
        def __getattr__(self, name: str) -> Any:
            return (
                (lambda s: s not in lacks and native.vendor_has(s)) if name == "vendor_has" else getattr(native, name)
            )

    monkeypatch.setattr(_native, "load", Lacking)
    x, w = torch.randn(4, 8), torch.randn(8)
    found = compiled(lambda x, w: bert_norm(torch, x, w))(x.to("dipu"), w.to("dipu"))
    torch.testing.assert_close(found.cpu(), bert_norm(torch, x, w), rtol=2e-5, atol=2e-5)
    for dtype in (torch.float16, torch.float32):  # one function is for halves, another for the rest
        q = torch.randn(2, 3, 5, 8).to("dipu", dtype)
        compiled(lambda q: torch.softmax(q @ q.mT, -1) @ q)(q)
    assert [[one.pattern for one in report.patterns] for report in reports()] == [[], [], ["attention"]]


@pytest.mark.usefixtures("every")
def test_mixed_precision_keeps_its_dtypes(torch: Any, compiled: Any) -> None:
    """Products are halves where a program says so, whatever the dtype of what is multiplied."""

    def run(q: Any) -> Any:
        with torch.autocast(q.device.type, torch.bfloat16):
            return torch.softmax(q @ q.mT, -1) @ q

    q = torch.randn(2, 3, 5, 8)
    found = compiled(run)(q.to("dipu"))
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.cpu().float(), torch.softmax(q @ q.mT, -1) @ q, rtol=5e-2, atol=5e-2)


@pytest.mark.usefixtures("every")
def test_transformed_functions_give_what_they_gave(torch: Any, compiled: Any) -> None:
    """vmap and jvp see other tensors than the program does."""

    def attended(q: Any) -> Any:
        return torch.softmax(q @ q.mT, -1) @ q

    q = torch.randn(4, 2, 3, 5, 8)
    found = compiled(torch.vmap(attended))(q.to("dipu"))
    torch.testing.assert_close(found.cpu(), torch.vmap(attended)(q), rtol=2e-5, atol=2e-5)
    slope = compiled(torch.func.grad(lambda x: bert_norm(torch, x, x[0]).square().sum()))(q[0, 0, 0].to("dipu"))
    exact = torch.func.grad(lambda x: bert_norm(torch, x, x[0]).square().sum())(q[0, 0, 0].double())
    torch.testing.assert_close(slope.cpu().double(), exact, rtol=1e-4, atol=1e-4)


def applied(torch: Any, compiled: Any, reports: Any) -> list[str]:
    torch.compiler.reset()
    x, w = torch.randn(4, 8).to("dipu"), torch.randn(8).to("dipu")
    compiled(lambda x, w: torch.relu(llama_norm(torch, x, w) @ x.mT + w[:4]))(x, w)
    return [one.pattern for one in reports()[-1].patterns]


@pytest.mark.parametrize(
    ("variable", "found"),
    [
        ("0", []),
        ("all", ["rms_norm", "linear"]),
        ("linear", ["linear"]),
        ("rms_norm, linear", ["rms_norm", "linear"]),
        ("softmax", []),
    ],
)
def test_a_variable_chooses(
    torch: Any, compiled: Any, reports: Any, monkeypatch: pytest.MonkeyPatch, variable: str, found: list[str]
) -> None:
    monkeypatch.setenv("DICP_PATTERNS", variable)
    assert applied(torch, compiled, reports) == found


@pytest.mark.parametrize("turn", ["mT", "numpy_T", "t"])
def test_a_turned_matrix_may_be_an_operator(torch: Any, compiled: Any, reports: Any, turn: str) -> None:
    """As Dynamo writes x.mT and x.T since torch 2.15."""
    turned = getattr(torch.ops.aten, turn)
    x, y, w = (torch.randn(*sizes).to("dipu") for sizes in ((4, 8), (6, 8), (6,)))
    compiled(lambda x, y, w: torch.relu(x @ turned(y) + w))(x, y, w)
    assert [one.pattern for one in reports()[-1].patterns] == ["linear"]


def test_without_a_variable_the_vendor_decides(torch: Any, compiled: Any, reports: Any, compiler: Any) -> None:
    from dicp.backend import vendor_target

    every = vendor_target().patterns.every
    wanted = [name for name in ("rms_norm", "linear") if every[name].off is None]
    assert applied(torch, compiled, reports) == wanted


def test_a_name_that_is_no_pattern_is_an_error(
    torch: Any, compiled: Any, reports: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DICP_PATTERNS", "rmsnorm")
    with pytest.raises(Exception, match="DICP_PATTERNS names 'rmsnorm', and the patterns are rms_norm, layer_norm"):
        applied(torch, compiled, reports)


@pytest.mark.usefixtures("every")
def test_what_was_found_is_said(
    torch: Any, compiled: Any, reports: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DICP_DUMP", str(tmp_path))
    x = torch.randn(4, 8).to("dipu").requires_grad_()
    compiled(lambda x: bert_norm(torch, x, x[0]))(x).sum().backward()
    line = "  pattern layer_norm: mean, sub, pow_1, variance, sub_1, add, sqrt, truediv, mul, add_1 became layer_norm"
    assert all(line in report.text() for report in reports()), reports()[0].text()
    for folder in tmp_path.iterdir():
        (said,) = json.loads((folder / "program.json").read_text())["patterns"]
        assert said["pattern"] == "layer_norm" and said["node"] == "layer_norm" and "truediv" in said["nodes"]
        assert line in (folder / "explanation.txt").read_text()

"""Attention that the device serves at once is one call of the vendor's function, forward and backward."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.torch.dicp.programs import calls_of

SHAPES = {
    "heads first": ((2, 3, 7, 8), (2, 3, 7, 8), False),
    "tokens first": ((2, 3, 7, 8), (2, 3, 7, 8), True),
    "more keys": ((2, 3, 5, 8), (2, 3, 9, 8), False),
    "one head of keys for two of queries": ((2, 4, 5, 8), (2, 2, 5, 8), False),
}


def drawn(torch: Any, dtype: Any, sizes: Sequence[Sequence[int]], tokens_first: bool) -> list[Any]:
    generator = torch.Generator().manual_seed(3)
    found = []
    for batch, heads, tokens, channels in sizes:
        value = torch.randn(batch, tokens, heads, channels, generator=generator).to(dtype)
        found.append(value.transpose(1, 2) if tokens_first else value.transpose(1, 2).contiguous())
    return found


def attend(torch: Any, q: Any, k: Any, v: Any, **options: Any) -> Any:
    options.setdefault("enable_gqa", q.shape[1] != k.shape[1])
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, **options)


def check_against_float64(torch: Any, function: Callable[..., Any], given: Sequence[Any], **options: Any) -> None:
    """The result and all gradients."""
    dtype = given[0].dtype
    mine = [value.to("dipu").requires_grad_() for value in given]
    exact = [value.double().requires_grad_() for value in given]
    found, expected = function(*mine), attend(torch, *exact, **options)
    assert found.stride() == attend(torch, *mine, **options).stride()
    weight = torch.randn(expected.shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    found.backward(weight.to(dtype).to("dipu"))
    expected.backward(weight.to(dtype).double())
    near = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 5e-2, "atol": 5e-2}
    torch.testing.assert_close(found.detach().cpu().double(), expected.detach(), **near)
    for one, other in zip(mine, exact, strict=True):
        torch.testing.assert_close(one.grad.cpu().double(), other.grad, **near)


# Torch computes what is causal and of other lengths with several products.
CALLS = [
    pytest.param(shape, options, id=f"{shape}, {name}")
    for shape, (of_query, of_key, _) in SHAPES.items()
    for name, options in (("plain", {}), ("causal", {"is_causal": True, "scale": 0.3}))
    if name == "plain" or of_query[2] == of_key[2]
]


@pytest.mark.parametrize(("shape", "options"), CALLS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_one_call_each_way(
    torch: Any, compiled: Any, reports: Any, dtype: str, shape: str, options: dict[str, Any]
) -> None:
    of_query, of_key, tokens_first = SHAPES[shape]
    given = drawn(torch, getattr(torch, dtype), [of_query, of_key, of_key], tokens_first)
    check_against_float64(torch, compiled(lambda q, k, v: attend(torch, q, k, v, **options)), given, **options)
    if dtype == "float32" and of_query[1] != of_key[1]:
        names = [i.operator for report in reports() for i in report.program.instructions if hasattr(i, "operator")]
        assert names == [f"aten::_scaled_dot_product_fused_attention_overrideable{way}" for way in ("", "_backward")]
        return
    name = "diopiMultiHeadAttention" if dtype == "float32" else "diopiFlashAttention"
    assert [calls_of(report) for report in reports()] == [[name], [f"{name}Backward"]]
    assert [len(report.program.instructions) for report in reports()] == [1, 1]


def test_lengths_that_change(torch: Any, compiled: Any, reports: Any) -> None:
    run = compiled(lambda q, k, v: attend(torch, q, k, v, is_causal=True, enable_gqa=False), dynamic=True)
    for tokens, channels in ((5, 8), (9, 8), (17, 16)):
        given = drawn(torch, torch.float32, [(2, 3, tokens, channels)] * 3, True)
        check_against_float64(torch, run, given, is_causal=True)
    assert [calls_of(report) for report in reports()] == [
        ["diopiMultiHeadAttention"],
        ["diopiMultiHeadAttentionBackward"],
    ]


def test_what_the_function_does_not_say_is_what_eager_mode_says(torch: Any, compiled: Any) -> None:
    """Of nine results two are the function's; the rest are numbers, absent, or zeros."""
    operator = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
    q, k, v = (value.to("dipu") for value in drawn(torch, torch.float32, [(2, 3, 7, 8)] * 3, False))
    run = compiled(lambda q, k, v: operator(q, k, v))
    expected = operator(q, k, v)
    for _ in range(2):
        found = run(q, k, v)
        for one, other in zip(found, expected, strict=True):
            if isinstance(other, torch.Tensor):
                torch.testing.assert_close(one.cpu(), other.cpu())
            else:
                assert one == other


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ([(2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8)], {"is_causal": True}),
        ([(2, 3, 5, 8), (2, 3, 5, 8), (2, 3, 5, 4)], {}),
        ([(2, 4, 5, 8), (2, 2, 5, 8), (2, 2, 5, 8)], {}),
    ],
    ids=["causal of other lengths", "other channels of values", "shared heads of floats"],
)
def test_what_the_functions_do_not_take_stays_the_eager_operators(
    torch: Any, compiled: Any, reports: Any, sizes: Any, options: dict[str, Any]
) -> None:
    given = drawn(torch, torch.float32, sizes, False)
    mine = [value.to("dipu") for value in given]
    found = compiled(lambda q, k, v: attend(torch, q, k, v, **options))(*mine)
    exact = attend(torch, *(value.double() for value in given), **options)
    torch.testing.assert_close(found.cpu().double(), exact, rtol=1e-4, atol=1e-5)
    assert "Attention" not in "".join(calls_of(reports()[0]))


def test_a_step_with_attention_is_recorded(torch: Any, compiler: Any, reports: Any) -> None:
    run = torch.compile(
        lambda q, k, v: attend(torch, q * 2, k, v).sum(), backend=compiler, fullgraph=True, mode="reduce-overhead"
    )
    given = drawn(torch, torch.float32, [(2, 3, 7, 8)] * 3, False)
    mine = [value.to("dipu") for value in given]
    for _ in range(4):
        found = run(*mine)
        exact = attend(torch, given[0].double() * 2, *(value.double() for value in given[1:])).sum()
        torch.testing.assert_close(found.cpu().double(), exact, rtol=1e-4, atol=1e-4)
        del found
    (report,) = reports()
    assert report.executable.replays()["launched"] >= 1


def test_random_numbers_go_on_as_without_attention(torch: Any, compiled: Any) -> None:
    """The function is given the device's generator, and draws nothing."""
    q, k, v = (value.to("dipu") for value in drawn(torch, torch.float32, [(2, 3, 7, 8)] * 3, False))
    run = compiled(lambda q, k, v: attend(torch, q, k, v))
    torch.manual_seed(5)
    expected = torch.rand(4, device="dipu").cpu()
    torch.manual_seed(5)
    run(q, k, v)
    assert torch.rand(4, device="dipu").cpu().tolist() == expected.tolist()


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_dropout_draws_what_eager_mode_would(torch: Any, compiled: Any, reports: Any, dtype: str, mode: Any) -> None:
    """Forward and backward, run after run, recorded or not."""
    sizes = ((2, 3, 6, 8),) * 3
    given = [value.to("dipu").requires_grad_() for value in drawn(torch, getattr(torch, dtype), sizes, False)]
    functions = {
        "eager": lambda *x: attend(torch, *x, dropout_p=0.4),
        "compiled": compiled(lambda *x: attend(torch, *x, dropout_p=0.4), mode=mode),
    }
    found: dict[str, list[Any]] = {}
    for name, function in functions.items():
        torch.manual_seed(12)
        found[name] = []
        for _ in range(5):
            out = function(*given)
            found[name] += [out, *torch.autograd.grad(out, given, torch.ones_like(out))]
    for one, other in zip(*found.values(), strict=True):
        torch.testing.assert_close(one.cpu(), other.cpu(), rtol=0, atol=0)
    assert not torch.equal(found["eager"][0].cpu(), found["eager"][4].cpu())
    forward, backward = reports()
    flash = "diopiFlashAttention" if dtype == "bfloat16" else "diopiMultiHeadAttention"
    assert calls_of(forward) == [flash] and calls_of(backward) == [f"{flash}Backward"]
    assert not forward.islands and not backward.islands


def test_dropout_whose_gradient_nobody_wants(torch: Any, compiled: Any) -> None:
    x = torch.ones(1, 2, 4, 8, device="dipu")
    run = compiled(lambda x: attend(torch, x, x, x, dropout_p=0.5))
    torch.manual_seed(13)
    found = run(x)
    torch.manual_seed(13)
    assert torch.equal(found.cpu(), attend(torch, x, x, x, dropout_p=0.5).cpu())


def test_the_gradient_drops_the_same_while_other_threads_draw(torch: Any, compiled: Any) -> None:
    run = compiled(lambda q, v: attend(torch, q, q, v, dropout_p=0.5))
    query = torch.zeros(1, 1, 4, 4, device="dipu")
    value = torch.eye(4)[None, None].to("dipu").requires_grad_()
    over = threading.Event()

    def draw() -> None:
        while not over.is_set():
            torch.rand(1, device="dipu")

    other = threading.Thread(target=draw)
    other.start()
    try:
        for _ in range(100):
            out = run(query, value)
            (grad,) = torch.autograd.grad(out, value, torch.ones_like(out))
            # weights are alike, so that a row of the gradient is what its key's column of the result adds up to
            torch.testing.assert_close(grad[0, 0, :, 0].cpu(), out[0, 0].sum(0).detach().cpu())
    finally:
        over.set()
        other.join()

"""Attention by the contract's functions against the CPU in float64, and what torch still decomposes."""

from typing import Any

import pytest

# batch, heads of queries, heads of keys, queries, keys, channels
SHAPES = [
    (2, 3, 3, 5, 7, 8),
    (1, 2, 2, 1, 9, 16),
    (2, 4, 2, 6, 6, 5),
    (1, 6, 1, 33, 33, 64),
    (2, 8, 8, 300, 300, 8),  # several blocks of queries
    (2, 8, 4, 400, 350, 4),
    (2, 4, 2, 512, 512, 64),  # what libraries have kernels for
    (1, 3, 3, 128, 320, 128),
]
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 1e-2, "bfloat16": 5e-2}


def drawn(torch: Any, shape: tuple[int, ...], seed: int) -> tuple[Any, Any, Any, Any]:
    """Query, key, value and the gradient of the result, in float64."""
    batch, heads, shared, queries, keys, channels = shape
    generator = torch.Generator().manual_seed(seed)
    sizes = ((batch, heads, queries), (batch, shared, keys), (batch, shared, keys), (batch, heads, queries))
    return tuple(torch.randn((*size, channels), generator=generator, dtype=torch.float64) for size in sizes)


def attended(torch: Any, inputs: tuple[Any, ...], grad: Any, **options: Any) -> tuple[Any, ...]:
    """The result, the node that differentiates it, and the gradients."""
    leaves = tuple(each.detach().requires_grad_() for each in inputs)
    out = torch.nn.functional.scaled_dot_product_attention(*leaves, **options)
    return out, out.grad_fn.name(), *torch.autograd.grad(out, leaves, grad)


def is_fused(node: str) -> bool:
    return "FusedAttentionOverrideable" in node


def check(torch: Any, inputs: tuple[Any, ...], dtype: str, fused: bool, **options: Any) -> None:
    """Holds the device against the CPU in float64, on the same (rounded) numbers."""
    kind = getattr(torch, dtype)
    rounded = tuple(each.to(kind) for each in inputs)
    torch.dipu.fallback.reset()
    placed = {name: value.to("dipu") if isinstance(value, torch.Tensor) else value for name, value in options.items()}
    on_device = tuple(each.to("dipu") for each in rounded)
    found = attended(torch, on_device[:3], on_device[3], **placed)
    assert torch.dipu.fallback.report() == []
    assert is_fused(found[1]) == fused, found[1]
    exact = tuple(each.double() for each in rounded)
    wanted = attended(torch, exact[:3], exact[3], **options)
    for ours, right in zip((found[0], *found[2:]), (wanted[0], *wanted[2:]), strict=True):
        assert ours.dtype == kind
        scale = max(1.0, right.abs().max().item())
        torch.testing.assert_close(ours.cpu().double(), right, rtol=0, atol=TOLERANCE[dtype] * scale)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
def test_result_and_gradients(torch: Any, shape: tuple[int, ...], dtype: str) -> None:
    grouped = shape[1] != shape[2]
    check(torch, drawn(torch, shape, 1), dtype, True, enable_gqa=grouped)
    check(torch, drawn(torch, shape, 2), dtype, True, enable_gqa=grouped, scale=0.3)
    # the contract's diagonal ends at the last key, torch's begins at the first
    square = shape[3] == shape[4]
    check(torch, drawn(torch, shape, 3), dtype, square, enable_gqa=grouped, is_causal=True)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_heads_that_lie_side_by_side(torch: Any, dtype: str) -> None:
    inputs = tuple(each.transpose(1, 2).contiguous().transpose(1, 2) for each in drawn(torch, (2, 3, 3, 6, 6, 8), 4))
    check(torch, inputs, dtype, True, is_causal=True)
    device = [each.to(getattr(torch, dtype)).to("dipu") for each in inputs[:3]]
    assert device[0].stride() == inputs[0].stride()
    out = torch.nn.functional.scaled_dot_product_attention(*device)
    assert out.stride() == inputs[0].stride()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("causal", [False, True])
def test_the_same_bits_in_every_run(torch: Any, causal: bool, dtype: str) -> None:
    inputs = tuple(each.to(getattr(torch, dtype)).to("dipu") for each in drawn(torch, (2, 4, 2, 512, 512, 64), 14))
    runs = [attended(torch, inputs[:3], inputs[3], is_causal=causal, enable_gqa=True) for _ in range(3)]
    assert is_fused(runs[0][1])
    for run in runs[1:]:
        for one, other in zip((runs[0][0], *runs[0][2:]), (run[0], *run[2:]), strict=True):
            assert torch.equal(one.cpu(), other.cpu())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_parts_of_one_projection(torch: Any, dtype: str) -> None:
    """Queries, keys and values side by side in memory, as one linear layer gives them."""
    heads, channels = 4, 64
    generator = torch.Generator().manual_seed(15)
    joined = torch.randn((2, 128, 3 * heads * channels), generator=generator, dtype=torch.float64)
    parts = tuple(each.unflatten(2, (heads, channels)).transpose(1, 2) for each in joined.chunk(3, dim=2))
    check(
        torch,
        (*parts, torch.randn(parts[0].shape, generator=generator, dtype=torch.float64)),
        dtype,
        True,
        is_causal=True,
    )
    device = joined.to(getattr(torch, dtype)).to("dipu").requires_grad_()
    split = tuple(each.unflatten(2, (heads, channels)).transpose(1, 2) for each in device.chunk(3, dim=2))
    assert not split[0].is_contiguous()
    found = torch.nn.functional.scaled_dot_product_attention(*split, is_causal=True)
    host = joined.to(getattr(torch, dtype)).double().requires_grad_()
    exact = tuple(each.unflatten(2, (heads, channels)).transpose(1, 2) for each in host.chunk(3, dim=2))
    wanted = torch.nn.functional.scaled_dot_product_attention(*exact, is_causal=True)
    (ours,), (right,) = torch.autograd.grad(found.sum(), device), torch.autograd.grad(wanted.sum(), host)
    torch.testing.assert_close(
        ours.cpu().double(), right, rtol=0, atol=TOLERANCE[dtype] * max(1.0, right.abs().max().item())
    )


def test_a_gradient_that_is_expanded(torch: Any) -> None:
    inputs = drawn(torch, (2, 3, 3, 5, 7, 8), 5)
    check(torch, (*inputs[:3], torch.ones((), dtype=torch.float64).expand(inputs[3].shape)), "float32", True)


def test_large_scores(torch: Any) -> None:
    query, key, value, grad = drawn(torch, (1, 2, 2, 6, 40, 8), 6)
    check(torch, (query * 30, key * 30, value, grad), "float64", True)


def test_masks_are_decomposed(torch: Any) -> None:
    inputs = drawn(torch, (2, 3, 3, 5, 7, 8), 7)
    seen = torch.rand((5, 7), generator=torch.Generator().manual_seed(8)) > 0.3
    seen[:, 0] = True
    check(torch, inputs, "float32", False, attn_mask=seen)
    query, key, value = (each.float().to("dipu").requires_grad_() for each in inputs[:3])
    bias = torch.zeros((5, 7), device="dipu", requires_grad=True)
    biased = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
    biased.sum().backward()
    assert bias.grad is not None


@pytest.mark.parametrize("sizes", [(0, 2, 3, 4), (2, 2, 0, 4), (2, 3, 4)])
def test_shapes_that_are_decomposed(torch: Any, sizes: tuple[int, ...]) -> None:
    x = torch.ones(sizes, device="dipu", requires_grad=True)
    out = torch.nn.functional.scaled_dot_product_attention(x, x, x)
    assert not is_fused(out.grad_fn.name())
    assert out.shape == x.shape


def test_the_users_choice_holds(torch: Any) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    query, key, value, grad = (each.float().to("dipu") for each in drawn(torch, (2, 3, 3, 5, 7, 8), 9))
    with sdpa_kernel(SDPBackend.MATH):
        decomposed = attended(torch, (query, key, value), grad)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        fused = attended(torch, (query, key, value), grad)
    assert (is_fused(decomposed[1]), is_fused(fused[1])) == (False, True)
    for one, other in zip((decomposed[0], *decomposed[2:]), (fused[0], *fused[2:]), strict=True):
        torch.testing.assert_close(one.cpu(), other.cpu())


def test_transforms(torch: Any) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    attention = torch.nn.functional.scaled_dot_product_attention
    host = tuple(each.float() for each in drawn(torch, (3, 2, 2, 5, 7, 8), 10))
    query, key, value, tangent = (each.to("dipu") for each in host)
    batched = torch.vmap(attention)(query[:, None], key[:, None], value[:, None])
    torch.testing.assert_close(batched[:, 0].cpu(), attention(*host[:3]))
    ours = torch.func.jvp(lambda q: attention(q, key, value), (query,), (tangent,))
    with sdpa_kernel(SDPBackend.MATH):  # the CPU's own has no forward-mode derivative
        wanted = torch.func.jvp(lambda q: attention(q, host[1], host[2]), (host[0],), (host[3],))
    torch.testing.assert_close(tuple(each.cpu() for each in ours), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("causal", [False, True])
def test_forced_to_the_cpu(torch: Any, causal: bool, dtype: str) -> None:
    inputs = tuple(each.to(getattr(torch, dtype)).to("dipu") for each in drawn(torch, (2, 4, 2, 6, 6, 5), 11))
    ours = attended(torch, inputs[:3], inputs[3], is_causal=causal, enable_gqa=True)
    torch.dipu.fallback.set(".*fused_attention.*")
    torch.dipu.fallback.reset()
    try:
        forced = attended(torch, inputs[:3], inputs[3], is_causal=causal, enable_gqa=True)
        counts = [row.count for row in torch.dipu.fallback.report()]
    finally:
        torch.dipu.fallback.set()
    assert counts == [1, 1]
    tolerance = 10 * TOLERANCE[dtype]
    for one, other in zip((ours[0], *ours[2:]), (forced[0], *forced[2:]), strict=True):
        torch.testing.assert_close(one.cpu(), other.cpu(), rtol=tolerance, atol=tolerance)


def test_compared_with_the_cpu(torch: Any) -> None:
    inputs = tuple(each.float().to("dipu") for each in drawn(torch, (2, 4, 2, 6, 6, 8), 12))
    torch.dipu.autocompare(ops=".*fused_attention.*", on_mismatch="raise")
    torch.dipu.debug.reset_comparisons()
    try:
        attended(torch, inputs[:3], inputs[3], enable_gqa=True)
        rows = torch.dipu.debug.comparisons()
    finally:
        torch.dipu.autocompare(ops="")
    # torch calls the forward operator random, for its dropout
    name = "aten::_scaled_dot_product_fused_attention_overrideable_backward"
    assert [(row.operator, row.runs, row.differences, row.skipped) for row in rows] == [(name, 1, 0, 0)]


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled(torch: Any, dynamic: bool) -> None:
    attention = torch.nn.functional.scaled_dot_product_attention
    compiled = torch.compile(lambda q, k, v: attention(q, k, v, is_causal=True), backend="aot_eager", dynamic=dynamic)
    query, key, value, grad = drawn(torch, (2, 3, 3, 6, 6, 8), 13)
    leaves = [each.float().to("dipu").requires_grad_() for each in (query, key, value)]
    host = [each.requires_grad_() for each in (query, key, value)]
    found = torch.autograd.grad(compiled(*leaves), leaves, grad.float().to("dipu"))
    wanted = torch.autograd.grad(attention(*host, is_causal=True), host, grad)
    for ours, right in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours.cpu().double(), right, rtol=1e-5, atol=1e-5)


def dropped(torch: Any, dtype: str, probability: float, **options: Any) -> tuple[Any, Any, Any]:
    """Which weights attention keeps, (batch, head, query, key), as its result tells and as the gradient of values does.

    All weights are alike, and each key has a channel of its own.
    """
    query, key = (torch.zeros(2, 3, 6, 8, dtype=getattr(torch, dtype), device="dipu") for _ in range(2))
    value = torch.eye(8, dtype=query.dtype)[:6].expand(2, 3, 6, 8).contiguous().to("dipu").requires_grad_()
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, dropout_p=probability, **options)
    told = []
    for at in range(6):
        grad = torch.zeros_like(out)
        grad[:, :, at, 0] = 1
        told.append(torch.autograd.grad(out, value, grad, retain_graph=True)[0][..., 0] > 0)
    return (out[..., :6] > 0).cpu(), torch.stack(told, 2).cpu(), out


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("causal", [False, True])
def test_the_gradient_drops_what_the_result_dropped(torch: Any, causal: bool, dtype: str) -> None:
    torch.dipu.fallback.reset()
    torch.manual_seed(5)
    seen, told, out = dropped(torch, dtype, 0.25, is_causal=causal)
    assert is_fused(out.grad_fn.name())
    assert torch.dipu.fallback.report() == []
    assert torch.equal(seen, told)
    lower = seen[..., *torch.tril_indices(6, 6)] if causal else seen
    assert 0.65 < lower.double().mean() < 0.85
    if not causal:
        assert (out[..., :6][out[..., :6] > 0].cpu().double() - 1 / 6 / 0.75).abs().max() < 2e-3
    other, _, _ = dropped(torch, dtype, 0.25, is_causal=causal)
    assert not torch.equal(seen, other)
    torch.manual_seed(5)
    assert torch.equal(dropped(torch, dtype, 0.25, is_causal=causal)[0], seen)


def test_gradients_of_dropped_attention(torch: Any) -> None:
    """Against the CPU, with the weights kept that the device kept."""
    host = drawn(torch, (2, 3, 3, 6, 6, 8), 14)
    torch.manual_seed(6)
    kept = dropped(torch, "float64", 0.25)[0].double() / 0.75
    torch.manual_seed(6)
    found = attended(torch, tuple(each.to("dipu") for each in host[:3]), host[3].to("dipu"), dropout_p=0.25)
    query, key, value = (each.requires_grad_() for each in host[:3])
    wanted = ((query @ key.mT / 8**0.5).softmax(-1) * kept) @ value
    grads = torch.autograd.grad(wanted, (query, key, value), host[3])
    for ours, right in zip((found[0], *found[2:]), (wanted, *grads), strict=True):
        torch.testing.assert_close(ours.cpu(), right.detach(), rtol=1e-12, atol=1e-12)


def test_everything_is_dropped(torch: Any) -> None:
    seen, told, out = dropped(torch, "float32", 1.0)
    assert is_fused(out.grad_fn.name())
    assert not seen.any() and not told.any() and out.eq(0).all()


def test_a_probability_above_one_is_refused_as_by_torch(torch: Any) -> None:
    host, texts = torch.ones(1, 2, 3, 4), []
    for x in (host, host.to("dipu")):
        with pytest.raises(RuntimeError) as error:
            torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=1.5)
        texts.append(str(error.value))
    assert texts[0] == texts[1]


def test_a_checkpoint_drops_the_same_again(torch: Any) -> None:
    query, key, value = (each.float().to("dipu") for each in drawn(torch, (2, 3, 3, 6, 6, 8), 15)[:3])
    found = []
    for again in (False, True):
        leaf = query.detach().requires_grad_()

        def attention(query: Any) -> Any:
            return torch.nn.functional.scaled_dot_product_attention(query, key, value, dropout_p=0.4) * query

        torch.manual_seed(7)
        y = torch.utils.checkpoint.checkpoint(attention, leaf, use_reentrant=False) if again else attention(leaf)
        y.sum().backward()
        found.append((y, leaf.grad))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one.cpu(), other.cpu())


@pytest.mark.parametrize("setting", ["fallback", "autocompare"])
def test_dropout_runs_as_products_where_the_cpu_is_asked(torch: Any, setting: str) -> None:
    """It would drop others."""
    ask = torch.dipu.fallback.set if setting == "fallback" else lambda ops="": torch.dipu.autocompare(ops=ops)
    ask(".*fused_attention.*backward")
    try:
        seen, told, out = dropped(torch, "float32", 0.25)
    finally:
        ask()
    assert not is_fused(out.grad_fn.name())
    assert torch.equal(seen, told)


def test_the_operator_itself_may_run_on_the_cpu(torch: Any) -> None:
    """As where the vendor's function refuses dropout: the CPU's gradient drops what its result dropped."""
    operator = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
    query = torch.zeros(2, 3, 6, 8, device="dipu")
    value = torch.eye(8)[:6].expand(2, 3, 6, 8).contiguous().to("dipu").requires_grad_()
    torch.dipu.fallback.set(".*fused_attention.*")
    try:
        out = operator(query, query, value, None, 0.25)[0]
        seen = (out[..., :6] > 0).cpu()
        for at in range(6):
            grad = torch.zeros_like(out)
            grad[:, :, at, 0] = 1
            told = torch.autograd.grad(out, value, grad, retain_graph=True)[0][..., 0] > 0
            assert torch.equal(told.cpu(), seen[:, :, at])
    finally:
        torch.dipu.fallback.set()
    assert 0.6 < seen.double().mean() < 0.9


def test_a_gradient_on_the_cpu_of_what_the_device_dropped_is_an_error(torch: Any) -> None:
    value = torch.ones(1, 2, 4, 8, device="dipu", requires_grad=True)
    out = torch.nn.functional.scaled_dot_product_attention(value, value, value, dropout_p=0.5)
    torch.dipu.fallback.set(".*fused_attention.*backward")
    try:
        with pytest.raises(RuntimeError) as error:
            out.sum().backward()
    finally:
        torch.dipu.fallback.set()
    assert str(error.value).splitlines()[0] == (
        "the CPU cannot tell which weights of attention the device dropped; let both operators run on one of them, "
        'e.g. by torch.dipu.fallback.set(".*fused_attention.*")'
    )


def test_no_gradient_gives_none(torch: Any) -> None:
    query = torch.randn(2, 2, 3, 4, device="dipu", requires_grad=True)
    out = torch.nn.functional.scaled_dot_product_attention(query, query, query)
    ends = torch._C._functions.UndefinedGrad()(out)
    assert torch.autograd.grad(ends, query, torch.ones_like(out), allow_unused=True) == (None,)


def test_nothing_is_left_where_all_is_dropped(torch: Any) -> None:
    """Also of weights that are too small for a float, of which a key has some."""
    q, k, v = (torch.randn(1, 2, 9, 8, generator=torch.Generator().manual_seed(n)) * 60 for n in range(3))
    leaves = [x.to("dipu").requires_grad_() for x in (q, k, v)]
    out = torch.nn.functional.scaled_dot_product_attention(*leaves, dropout_p=1.0)
    out.sum().backward()
    for found in (out, *(leaf.grad for leaf in leaves)):
        assert torch.equal(found.cpu(), torch.zeros(1, 2, 9, 8))

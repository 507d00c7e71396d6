"""Products of a compiled model in halves are of halves, and its attention is the vendor's function."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.torch.dicp.programs import calls_of
from tests.torch.half_models import half_model, loss_of


@pytest.fixture
def products_in_halves(torch: Any) -> Iterator[None]:
    """What torch composes attention with dropout of: matrix products in float32 unless it may take halves."""
    before = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    yield
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(before)


def dtypes_of_products(torch: Any, report: Any) -> set[Any]:
    """Of the tensors that matrix products and convolutions of a graph take."""
    aten = torch.ops.aten
    products = (aten.mm, aten.bmm, aten.addmm, aten.baddbmm, aten.linear, aten.linear_backward)
    convolutions = (aten.convolution, aten.convolution_backward)
    nodes = [node for node in report.graph.graph.nodes if node.op == "call_function"]
    found = [node for node in nodes if getattr(node.target, "overloadpacket", None) in (*products, *convolutions)]
    assert found
    return {given.meta["val"].dtype for node in found for given in node.all_input_nodes}


def trained(torch: Any, compiled: Any, name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The loss of a compiled step, whose gradients are there and finite."""
    given = half_model(torch, name, monkeypatch, getattr(torch, dtype))
    model, inputs, targets = (each.to("dipu") for each in given)
    loss = compiled(lambda x, y: loss_of(torch, model(x), y))(inputs, targets)
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    return loss


@pytest.mark.parametrize(
    ("name", "layers", "dtype"), [("LLaMA", 2, "bfloat16"), ("LLaMA", 2, "float16"), ("ViT", 1, "bfloat16")]
)
def test_attention_is_one_call_of_each_layer(
    torch: Any, compiled: Any, reports: Any, name: str, layers: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(torch, compiled, name, dtype, monkeypatch)
    forward, backward = reports()
    assert calls_of(forward).count("diopiFlashAttention") == layers
    assert calls_of(backward).count("diopiFlashAttentionBackward") == layers
    for report in (forward, backward):
        assert not report.islands
        assert dtypes_of_products(torch, report) == {getattr(torch, dtype)}


def test_attention_with_dropout_is_one_call(
    torch: Any, compiled: Any, reports: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(torch, compiled, "GPT-2", "bfloat16", monkeypatch)
    forward, backward = reports()
    assert calls_of(forward).count("diopiFlashAttention") == calls_of(backward).count("diopiFlashAttentionBackward") > 0
    for report in (forward, backward):
        assert not report.islands
        assert dtypes_of_products(torch, report) == {torch.bfloat16}


def test_attention_with_dropout_takes_halves_where_torch_may(
    torch: Any, compiled: Any, reports: Any, monkeypatch: pytest.MonkeyPatch, products_in_halves: None
) -> None:
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        trained(torch, compiled, "GPT-2", "bfloat16", monkeypatch)
    assert [report.phase for report in reports()] == ["forward", "backward"]
    for report in reports():
        assert not report.islands
        assert dtypes_of_products(torch, report) == {torch.bfloat16}

"""Models in halves train on dipu in eager mode, without an operator that falls back."""

from typing import Any

import pytest

from tests.torch.half_models import NAMES, half_model, loss_of

STEPS = 6


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", NAMES)
def test_losses_fall_and_nothing_falls_back(torch: Any, name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs, targets = half_model(torch, name, monkeypatch, getattr(torch, dtype))
    with torch.no_grad():
        wide = inputs.float() if inputs.is_floating_point() else inputs
        expected = loss_of(torch, model.float()(wide), targets).item()
    model, inputs, targets = (each.to("dipu") for each in half_model(torch, name, monkeypatch, getattr(torch, dtype)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
    torch.dipu.fallback.reset()
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(torch, model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert torch.dipu.fallback.report() == []
    assert {parameter.grad.dtype for parameter in model.parameters()} == {getattr(torch, dtype)}
    dropped = 0.1 if name == "GPT-2" else 0.02  # which elements dropout leaves depends on the device
    assert losses[0] == pytest.approx(expected, rel=dropped)
    assert losses[-1] < 0.95 * losses[0]

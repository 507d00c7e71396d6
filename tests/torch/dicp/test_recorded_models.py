"""mode="reduce-overhead" on models as they are trained and used: after the fourth step every run is one launch."""

from collections.abc import Callable
from typing import Any

import pytest

STEPS = 9


def mlp(torch: Any) -> tuple[Any, Callable[[Any], Any]]:
    nn = torch.nn
    layers = [nn.Linear(24, 48), nn.LayerNorm(48), nn.GELU(), nn.Dropout(0.2), nn.Linear(48, 24)]
    return nn.Sequential(*layers), lambda draw: torch.randn(8, 24, generator=draw)


def resnet(torch: Any) -> tuple[Any, Callable[[Any], Any]]:
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = (nn.Conv2d(8, 8, 3, padding=1, bias=False) for _ in range(2))
            self.norm, self.last = nn.BatchNorm2d(8), nn.BatchNorm2d(8)

        def forward(self, x: Any) -> Any:
            return torch.relu(x + self.last(self.two(torch.relu(self.norm(self.one(x))))))

    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), Block(), Block(), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(8 * 5 * 5, 4)), lambda draw: torch.randn(4, 3, 12, 12, generator=draw)


def llama(torch: Any) -> tuple[Any, Callable[[Any], Any]]:
    nn, functional = torch.nn, torch.nn.functional

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.RMSNorm(32), nn.RMSNorm(32)
            self.qkv, self.out = nn.Linear(32, 96, bias=False), nn.Linear(32, 32, bias=False)
            self.gate, self.up, self.down = nn.Linear(32, 64), nn.Linear(32, 64), nn.Linear(64, 32)

        def forward(self, x: Any) -> Any:
            q, k, v = (p.view(2, 8, 4, 8).transpose(1, 2) for p in self.qkv(self.first(x)).chunk(3, -1))
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(2, 8, 32))
            y = self.second(x)
            return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    layers = [nn.Embedding(50, 32), Layer(), Layer(), nn.RMSNorm(32), nn.Linear(32, 50, bias=False)]
    return nn.Sequential(*layers), lambda draw: torch.randint(0, 50, (2, 8), generator=draw)


MODELS = {"mlp": mlp, "resnet": resnet, "llama": llama}


def trained(torch: Any, compiler: Any, name: str, mode: str | None, after_four: Callable[[], None]) -> list[Any]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, batch = MODELS[name](torch)
    model = model.to("dipu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
    run = torch.compile(model, backend=compiler, fullgraph=True, mode=mode, dynamic=False)
    draw, found, kept = torch.Generator().manual_seed(1), [], []
    for step in range(STEPS):
        if step == 4:
            after_four()
        kept.append(torch.empty(1000 * (step + 1), device="dipu"))  # so that addresses do not come back
        loss = run(batch(draw).to("dipu")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.detach())
    return [*(loss.cpu() for loss in found), *(t.detach().cpu() for t in model.state_dict().values())]


def runs(reports: Any) -> list[tuple[int, int]]:
    found = [report.executable.replays() for report in reports()]
    assert found and not any(f["refusal"] for f in found), found
    return [(f["launched"], f["issued"]) for f in found]


@pytest.mark.parametrize("name", MODELS)
def test_training(torch: Any, compiler: Any, reports: Any, name: str) -> None:
    expected = trained(torch, compiler, name, None, lambda: None)
    from dicp import explain

    explain.forget()
    before: list[tuple[int, int]] = []
    found = trained(torch, compiler, name, "reduce-overhead", lambda: before.extend(runs(reports)))
    for mine, other in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=0)
    assert not any(report.islands for report in reports())
    after = runs(reports)
    assert [(now - then, issued - first) for (now, issued), (then, first) in zip(after, before, strict=True)] == [
        (STEPS - 4, 0)
    ] * len(before)


def test_decoding_with_a_static_cache(torch: Any, compiler: Any, reports: Any) -> None:
    torch.manual_seed(0)
    embedding, head = torch.nn.Embedding(20, 16).to("dipu"), torch.nn.Linear(16, 20).to("dipu")
    width = torch.arange(12, device="dipu")

    def step(token: Any, at: Any, keys: Any, values: Any) -> Any:
        x = embedding(token)
        keys.index_copy_(0, at, x)
        values.index_copy_(0, at, x * 2)
        mask = (width <= at).unsqueeze(0)
        scores = (x @ keys.T).masked_fill(~mask, -torch.inf)
        return head(torch.softmax(scores, -1) @ values)

    def decoded(run: Callable[..., Any], after_four: Callable[[], None]) -> list[Any]:
        caches = [torch.zeros(12, 16, device="dipu") for _ in range(2)]
        token, found = torch.tensor([3], device="dipu"), []
        for i in range(12):
            if i == 4:
                after_four()
            with torch.no_grad():
                logits = run(token, torch.tensor([i], device="dipu"), *caches)
            token = logits.argmax(-1)
            found.append(logits.cpu())
        return found

    expected = decoded(step, lambda: None)
    before: list[tuple[int, int]] = []
    run = torch.compile(step, backend=compiler, fullgraph=True, mode="reduce-overhead", dynamic=False)
    found = decoded(run, lambda: before.extend(runs(reports)))
    for mine, other in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)
    ((launched, issued),) = before
    assert runs(reports) == [(launched + 8, issued)]


def test_a_compiled_step_of_an_optimizer(torch: Any, compiler: Any, reports: Any) -> None:
    def stepped(wrap: Callable[[Any], Any]) -> list[Any]:
        parameters = [torch.nn.Parameter(torch.full((n,), 1.0, device="dipu")) for n in (3, 40, 500)]
        optimizer = torch.optim.Adam(parameters, lr=0.1, capturable=True)
        step = wrap(optimizer.step)
        for i in range(STEPS):
            for parameter in parameters:
                parameter.grad = torch.full_like(parameter, 0.1 * (i + 1))
            step()
        return [parameter.detach().cpu() for parameter in parameters]

    expected = stepped(lambda step: step)
    found = stepped(lambda step: torch.compile(step, backend=compiler, mode="reduce-overhead"))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert runs(reports)[-1][0] >= STEPS - 4

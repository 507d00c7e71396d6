"""Small models of the kinds that the benchmarks train, in halves."""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("MLP", "ResNet", "LLaMA", "ViT", "GPT-2")


def half_model(torch: Any, name: str, monkeypatch: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """A model of `dtype`, its inputs and its targets, on the CPU and the same in each call."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), str(ROOT / "demo"), *sys.path])
    import gpu_tasks

    import models

    nn = torch.nn
    torch.manual_seed(20)
    match name:
        case "MLP":
            layers = [nn.Linear(48, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 10)]
            model, batch = nn.Sequential(*layers), (torch.randn(16, 48), torch.randint(10, (16,)))
        case "ResNet":
            model, batch = models.ResNet(), (torch.randn(4, 3, 32, 32), torch.randint(10, (4,)))
        case "LLaMA":
            model, batch = models.Llama(64, 32, 4, 2, 16), (torch.randint(64, (2, 16)), torch.randint(64, (2, 16)))
        case "ViT":
            model, batch = gpu_tasks.Vit(blocks=1), (torch.randn(1, 3, 224, 224), torch.randint(1000, (1,)))
        case "GPT-2":
            model = gpu_tasks.Gpt2(vocabulary=64, width=128, blocks=2, length=16)
            batch = torch.randint(64, (2, 16)), torch.randint(64, (2, 16))
        case _:
            raise AssertionError(name)
    inputs, targets = batch
    return model.to(dtype), inputs.to(dtype) if inputs.is_floating_point() else inputs, targets


def loss_of(torch: Any, output: Any, targets: Any) -> Any:
    return torch.nn.functional.cross_entropy(output.reshape(-1, output.shape[-1]), targets.reshape(-1))

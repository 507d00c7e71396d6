"""Trains a model with many operators on dipu, one of which may be faulty: `train.py [OVERLOAD KIND [PROGRAM]]`.

With PROGRAM that one runs on the faulty device instead, and the exit code is its own.
"""

import runpy
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

import torch_dipu

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tools.op_faults.planting import plant

STEPS = 10


class Block(nn.Module):
    """Attention and a gated layer, with activations of many kinds."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.group = nn.LayerNorm(width), nn.GroupNorm(2, width)
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.gate, self.up, self.down = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        weights = torch.softmax(torch.bmm(self.query(y), self.key(y).transpose(1, 2)) * x.shape[-1] ** -0.5, -1)
        x = x + torch.bmm(weights, self.value(y))
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        x = x + self.down(F.silu(self.gate(y)) * F.gelu(self.up(y)))
        x = self.group(x.transpose(1, 2)).transpose(1, 2)
        return torch.tanh(x) + torch.sigmoid(x) - F.leaky_relu(x, 0.1) / (1 + x.abs())


class Model(nn.Module):
    """Of tokens and a small picture."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, width)
        self.picture = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, width, 3),
            nn.ELU(),
        )
        self.blocks = nn.ModuleList(Block(width) for _ in range(3))
        self.head = nn.Linear(2 * width, 4)

    def forward(self, tokens: torch.Tensor, pictures: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        x = torch.where(x > 0, x, torch.exp(torch.clamp(x, max=0.0)) - 1)
        seen = F.adaptive_avg_pool2d(self.picture(pictures), 1).flatten(1)
        return self.head(torch.cat([x.cumsum(1).amax(1), F.softplus(seen)], 1))


def main() -> None:
    """Prints the loss of each step."""
    torch_dipu.start()
    if sys.argv[3:]:
        plant(sys.argv[1], sys.argv[2])
        program, sys.argv = sys.argv[3], [sys.argv[3]]
        runpy.run_path(program, run_name="__main__")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Model()
    data = [(torch.randint(11, (4, 6)), torch.randn(4, 1, 8, 8), torch.randint(4, (4,))) for _ in range(STEPS)]
    model.to("dipu")
    if sys.argv[1:]:
        plant(sys.argv[1], sys.argv[2])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
    for step, batch in enumerate(data):
        tokens, pictures, classes = (tensor.to("dipu") for tensor in batch)
        optimizer.zero_grad()
        scores = model(tokens, pictures)
        loss = F.cross_entropy(scores, classes) + 0.01 * scores.square().sum().sqrt()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0, foreach=False)
        optimizer.step()
        print("step", step, "loss", loss.item(), flush=True)


if __name__ == "__main__":
    main()

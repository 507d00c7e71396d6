"""Three small models of three kinds, each with a batch and a loss; made from one seed on the CPU."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Mlp(nn.Module):
    """A classifier of vectors. Input (N, 64), output (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, 128), nn.ReLU(), nn.LayerNorm(128), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 10)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Block(nn.Module):
    """Two convolutions beside a shortcut. Input (N, C, H, W), output (N, C', H / stride, W / stride)."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(out)
        self.shortcut = nn.Identity() if stride == 1 and channels == out else nn.Conv2d(channels, out, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """A classifier of images. Input (N, 3, 32, 32), output (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.blocks = nn.Sequential(Block(16, 16, 1), Block(16, 32, 2))
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.pool(self.stem(x))).mean((2, 3)))


class RmsNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight over the last dimension."""

    def __init__(self, size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotates pairs of features by a position's angles. x is (N, heads, T, D); cos and sin are (T, D / 2)."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class LlamaLayer(nn.Module):
    """Causal attention and a SwiGLU feed-forward, each after an RMS norm. Input and output (N, T, width)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.query, self.key, self.value, self.output = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        n, t, width = x.shape
        y = self.norm1(x)
        q, k, v = (
            f(y).view(n, t, self.heads, width // self.heads).transpose(1, 2) for f in (self.query, self.key, self.value)
        )
        attended = F.scaled_dot_product_attention(rotary(q, cos, sin), rotary(k, cos, sin), v, is_causal=True)
        x = x + self.output(attended.transpose(1, 2).reshape(n, t, width))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """A language model. Input (N, T) of token ids, T up to `length`; output (N, T, vocabulary)."""

    def __init__(
        self, vocabulary: int = 256, width: int = 64, heads: int = 4, layers: int = 2, length: int = 32
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaLayer(width, heads) for _ in range(layers))
        self.norm = RmsNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        half = width // heads // 2
        angles = torch.outer(torch.arange(length).float(), 10000.0 ** (-torch.arange(half).float() / half))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        length = tokens.shape[1]
        for layer in self.layers:
            x = layer(x, self.cos[:length], self.sin[:length])
        return self.head(self.norm(x))


@dataclass(frozen=True)
class Task:
    """A model with its batch and its optimizer."""

    name: str
    model: Callable[[], nn.Module]
    batch: Callable[[], tuple[Tensor, Tensor]]
    optimizer: Callable[[nn.Module], torch.optim.Optimizer]


def loss_of(output: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy over the last dimension."""
    return F.cross_entropy(output.reshape(-1, output.shape[-1]), target.reshape(-1))


def _adamw(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


def _sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, weight_decay=1e-4, fused=True)


TASKS = (
    Task("MLP", Mlp, lambda: (torch.randn(64, 64), torch.randint(10, (64,))), _adamw),
    Task("ResNet", ResNet, lambda: (torch.randn(16, 3, 32, 32), torch.randint(10, (16,))), _sgd),
    Task("LLaMA", Llama, lambda: (torch.randint(256, (4, 32)), torch.randint(256, (4, 32))), _adamw),
)

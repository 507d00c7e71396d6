"""The models of the benchmarks on GPUs, at sizes that fill one."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models import Block, Llama, Task, rotary


class Attention(nn.Module):
    """Self-attention with one product for queries, keys and values. Input and output (N, T, width)."""

    def __init__(self, width: int, heads: int, *, causal: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        n, t, width = x.shape
        q, k, v = self.inputs(x).view(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, dropout_p=dropout)
        return self.output(attended.transpose(1, 2).reshape(n, t, width))


class TransformerBlock(nn.Module):
    """Attention and a feed-forward of four times the width, each after a layer norm. Input and output (N, T, width)."""

    def __init__(self, width: int, heads: int, *, causal: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        self.attention = nn.Sequential(
            nn.LayerNorm(width), Attention(width, heads, causal=causal, dropout=dropout), nn.Dropout(dropout)
        )
        self.feed = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
            nn.Dropout(dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(x)
        return x + self.feed(x)


class Vit(nn.Module):
    """A classifier of images by a transformer over patches. Input (N, 3, 224, 224), output (N, 1000)."""

    def __init__(self, width: int = 384, heads: int = 6, blocks: int = 8) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, 197, width))
        self.blocks = nn.Sequential(*(TransformerBlock(width, heads) for _ in range(blocks)), nn.LayerNorm(width))
        self.head = nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(len(x), -1, -1), patches), 1) + self.places
        return self.head(self.blocks(x)[:, 0])


class Gpt2(nn.Module):
    """A language model with learned places and dropout. Input (N, T) of token ids, output (N, T, vocabulary)."""

    def __init__(self, vocabulary: int = 16384, width: int = 768, blocks: int = 6, length: int = 512) -> None:
        super().__init__()
        self.embedding, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        layers = (TransformerBlock(width, width // 64, causal=True, dropout=0.1) for _ in range(blocks))
        self.blocks = nn.Sequential(nn.Dropout(0.1), *layers, nn.LayerNorm(width))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.blocks(self.embedding(tokens) + self.places(places)))


class Decoder(nn.Module):
    """A LLaMA that decodes one token at a time; its caches of keys and values have room for the longest text."""

    def __init__(self, vocabulary: int = 8192, width: int = 512, heads: int = 8, layers: int = 8, length: int = 512):
        super().__init__()
        self.model = Llama(vocabulary, width, heads, layers, length)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(layers, 1, heads, length, width // heads))

    def forward(self, token: Tensor, place: Tensor) -> Tensor:
        """The next token, (1, 1) int64, after `token` at `place`, (1,) int64."""
        model, length = self.model, self.keys.shape[3]
        x = model.embedding(token)
        cos, sin = model.cos[place], model.sin[place]
        seen = (torch.arange(length, device=place.device) <= place).view(1, 1, 1, length)
        for layer, keys, values in zip(model.layers, self.keys, self.values, strict=True):
            y = layer.norm1(x)
            q, k, v = (f(y).view(1, 1, layer.heads, -1).transpose(1, 2) for f in (layer.query, layer.key, layer.value))
            keys.index_copy_(2, place, rotary(k, cos, sin))
            values.index_copy_(2, place, v)
            attended = F.scaled_dot_product_attention(rotary(q, cos, sin), keys, values, attn_mask=seen)
            x = x + layer.output(attended.transpose(1, 2).reshape(1, 1, -1))
            y = layer.norm2(x)
            x = x + layer.down(F.silu(layer.gate(y)) * layer.up(y))
        return model.head(model.norm(x)).argmax(-1)


def _mlp() -> nn.Module:
    width = 4096
    hidden = [layer for _ in range(3) for layer in (nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))]
    return nn.Sequential(*hidden, nn.Linear(width, 1000))


def _resnet() -> nn.Module:
    stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    blocks = nn.Sequential(Block(64, 64, 1), Block(64, 128, 2), Block(128, 256, 2), Block(256, 512, 2))
    return nn.Sequential(stem, blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def _llama() -> nn.Module:
    return Llama(vocabulary=8192, width=1024, heads=16, layers=4, length=512)


def _adamw(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


def _sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)


def _tokens(vocabulary: int) -> tuple[Tensor, Tensor]:
    return torch.randint(vocabulary, (8, 512)), torch.randint(vocabulary, (8, 512))


def _images(count: int, size: int) -> tuple[Tensor, Tensor]:
    return torch.randn(count, 3, size, size), torch.randint(1000, (count,))


def _of_torchvision(name: str) -> nn.Module:
    from torchvision import models

    return models.get_model(name)


TASKS = (
    Task("MLP", _mlp, lambda: (torch.randn(4096, 4096), torch.randint(1000, (4096,))), _adamw),
    Task("ResNet", _resnet, lambda: _images(128, 128), _sgd),
    Task("LLaMA", _llama, lambda: _tokens(8192), _adamw),
)
MORE = (
    Task("ViT", Vit, lambda: _images(64, 224), _adamw),
    Task("GPT-2", Gpt2, lambda: _tokens(16384), _adamw),
)
UNTUNED = tuple(  # nothing of dicp was written with these in view
    Task(name, lambda name=name: _of_torchvision(name), lambda: _images(32, 224), _adamw)
    for name in ("convnext_tiny", "regnet_y_400mf")
)

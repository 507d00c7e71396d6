"""How large a model of the zoo is: small enough that every call is cheap, and no two alike."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The lengths that a recipe builds from."""

    width: int  # of the hidden layers, a multiple of 16
    heads: int  # divides width
    layers: int
    batch: int
    length: int  # of a sequence
    image: int  # pixels of a side, a multiple of 32
    classes: int
    words: int  # of the vocabulary

    @property
    def head(self) -> int:
        """The width of one head, even."""
        return self.width // self.heads

    def tokens(self, length: int | None = None) -> torch.Tensor:
        """(batch, length) of int64 below `words`; the first few words mean something to most models and stay out."""
        return torch.randint(4, self.words, (self.batch, length or self.length))

    def labels(self) -> torch.Tensor:
        """(batch,) of int64 below `classes`."""
        return torch.randint(0, self.classes, (self.batch,))

    def images(self) -> torch.Tensor:
        """(batch, 3, image, image)."""
        return torch.randn(self.batch, 3, self.image, self.image)

    def waves(self, samples: int) -> torch.Tensor:
        """(batch, samples)."""
        return torch.randn(self.batch, samples)


def size_of(place: int, variant: int) -> Size:
    """The size of the `place`-th model in its `variant`-th configuration."""
    turn = 7 * place + 5 * variant
    heads = (2, 4, 8)[turn % 3]
    return Size(
        width=32 + 16 * (turn % 5),
        heads=heads,
        layers=2,
        batch=2 + (place + variant) % 3,
        length=16 + (3 * place + 11 * variant) % 37,
        image=(32, 64, 96)[variant % 2 if place % 3 else 1],
        classes=5 + place % 23,
        words=96 + 8 * (place % 19) + variant,
    )

"""The models: those of the conformance suite's zoo that transformers has, and the usual ones among them."""

import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch

_ZOO = Path(__file__).resolve().parents[2] / "conformance" / "zoo"

# Of each kind the best known; the others are run by name, e.g. --only 'gemma*', or with --all.
USUAL = (
    "bert",
    "roberta",
    "distilbert",
    "electra",
    "gpt2",
    "gpt-neox",
    "opt",
    "llama",
    "mistral",
    "qwen2",
    "mixtral",
    "t5",
    "bart",
    "mamba",
    "vit",
    "swin",
    "convnext",
    "resnet-basic",
    "segformer",
    "detr",
    "clip",
    "wav2vec2",
    "whisper",
    "speech-to-text",
)


def built(name: str) -> tuple[Any, Any]:
    """The model with its weights, the same each time, and its forward pass. Raises KeyError for an unknown name."""
    place, recipe = _recipes()[name]
    from sizes import size_of

    torch.manual_seed(place)
    return recipe.build(size_of(place, 0))  # type: ignore[no-any-return]


def names() -> tuple[str, ...]:
    """All models, in the zoo's order. Raises ImportError without transformers."""
    return tuple(_recipes())


@cache
def _recipes() -> dict[str, tuple[int, Any]]:
    """Each model's place in the zoo, which decides its size, and its recipe."""
    sys.path.insert(0, str(_ZOO))
    from language import LANGUAGE
    from speech import SPEECH
    from vision import VISION

    return {recipe.name: (place, recipe) for place, recipe in enumerate((*LANGUAGE, *VISION, *SPEECH))}

"""Which dtypes are computed in which: `torch.float16->torch.float32,...`, as the environment says it."""

from functools import lru_cache

import torch

from op_tools import environment


@lru_cache(maxsize=64)
def parsed(text: str) -> dict[torch.dtype, torch.dtype]:
    """The pairs of `text`. Raises ValueError for a word that is no dtype, and for what is no pair."""
    found = {}
    for entry in (part.strip() for part in text.split(",")):
        if entry:
            source, arrow, target = entry.partition("->")
            if not arrow:
                raise ValueError(f"'{entry}' is no cast; write 'torch.float16->torch.float32'")
            found[_dtype(source)] = _dtype(target)
    return found


def _dtype(word: str) -> torch.dtype:
    dtype = getattr(torch, word.strip().removeprefix("torch."), None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"'{word.strip()}' is no dtype of torch; write 'torch.float16->torch.float32'")
    return dtype


def of_device() -> dict[torch.dtype, torch.dtype]:
    """OP_DTYPE_CAST_DICT, as it is now. Raises BadVariable."""
    return environment.read(environment.DTYPE_CAST, parsed)


def of_reference(name: str) -> dict[torch.dtype, torch.dtype] | None:
    """<OP>_OP_DTYPE_CAST_DICT of the operator with the last part of `name`, e.g. LINEAR_...; None where it is not set.

    Raises BadVariable.
    """
    return environment.read(f"{name.rpartition('.')[2].upper()}_{environment.DTYPE_CAST}", parsed) or None

"""The element types of the contract as PyTorch has them."""

from collections.abc import Mapping
from types import MappingProxyType

import torch

from diopigen.vocabulary.dtype import DType, Kind
from diopigen.vocabulary.loaded import DTYPES

# e.g. TORCH_DTYPES["f32"] is torch.float32; DTYPE_OF[torch.float32].name is "f32"
TORCH_DTYPES: Mapping[str, torch.dtype] = MappingProxyType(
    {dtype.name: getattr(torch, dtype.torch) for dtype in DTYPES.types if dtype.torch is not None}
)
DTYPE_OF: Mapping[torch.dtype, DType] = MappingProxyType(
    {TORCH_DTYPES[dtype.name]: dtype for dtype in DTYPES.types if dtype.torch is not None}
)
HALVES = tuple(torch_dtype for torch_dtype, dtype in DTYPE_OF.items() if dtype.half)
_WIDEST = {Kind.FLOAT: torch.float64, Kind.COMPLEX: torch.complex128}


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype that holds every number of `dtype` and in which references compute: float64 for floats."""
    known = DTYPE_OF.get(dtype)
    return dtype if known is None else _WIDEST.get(known.kind, dtype)

"""Element types of kernels: the schemas' names, their C++, and what an expression computes in."""

import torch

from diopigen.vocabulary.loaded import DTYPES
from diopigen.vocabulary.torch_dtypes import HALVES, TORCH_DTYPES

_TYPES = tuple(dtype for each in DTYPES.sets if each.name == "any" for dtype in each.members)
SCHEMA_NAMES = {TORCH_DTYPES[dtype.name]: dtype.name for dtype in _TYPES}
STORAGE = {TORCH_DTYPES[dtype.name]: str(dtype.cpp) for dtype in _TYPES}  # e.g. "BFloat16" for torch.bfloat16


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """What expressions over `dtype` compute in: half types in float32."""
    return torch.float32 if dtype in HALVES else dtype

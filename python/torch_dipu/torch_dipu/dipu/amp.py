"""Mixed precision."""

import torch


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes that ``torch.autocast("dipu", dtype=...)`` accepts."""
    return [torch.float16, torch.bfloat16]

"""The accelerator that is there answers to the names of CUDA, for programs that were written for those:

    import torch
    import ditorch

On dipu this is `torch.dipu.mock_cuda()`; on CUDA there is nothing to do; without an accelerator it warns and leaves
torch as it is. DITORCH_DISABLE_MOCK=1 leaves torch as it is in any case. `undo()` puts torch back exactly.
"""

import os
import warnings
from typing import Any

import torch

__all__ = ["is_on", "start", "undo"]

_alias: Any = None  # what ends the alias that start() began


def start() -> None:
    """Let `cuda` mean the accelerator, for the whole process; does nothing the second time.

    Raises ValueError where DITORCH_DISABLE_MOCK is not a number.
    """
    global _alias
    if _alias is not None or _is_disabled():
        return
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if accelerator is None:
        _warn("there is no accelerator, and the names of CUDA stay those of CUDA")
    elif accelerator.type == "dipu":
        _alias = torch.get_device_module("dipu").mock_cuda()
    elif accelerator.type != "cuda":
        _warn(f"'{accelerator.type}' does not answer to the names of CUDA; only dipu does")


def is_on() -> bool:
    """Whether `cuda` means another accelerator because of start()."""
    return _alias is not None


def undo() -> None:
    """End what start() began; torch is again as it was before."""
    global _alias
    if _alias is not None:
        _alias.__exit__(None, None, None)
        _alias = None


def _is_disabled() -> bool:
    text = os.environ.get("DITORCH_DISABLE_MOCK") or "0"
    if not text.isdecimal():
        raise ValueError(f"DITORCH_DISABLE_MOCK is '{text}': set it to 1, or to 0")
    return int(text) > 0


def _warn(text: str) -> None:
    warnings.warn(f"ditorch: {text}", RuntimeWarning, stacklevel=3)


start()

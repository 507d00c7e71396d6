"""The device under test: its backend, and torch's class for tests of it."""

import importlib
import logging
import os
from typing import Any

import torch

from diopigen.vocabulary import torch_releases
from diopigen.vocabulary.dtype import Kind
from diopigen.vocabulary.loaded import DTYPES

_ONLY_FOR = "PYTORCH_TESTING_DEVICE_ONLY_FOR"
# What else torch asks when it makes classes of tests for devices.
_OTHERS = ("PYTORCH_TESTING_DEVICE_EXCEPT_FOR", "PYTORCH_TESTING_DEVICE_FOR_CUSTOM")
_PRIVATE = "privateuse1"  # torch's name for the place that a backend outside of torch takes


class NoDevice(Exception):
    """torch's tests cannot run on the device; the text says why."""


def start(device: str) -> None:
    """Loads what makes the device known to torch, e.g. "dipu". Raises NoDevice."""
    if device != "dipu":
        return
    try:
        importlib.import_module("torch_dipu").start()
    except ModuleNotFoundError as error:
        raise NoDevice(f"the device 'dipu' needs the package '{error.name}', which is not installed") from None
    except (ImportError, RuntimeError, OSError) as error:
        raise NoDevice(f"the device 'dipu' cannot be started: {str(error).partition(chr(10))[0]}") from None


def test_base(device: str) -> type:
    """torch's class for tests of a device that was started, e.g. PrivateUse1TestBase. Raises NoDevice."""
    if device != "cuda":  # a torch for CUDA warns that it finds no GPU
        logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)
    try:
        from torch.testing._internal import common_device_type as forms
    except ModuleNotFoundError as error:
        raise NoDevice(f"torch's tests need the package '{error.name}': pip install {error.name}") from None
    found = {
        _own_name() if base is forms.PrivateUse1TestBase else base.device_type: base
        for base in forms.get_desired_device_type_test_bases(allow_mps=True, allow_xpu=True)  # type: ignore[no-untyped-call]
    }
    if device not in found:
        raise NoDevice(f"torch finds no device '{device}' to test here; it finds {', '.join(sorted(found))}")
    base: type = found[device]
    words = torch_releases.capabilities()
    if base is forms.PrivateUse1TestBase and words is not None:
        declare(base, words)
    return base


def declare(base: type, words: Any) -> None:
    """Tells torch's tests what the device can do; those that ask for what is not declared fail."""
    attention = "aten::_scaled_dot_product_fused_attention_overrideable"
    known = {
        words.dtype.fp8: lambda: any(dtype.kind is Kind.FLOAT and dtype.size == 1 for dtype in DTYPES.types),
        words.dtype.bf16: torch.get_device_module(_own_name()).is_bf16_supported,
        words.attention.flash_attention: lambda: torch._C._dispatch_has_kernel_for_dispatch_key(
            attention, "PrivateUse1"
        ),
        words.attention.mem_efficient_attention: lambda: False,
    }
    base._capabilities = classmethod(lambda cls: known)  # type: ignore[attr-defined]


def choose(device: str) -> None:
    """Starts the device, and lets processes that are started from now on make tests for it alone. Raises NoDevice."""
    for name in (_ONLY_FOR, *_OTHERS):
        os.environ.pop(name, None)
    start(device)
    test_base(device)
    os.environ[_ONLY_FOR] = _PRIVATE if device == _own_name() else device


def name_of(device: str) -> str:
    """What a started device is called, e.g. "NVIDIA H100 80GB HBM3"; its kind, e.g. "cpu", where it has no name."""
    module = torch.get_device_module(device)
    name: str = module.get_device_name(0) if hasattr(module, "get_device_name") else device
    return name


def _own_name() -> str:
    """What the backend outside of torch calls its device."""
    name: str = torch._C._get_privateuse1_backend_name()
    return name

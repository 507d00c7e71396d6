"""Every attribute of torch that is another one while the alias is on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._device

from torch_dipu import dipu
from torch_dipu.cuda_alias import distributed
from torch_dipu.cuda_alias.tensor_types import default_type, tensor_types, typed
from torch_dipu.cuda_alias.wrapping import aliased_class, keyword_translated, translated, with_first


@dataclass(frozen=True, slots=True)
class Replacement:
    """One attribute."""

    owner: Any  # a module or a class
    name: str
    value: Any


# Functions that make tensors, which take the device by keyword.
_FACTORIES = (
    *("arange", "asarray", "bartlett_window", "blackman_window", "empty", "empty_like", "empty_permuted"),
    *("empty_strided", "eye", "full", "full_like", "hamming_window", "hann_window", "kaiser_window", "linspace"),
    *("logspace", "normal", "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like"),
    *("randperm", "range", "scalar_tensor", "sparse_coo_tensor", "sparse_compressed_tensor", "sparse_csr_tensor"),
    *("tensor", "tril_indices", "triu_indices", "zeros", "zeros_like"),
)
_NEW = ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")
_TENSOR_METHODS = ("is_pinned", "new", "pin_memory", "to")
_CLASSES = ("Event", "Generator", "Stream", "device")
# Functions of torch that take a device, or its type, anywhere.
_BY_DEVICE = (
    *("as_tensor", "get_autocast_dtype", "get_device_module", "is_autocast_enabled", "set_autocast_dtype"),
    *("set_autocast_enabled", "set_default_device"),
)
_MARKS = ("mark", "range_end", "range_pop", "range_push", "range_start")


def replacements() -> tuple[Replacement, ...]:
    """The table, made from the attributes as they are now."""
    groups = (_factories(), _tensors(), _storages(), _devices(), _cuda(), _mixed_precision(), _distributed())
    return tuple(row for group in groups for row in group)


def _factories() -> Iterator[Replacement]:
    # torch compares the functions of this list with those that are called, which stay its own.
    torch.utils._device._device_constructors()
    for name in _FACTORIES:
        yield Replacement(torch, name, keyword_translated(getattr(torch, name)))
    for name in ("fftfreq", "rfftfreq"):
        yield Replacement(torch.fft, name, keyword_translated(getattr(torch.fft, name)))
    yield Replacement(torch.nested, "nested_tensor", keyword_translated(torch.nested.nested_tensor))


def _tensors() -> Iterator[Replacement]:
    tensor: Any = torch.Tensor
    for name in _NEW:
        yield Replacement(tensor, name, keyword_translated(getattr(tensor, name)))
    for name in _TENSOR_METHODS:
        yield Replacement(tensor, name, translated(getattr(tensor, name)))
    yield Replacement(tensor, "cuda", translated(tensor.dipu))
    yield Replacement(tensor, "is_cuda", property(lambda self: self.is_dipu))
    yield Replacement(tensor, "type", typed(tensor.type))
    yield Replacement(torch, "set_default_tensor_type", default_type(torch.set_default_tensor_type))
    # What the method `to` of modules and of packed sequences understands.
    yield Replacement(torch._C._nn, "_parse_to", translated(torch._C._nn._parse_to))


def _storages() -> Iterator[Replacement]:
    storages: tuple[Any, ...] = (torch.UntypedStorage, torch.TypedStorage)
    for storage in storages:
        yield Replacement(storage, "cuda", translated(storage.dipu))
        yield Replacement(storage, "is_cuda", property(lambda self: self.is_dipu))
    # All ways of torch.load to say where a storage goes end here.
    restore = torch.serialization.default_restore_location
    yield Replacement(torch.serialization, "default_restore_location", translated(restore))


def _devices() -> Iterator[Replacement]:
    for name in _CLASSES:
        yield Replacement(torch, name, aliased_class(getattr(torch, name)))
    for name in _BY_DEVICE:
        yield Replacement(torch, name, translated(getattr(torch, name)))
    yield Replacement(torch.random, "fork_rng", translated(torch.random.fork_rng))


def _cuda() -> Iterator[Replacement]:
    pairs = (
        (torch.cuda, dipu),
        (torch.cuda.memory, dipu.memory),
        (torch.cuda.random, dipu.random),
        (torch.cuda.streams, dipu.streams),
    )
    for theirs, ours in pairs:
        for name in vars(theirs):
            value: Any = getattr(ours, name, None)
            if name in ("_lazy_init", "_is_in_bad_fork", "default_generators"):
                yield Replacement(theirs, name, value)
            elif not name.startswith("_") and getattr(value, "__module__", "").startswith("torch_dipu"):
                wrapped = aliased_class if isinstance(value, type) else translated
                yield Replacement(theirs, name, wrapped(value))
    for name, tensor_type in tensor_types().items():
        yield Replacement(torch.cuda, name, tensor_type)
    for name in _MARKS:  # for a profiler of CUDA's, which is not there
        yield Replacement(torch.cuda.nvtx, name, _nothing)
    yield Replacement(torch.cuda, "ipc_collect", _nothing)
    # ProfilerActivity.CUDA ends here, as the name of a device.
    profile = torch.autograd.profiler.profile
    yield Replacement(profile, "__init__", translated(profile.__init__))


def _mixed_precision() -> Iterator[Replacement]:
    amp = torch.amp.autocast_mode
    yield Replacement(amp.autocast, "__init__", translated(amp.autocast.__init__))
    scaler = torch.amp.grad_scaler.GradScaler
    yield Replacement(scaler, "__init__", with_first(scaler.__init__, "device", "cuda"))
    for name in ("custom_bwd", "custom_fwd", "is_autocast_available"):
        for owner in (amp, torch.amp):
            yield Replacement(owner, name, translated(getattr(amp, name)))
    for name in ("custom_bwd", "custom_fwd"):
        for owner in (torch.cuda.amp, torch.cuda.amp.autocast_mode):
            yield Replacement(owner, name, with_first(getattr(amp, name), "device_type", "cuda"))


def _distributed() -> Iterator[Replacement]:
    if torch.distributed.is_available():
        for owner, name, value in distributed.rows():
            yield Replacement(owner, name, value)


def _nothing(*args: Any, **kwargs: Any) -> int:
    return 0

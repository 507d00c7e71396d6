"""``torch.dipu``: devices, streams, memory, random numbers and the reports of the device ``dipu``."""

from typing import Any

from torch import AcceleratorError, OutOfMemoryError

from torch_dipu.cuda_alias.switch import is_mocking_cuda, mock_cuda
from torch_dipu.dipu import amp, debug, distributed, established, fallback, memory, random, streams
from torch_dipu.dipu.amp import get_amp_supported_dtype
from torch_dipu.dipu.debug import autocompare
from torch_dipu.dipu.devices import (
    DeviceProperties,
    _exchange_device,
    _is_in_bad_fork,
    _lazy_init,
    _maybe_exchange_device,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    set_device,
    synchronize,
)
from torch_dipu.dipu.established import check_dipu_torch_compatiable, diputype
from torch_dipu.dipu.memory import (
    MemoryReport,
    caching_allocator_alloc,
    caching_allocator_delete,
    device_memory_used,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_check,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    record_memory_history,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from torch_dipu.dipu.random import (
    _get_generator,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch_dipu.dipu.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    is_current_stream_capturing,
    set_stream,
    stream,
)

devicectx = device


def __getattr__(name: str) -> Any:
    """What changes with the first use of the device, under the names by which torch looks for it."""
    match name:
        case "_initialized":  # activation checkpoints keep the random state only of a device that is
            return is_initialized()
        case "default_generators":
            return random.all_generators()
        case "vendor_type":
            return established.vendor_type()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AcceleratorError",
    "DeviceProperties",
    "Event",
    "ExternalStream",
    "MemoryReport",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "_exchange_device",
    "_get_generator",
    "_initialized",
    "_is_in_bad_fork",
    "_lazy_init",
    "_maybe_exchange_device",
    "amp",
    "autocompare",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "check_dipu_torch_compatiable",
    "current_device",
    "current_stream",
    "debug",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "devicectx",
    "diputype",
    "distributed",
    "empty_cache",
    "fallback",
    "get_allocator_backend",
    "get_amp_supported_dtype",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "host_memory_stats",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_mocking_cuda",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_check",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "mock_cuda",
    "random",
    "record_memory_history",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]

"""What torch.compile asks of a device; imported only after torch.compile's own modules."""

from typing import Any

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device

from diopigen.vocabulary import torch_releases
from torch_dipu import dipu

# Functions whose results compiled code may take for ever.
_CONSTANT: tuple[Any, ...] = (
    dipu.device_count,
    dipu.get_device_capability,
    dipu.get_device_name,
    dipu.is_available,
    dipu.is_bf16_supported,
    dipu.is_current_stream_capturing,
    dipu.is_tf32_supported,
)


class DipuInterface(DeviceInterface):
    """The functions of torch.dipu under the names that torch.compile has for them."""

    device = dipu.device
    Event = dipu.Event
    Stream = dipu.Stream

    class Worker:
        """For processes that compile; they are forked, and must not touch the device."""

        @staticmethod
        def set_device(device: int) -> None:
            raise RuntimeError("dipu cannot be used in a forked process")

        @staticmethod
        def current_device() -> int:
            return 0

        get_device_properties = staticmethod(dipu.get_device_properties)

    current_device = staticmethod(dipu.current_device)
    set_device = staticmethod(dipu.set_device)
    device_count = staticmethod(dipu.device_count)
    exchange_device = staticmethod(dipu._exchange_device)
    maybe_exchange_device = staticmethod(dipu._maybe_exchange_device)
    is_available = staticmethod(dipu.is_available)
    stream = staticmethod(dipu.stream)
    current_stream = staticmethod(dipu.current_stream)
    set_stream = staticmethod(dipu.set_stream)
    synchronize = staticmethod(dipu.synchronize)
    get_device_properties = staticmethod(dipu.get_device_properties)
    get_compute_capability = staticmethod(dipu.get_device_capability)
    memory_allocated = staticmethod(dipu.memory_allocated)

    @staticmethod
    def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
        dipu.set_stream(torch.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type))

    @classmethod
    def get_cache_system_info(cls) -> dict[str, object]:
        """What code in torch's caches is compiled for."""
        return {"vendor": dipu.vendor_type, "device": dipu.get_device_name(0)}

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        return dipu.is_bf16_supported(including_emulation)


_shapes = torch.library.Library("aten", "IMPL", "Meta")  # which holds what it registers


def _attention_backward_shapes(grad_out: Any, query: Any, key: Any, value: Any, bias: Any, *_: Any, **__: Any) -> Any:
    return tuple(None if each is None else torch.empty_like(each) for each in (query, key, value, bias))


def _complete_shapes() -> None:
    backward = torch.ops.aten._scaled_dot_product_fused_attention_overrideable_backward.default
    if not torch_releases.has_meta_kernel(backward):
        _shapes.impl(backward, _attention_backward_shapes)


def register() -> None:
    """Make the interface known for the device and each of its indices, and its random states to AOTAutograd."""
    register_interface_for_device("dipu", DipuInterface)
    for index in range(dipu.device_count()):
        register_interface_for_device(f"dipu:{index}", DipuInterface)
    for function in _CONSTANT:
        # As torch.compiler.assume_constant_result does it, which is not there yet.
        function._dynamo_marked_constant = True
    if (register_random := torch_releases.random_of_compiled_code()) is not None:
        register_random("dipu")
    _complete_shapes()

"""Streams and events of the device."""

from types import TracebackType
from typing import Any

import torch

from torch_dipu import _native
from torch_dipu.dipu.devices import Device, device_index

_C = _native.load()


class Stream(torch.Stream):
    """A queue of work on a device; a priority below 0 is high."""

    def __new__(cls, device: Device = None, priority: int = 0, **identity: Any) -> "Stream":
        if identity:  # stream_id, device_index, device_type: another name of an existing stream
            return super().__new__(cls, **identity)
        return super().__new__(cls, device=f"dipu:{device_index(device)}", priority=priority)

    @property
    def priority(self) -> int:
        """-1 when it is high, else 0."""
        return int(_C.stream_priority(self.stream_id))

    @property
    def dipu_stream(self) -> int:
        """The vendor's handle, as an address."""
        return int(self.native_handle)

    cuda_stream = _as_parameter_ = dipu_stream  # as programs for CUDA, and ctypes, ask for it

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The least and the greatest priority."""
        return 0, -1


class ExternalStream(Stream):
    """A stream that something else made, by the vendor's handle; its maker keeps it alive while it is used.

    Raises RuntimeError for a null handle, or when a device has more than 64 of them.
    """

    def __new__(cls, stream_ptr: int, device: Device = None) -> "ExternalStream":
        index = device_index(device)
        identity = _C.external_stream(index, stream_ptr)
        return super().__new__(cls, stream_id=identity, device_index=index, device_type=_device_type())  # type: ignore[return-value]


class _EventType(type):
    """Any event of the device is an instance of ``Event``."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.Event) and instance.device.type == "dipu"


class Event(metaclass=_EventType):
    """A mark in a stream, to wait for and to measure time between.

    What it makes is a plain ``torch.Event``: torch measures no time between events of a subclass.
    """

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Any:
        return torch.Event("dipu", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)


def current_stream(device: Device = None) -> Stream:
    stream = torch.accelerator.current_stream(torch.device("dipu", device_index(device)))
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)


def default_stream(device: Device = None) -> Stream:
    return Stream(stream_id=0, device_index=device_index(device), device_type=_device_type())


def is_current_stream_capturing() -> bool:
    """Whether work on the current stream is recorded for a graph rather than run."""
    index = device_index(None)
    return bool(_C.is_captured(index, torch.accelerator.current_stream(torch.device("dipu", index)).stream_id))


def set_stream(stream: torch.Stream) -> None:
    """Make a stream current; its device becomes current too."""
    torch.accelerator.set_stream(stream)


class StreamContext:
    """A context in which a stream is current on its device; None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self._stream = stream
        self._before: list[torch.Stream] = []

    def __enter__(self) -> None:
        if self._stream is None:
            return
        # The order of restoring: first the stream of the entered device, then the device that was current.
        self._before = [current_stream(self._stream.device), current_stream()]
        set_stream(self._stream)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for stream in self._before:
            set_stream(stream)


def stream(stream: torch.Stream | None) -> StreamContext:
    return StreamContext(stream)


def _device_type() -> int:
    return int(torch.Stream(device="dipu").device_type)

"""What a name that CUDA programs use is called here."""

from typing import Any

import torch

# torch's own: torch.device is another class while the alias is on.
_Device = torch.device


def dipu_name(value: Any) -> Any:
    """e.g. "dipu:1" for "cuda:1" and for its torch.device; everything else as it is."""
    if isinstance(value, str):
        return f"dipu{value[4:]}" if value == "cuda" or value.startswith("cuda:") else value
    if isinstance(value, _Device) and value.type == "cuda":
        return _Device("dipu") if value.index is None else _Device("dipu", value.index)
    return value


def dicl_name(backend: Any) -> Any:
    """e.g. "dicl" for "nccl", "cpu:gloo,dipu:dicl" for "cpu:gloo,cuda:nccl"; as it is where there is no dicl."""
    if not isinstance(backend, str) or "dicl" not in torch.distributed.Backend.backend_list:
        return backend
    parts = [part.strip().rpartition(":") for part in backend.lower().split(",")]
    return ",".join(f"{dipu_name(device)}{colon}{'dicl' if name == 'nccl' else name}" for device, colon, name in parts)

"""torch.distributed under the alias: nccl is dicl, where that is registered, and cuda is dipu."""

import functools
import sys
from collections.abc import Iterator
from typing import Any

import torch

from torch_dipu.cuda_alias.names import dicl_name, dipu_name
from torch_dipu.cuda_alias.wrapping import Function, translated


def rows() -> Iterator[tuple[Any, str, Any]]:
    """Owner, name and what stands there meanwhile; torch.distributed must be available."""
    c10d, mesh = torch.distributed.distributed_c10d, torch.distributed.device_mesh
    for name in ("init_process_group", "new_group"):
        for owner in (c10d, torch.distributed):
            yield owner, name, _named(getattr(c10d, name))
    for owner in (c10d, torch.distributed):
        yield owner, "is_nccl_available", lambda: dicl_name("nccl") == "dicl"
    yield mesh.DeviceMesh, "__init__", translated(mesh.DeviceMesh.__init__)
    for owner in (mesh, torch.distributed):
        yield owner, "init_device_mesh", translated(mesh.init_device_mesh)
    # Checkpoints compare it with the devices of tensors, which are dipu's; they may have been imported before.
    available = torch._utils._get_available_device_type
    for module in ("torch._utils", "torch.distributed.checkpoint.filesystem"):
        if module in sys.modules:
            yield sys.modules[module], available.__name__, lambda: (
                "dipu" if torch.dipu.is_mocking_cuda() else available()
            )


def _named(function: Function) -> Function:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        changed = {name: dicl_name(value) if name == "backend" else dipu_name(value) for name, value in kwargs.items()}
        return function(*map(dicl_name, args), **changed)

    return call

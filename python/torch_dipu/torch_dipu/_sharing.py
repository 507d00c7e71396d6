"""Tensors on the device in messages to other processes (queues, pipes, pools, arguments of a process).

A device's memory is its process's own, so a message holds a copy, which travels through shared memory of the host.
"""

import warnings
from multiprocessing.reduction import ForkingPickler
from typing import Any

_Reduced = tuple[Any, ...]


def register() -> None:
    """Makes `torch.multiprocessing` send storages of the device; any other goes torch's own way."""
    import torch

    ForkingPickler.register(torch.UntypedStorage, _reduced)


def _reduced(storage: Any) -> _Reduced:
    if storage.device.type != "dipu":
        from torch.multiprocessing.reductions import reduce_storage

        reduced: _Reduced = reduce_storage(storage)  # type: ignore[no-untyped-call]
        return reduced
    warnings.warn(
        "a tensor on dipu goes to another process as a copy: what one of the two writes to it, the other does not see",
        stacklevel=2,
    )
    # A message may hold no more than the number of the copy's file, which must stay open until the message is read.
    storage.copy_in_message = storage.cpu()
    return _rebuilt, (storage.copy_in_message, storage.device.index)


def _rebuilt(storage: Any, index: int) -> Any:
    import torch

    return torch.empty(0, dtype=torch.uint8).set_(storage).to(f"dipu:{index}").untyped_storage()

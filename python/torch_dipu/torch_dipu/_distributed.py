"""The backend ``dicl`` of torch.distributed, which serves tensors on ``dipu``.

A group moves its tensors by the vendor's library of collectives; what that lacks, and everything where there is none,
goes through pinned host memory and a Gloo group of its own. ``torch.dipu.distributed.report()`` tells which.
"""

import atexit
import functools
from typing import Any

from torch_dipu import _native, _sharding

NAME = "dicl"


def register() -> None:
    """Make ``dicl`` known to torch.distributed, as the backend of the device ``dipu``; nothing if torch lacks Gloo."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_gloo_available():
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["dipu"])


@functools.cache
def _end_with_python() -> None:
    atexit.register(_native.load().end_flight_records)


def _create(group: Any, options: Any) -> Any:
    """One group's backend; ``group`` tells the store, rank, size and timeout. Raises ValueError when given options."""
    from torch.distributed import PrefixStore, ProcessGroupGloo

    if options is not None:
        raise ValueError("the backend 'dicl' has no options; leave pg_options or backend_options out")
    _sharding.register()
    _end_with_python()
    store = PrefixStore("gloo/", group.store)
    host = ProcessGroupGloo(store, group.group_rank, group.group_size, timeout=group.timeout)
    host.options.global_ranks_in_group = group.global_ranks_in_group or list(range(group.group_size))
    return _native.load().create_distributed_backend(host, PrefixStore("dicl/", group.store), group.timeout)

"""``torch.dipu.distributed``: which way the collectives of this process took."""

from dataclasses import dataclass

from torch_dipu import _C


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """Calls of one collective with one dtype."""

    collective: str  # e.g. "dicl:all_reduce"
    dtype: str  # e.g. "Float"
    way: str  # "device": the vendor's library; "host": through host memory
    cause: str  # why through the host
    calls: int


def report() -> list[CollectiveRow]:
    """What was called so far; what went through the host is also in ``torch.dipu.fallback.report()``."""
    return [
        CollectiveRow(collective, dtype, "host" if cause else "device", cause, calls)
        for collective, dtype, cause, calls in _C.collective_report()
    ]


def reset() -> None:
    """Begin to count anew."""
    _C.reset_collective_report()

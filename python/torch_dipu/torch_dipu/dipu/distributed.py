"""``torch.dipu.distributed``: which way the collectives of this process took, and what they were."""

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


def flight_record(stacks: bool = True, only_active: bool = False) -> bytes:
    """The last calls, with the Python stack of each, as ``torch.distributed.flight_recorder`` reads them from a file.

    The files of the ranks are in one folder, and their names end with the rank, e.g. ``trace_3``.
    """
    return _C.flight_record(stacks, only_active)


def reset() -> None:
    """Begin to count anew."""
    _C.reset_collective_report()

"""What the worker's second call of a function gave, on other bytes in memory that nobody wrote."""

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from diopi_conformance.prepare import Buffer, Prepared
from diopi_conformance.process.wire import OTHER_OUTPUT, same_answer


@dataclass(frozen=True, slots=True)
class Second:
    """A reply of its own, and the call that it answers."""

    prepared: Prepared
    head: dict[str, Any]
    blobs: list[bytes]


def both_calls(prepared: Prepared, head: dict[str, Any], blobs: list[bytes]) -> tuple[list[bytes], Second | None]:
    """The storages of the first call, and the second call where it did anything else."""
    if "other" not in head:
        return blobs, None
    other = head["other"]
    count = len(blobs) - len(prepared.buffers) - len(other["new"])
    first, storages = blobs[:count], blobs[count:]
    second = replace(prepared, buffers=[_before_second(buffer) for buffer in prepared.buffers])
    before = zip(prepared.blobs, second.blobs, strict=True)
    made = ((b"", b"") for _ in storages[len(prepared.buffers) :])
    if same_answer(head, other) and all(map(_same_written, first, storages, chain(before, made))):
        return first, None
    return first, Second(second, other, storages)


def _same_written(first: bytes, second: bytes, before: tuple[bytes, bytes]) -> bool:
    """Whether each byte is the same after both calls, or both have left it alone."""
    if first == second:
        return True
    if not len(first) == len(second) == len(before[0]):
        return False
    a, b, a_before, b_before = (np.frombuffer(blob, np.uint8) for blob in (first, second, *before))
    return bool(((a == b) | ((a == a_before) & (b == b_before))).all())


def _before_second(buffer: Buffer) -> Buffer:
    """An output as it was before the second call."""
    if not buffer.unwritten:
        return buffer
    return replace(buffer, before=np.full(buffer.before.nbytes, OTHER_OUTPUT, np.uint8).view(buffer.before.dtype))

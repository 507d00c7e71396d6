"""What the worker's second call of a function gave, on other bytes in memory that nobody wrote."""

from dataclasses import dataclass, replace
from itertools import starmap
from typing import Any

import numpy as np

from diopi_conformance.prepare import Buffer, Prepared
from diopi_conformance.process.wire import OTHER_OUTPUT, same_answer
from diopi_conformance.values.elements import Array, rows_of_bytes


@dataclass(frozen=True, slots=True)
class SecondCall:
    """A reply of its own, and the call that it answers."""

    prepared: Prepared
    head: dict[str, Any]
    blobs: list[bytes]


def both_calls(prepared: Prepared, head: dict[str, Any], blobs: list[bytes]) -> tuple[list[bytes], SecondCall | None]:
    """The storages of the first call, and the second call where it did anything else."""
    if "other" not in head:
        return blobs, None
    other = head["other"]
    count = len(blobs) - len(prepared.buffers) - len(other["new"])
    first, storages = blobs[:count], blobs[count:]
    second = replace(prepared, buffers=[_before_second(buffer) for buffer in prepared.buffers])
    tensors = len(prepared.buffers)
    pairs = zip(prepared.buffers, second.buffers, first, storages, strict=False)
    if same_answer(head, other) and first[tensors:] == storages[tensors:] and all(starmap(_same_written, pairs)):
        return first, None
    return first, SecondCall(second, other, storages)


def _same_written(before: Buffer, before_second: Buffer, first: bytes, second: bytes) -> bool:
    """Whether each element is the same after both calls; outside of the view also where both have left it alone."""
    if first == second:
        return True
    after, after_second = (np.frombuffer(blob, before.before.dtype) for blob in (first, second))
    same = _same_elements(after, after_second)
    left_alone = _same_elements(after, before.before) & _same_elements(after_second, before_second.before)
    left_alone[before.layout.positions().reshape(-1)] = False
    return bool((same | left_alone).all())


def _same_elements(words: Array, others: Array) -> Array:
    return np.asarray((rows_of_bytes(words) == rows_of_bytes(others)).all(axis=1))


def _before_second(buffer: Buffer) -> Buffer:
    """An output as it was before the second call."""
    if not buffer.unwritten:
        return buffer
    return replace(buffer, before=np.full(buffer.before.nbytes, OTHER_OUTPUT, np.uint8).view(buffer.before.dtype))

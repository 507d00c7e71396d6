"""The calls of a random function that were made again, read and judged together with the first."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from diopi_conformance.judgement.distributions import Actual, Draws, distribution_check
from diopi_conformance.judgement.fault import Fault
from diopi_conformance.prepare import Prepared
from diopi_conformance.process.draws import NEXT, OTHER, SAME
from diopi_conformance.values.elements import decode


def random_faults(prepared: Prepared, actual: Actual, head: dict[str, Any], blobs: list[bytes]) -> Iterator[Fault]:
    """What is wrong with the numbers; `blobs` are the written storages of each call that was made again."""
    made: dict[str, list[Actual]] = {SAME: [], NEXT: [], OTHER: []}
    written = [b for b in prepared.buffers if b.expected is not None]
    rest = iter(blobs)
    for call in head.get("draws", ()):
        if call["status"] != 0 or not call["synchronized"]:
            yield Fault(message=f"called once more, the function gives status {call['status']}")
            return
        made[call["kind"]].append(
            {b.label: decode(np.frombuffer(next(rest), b.before.dtype)[b.layout.positions()], b.dtype) for b in written}
        )
    same, other = (next(iter(made[kind]), None) for kind in (SAME, OTHER))
    if message := distribution_check(prepared, Draws([actual, *made[NEXT]], same, other)):
        yield Fault(message=message)

"""Writes the tables of docs/scaling.md: `python -m tools.scaling`; --check compares.

What two GPUs took comes from benchmarks/results; everything else is computed from it by the formulas of the page.
"""

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.marked_part import MarkedPart

ROOT = Path(__file__).resolve().parent.parent
PART = MarkedPart(ROOT / "docs" / "scaling.md", "scaling", "scaling")
RANKS = (2, 8, 64, 256, 1024)
OF_A_NODE = 8
# Assumed of the network, nothing of which was measured: an adapter of 400 Gbit/s for each GPU, of which nine tenths are
# reached, and a hop from node to node.
ADAPTER, REACHED, HOP = 50e9, 0.9, 5e-6  # bytes a second, of them, seconds
MODEL = ("LLaMA", 58_729_472 * 4)  # bytes of the gradients: 58.7 million parameters of float32
PIECES = {"4 kB": 1 << 12, "64 MB": 1 << 26, "512 MB": 1 << 29}


def main() -> int:
    """The exit code is 1 where --check finds other tables than it would write."""
    return PART.main(__doc__, "\n".join(listed()) + "\n")


def measured(row: str) -> float:
    """The seconds that two ranks of dipu took."""
    found = json.loads((ROOT / "benchmarks" / "results" / "collectives.json").read_text(encoding="utf-8"))
    return next(each["median"] for each in found["figures"] if each["name"] == f"{row}, dipu") / 1e3


def start() -> float:
    """Seconds of a call that moves next to nothing."""
    return measured("all_reduce 4 kB")


def bandwidth(ranks: int) -> float:
    """Bytes a second that each rank sends in a large all_reduce."""
    inside = PIECES["512 MB"] / (measured("all_reduce 512 MB") - start())
    return inside if ranks <= OF_A_NODE else min(inside, OF_A_NODE * ADAPTER * REACHED)


def share(ranks: int) -> float:
    """What each rank sends in an all_reduce, in terms of its tensor."""
    return 2 * (ranks - 1) / ranks


def all_reduce(size: float, ranks: int) -> float:
    """Seconds."""
    hops = 2 * math.log2(max(1, ranks // OF_A_NODE))
    return start() + hops * HOP + share(ranks) * size / bandwidth(ranks)


def listed() -> Iterator[str]:
    """What was measured in terms of the formulas, and the tables."""
    formula, seen = all_reduce(PIECES["64 MB"], 2), measured("all_reduce 64 MB")
    yield (
        f"a is {1e6 * start():.0f} µs, and B {bandwidth(2) / 1e9:.0f} GB/s. For 64 MB on two GPUs the formula gives "
        f"{1e3 * formula:.3f} ms; {1e3 * seen:.3f} ms were measured."
    )
    yield ""
    yield f"| ranks | {' | '.join(f'all_reduce {name}, ms' for name in PIECES)} |"
    yield f"|---|{'---|' * len(PIECES)}"
    for ranks in RANKS:
        times = (f"{1e3 * all_reduce(size, ranks):.3g}" for size in PIECES.values())
        yield f"| {ranks:,} | {' | '.join(times)} |"
    name, size = MODEL
    step = measured(f"DDP step, {name}")
    alone = step - all_reduce(size, 2)
    yield ""
    yield f"| ranks | all_reduce of the gradients, ms | {name}'s step without overlap, ms | efficiency, from | to |"
    yield "|---|---|---|---|---|"
    for ranks in RANKS:
        reduced = all_reduce(size, ranks)
        overlapped = max(alone, reduced)
        yield (
            f"| {ranks:,} | {1e3 * reduced:.3g} | {1e3 * (alone + reduced):.1f} "
            f"| {alone / (alone + reduced):.2f} | {alone / overlapped:.2f} |"
        )


if __name__ == "__main__":
    sys.exit(main())

"""The outcomes of a run as a table, and as plain data."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tools.torch_tests.run import Outcome

OUTCOMES = ("passed", "failed", "crashed", "timed out", "skipped", "listed", "never tested")
BAD = ("failed", "crashed", "timed out", "never tested")
_SHOWN = 60  # bad outcomes that the text names


def table(found: Sequence[Outcome]) -> str:
    """A line for each file: how many tests came to what."""
    files = list(dict.fromkeys(outcome.file for outcome in found))
    width = max(map(len, [*files, "total"]))
    lines = [" " * width + "".join(f"{name:>{len(name) + 2}}" for name in OUTCOMES)]
    for file in [*files, "total"]:
        counts = Counter(o.outcome for o in found if file in (o.file, "total"))
        lines.append(f"{file:{width}}" + "".join(f"{counts[name]:>{len(name) + 2}}" for name in OUTCOMES))
    return "\n".join(lines)


def failures(found: Sequence[Outcome]) -> str:
    """A line for each test that did not come to an end that is right."""
    bad = [outcome for outcome in found if outcome.outcome in BAD]
    lines = [f"{o.outcome.upper()} {o.id.rstrip('.')}: {o.reason[:160]}" for o in bad[:_SHOWN]]
    if len(bad) > _SHOWN:
        lines.append(f"and {len(bad) - _SHOWN} more, in the report")
    return "\n".join(lines)


def as_data(found: Sequence[Outcome], seconds: float, outdated: Sequence[str]) -> dict[str, Any]:
    """As it is stored: counts by file, every test, the reasons of torch's skips by how many tests have them."""
    import torch

    files = list(dict.fromkeys(outcome.file for outcome in found))
    skips = Counter(outcome.reason for outcome in found if outcome.outcome == "skipped")
    return {
        "torch": torch.__version__,
        "seconds": round(seconds, 1),
        "files": {file: dict(Counter(o.outcome for o in found if o.file == file)) for file in files},
        "skips": dict(skips.most_common()),
        "outdated": list(outdated),
        "tests": [{key: value for key, value in asdict(outcome).items() if value != ""} for outcome in found],
    }

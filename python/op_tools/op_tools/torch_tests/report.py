"""The outcomes of a run as a table, and as plain data."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from op_tools.torch_tests.outcome import BAD, OUTCOMES, Outcome
from op_tools.torch_tests.run import Found
from op_tools.torch_tests.shard import Shard

_SHOWN = 60  # bad outcomes that the text names


def table(found: Sequence[Outcome]) -> str:
    """A line for each suite: how many tests came to what."""
    suites = list(dict.fromkeys(outcome.suite for outcome in found))
    width = max(map(len, [*suites, "total"]))
    lines = [" " * width + "".join(f"{name:>{len(name) + 2}}" for name in OUTCOMES)]
    for suite in [*suites, "total"]:
        counts = Counter(o.outcome for o in found if suite in (o.suite, "total"))
        lines.append(f"{suite:{width}}" + "".join(f"{counts[name]:>{len(name) + 2}}" for name in OUTCOMES))
    return "\n".join(lines)


def failures(found: Sequence[Outcome]) -> str:
    """A line for each test that did not come to an end that is right; what was never tested comes last."""
    bad = sorted((outcome for outcome in found if outcome.outcome in BAD), key=lambda o: o.outcome == "never tested")
    lines = [f"{o.outcome.upper()} {o.id.rstrip('.')}: {o.reason[:160]}" for o in bad[:_SHOWN]]
    if len(bad) > _SHOWN:
        lines.append(f"and {len(bad) - _SHOWN} more, in the report")
    return "\n".join(lines)


def expected(found: Sequence[Outcome]) -> str:
    """How many tests of the list did not pass, by its reasons, the most frequent first; empty where there is none."""
    reasons = Counter(outcome.reason for outcome in found if outcome.outcome == "listed")
    lines = [f"  {count:4} {reason}" for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))]
    return "\n".join(["expected failures, by reason:", *lines]) if lines else ""


def as_data(found: Found, device: str, shard: Shard, seconds: float, outdated: Sequence[str]) -> dict[str, Any]:
    """As it is stored: counts by suite, every test, the reasons of torch's skips by how many tests have them."""
    import torch

    outcomes = found.outcomes
    suites = list(dict.fromkeys(outcome.suite for outcome in outcomes))
    skips = Counter(outcome.reason for outcome in outcomes if outcome.outcome == "skipped")
    return {
        "torch": torch.__version__,
        "device": device,
        "shard": str(shard),
        "elsewhere": len(found.elsewhere),
        "interrupted": found.interrupted,
        "seconds": round(seconds, 1),
        "suites": {suite: dict(Counter(o.outcome for o in outcomes if o.suite == suite)) for suite in suites},
        "skips": dict(skips.most_common()),
        "outdated": list(outdated),
        "tests": [{key: value for key, value in asdict(o).items() if value not in ("", {})} for o in outcomes],
    }

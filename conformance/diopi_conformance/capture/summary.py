"""A capture in words: how much of what ran the contract can say."""

from collections import Counter

from diopi_conformance.capture.session import Tally


def summary(tally: Tally, refused: Counter[tuple[str, str]]) -> str:
    """The counts, then what could not be said, the most frequent first."""
    lines = [f"{tally.calls} calls, {tally.mapped} of them calls of the contract, {tally.calls - tally.mapped} not"]
    lines += [f"  {count:6} {name}: {why}" for (name, why), count in _ordered(tally.unmapped)]
    if refused:
        lines.append(f"{sum(refused.values())} cases are left out, which their references refuse")
        lines += [f"  {count:6} {function}: {why}" for (function, why), count in _ordered(refused)]
    return "\n".join(lines)


def _ordered(counts: Counter[tuple[str, str]]) -> list[tuple[tuple[str, str], int]]:
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))

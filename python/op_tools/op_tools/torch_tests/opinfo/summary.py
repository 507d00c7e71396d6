"""What is said of torch's samples beside the table: entries that pass, that use no fallback; operators by the entries
that need them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from op_tools.torch_tests.opinfo.entries import NAME
from op_tools.torch_tests.outcome import Outcome

_SHOWN = 40  # operators that fall back


def summary(found: Sequence[Outcome], fallbacks: bool) -> str:
    """Of the entries that were run; empty where none was. `fallbacks` says whether the device counts its own."""
    entries: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in found:
        if outcome.suite == NAME and outcome.test and outcome.outcome != "never tested":
            entries[outcome.test.rpartition(".")[0]].append(outcome)
    if not entries:
        return ""
    passed = [name for name, runs in entries.items() if "passed" in _kinds(runs) <= {"passed", "skipped"}]
    crashed = sum(bool(_kinds(runs) & {"crashed", "timed out"}) for runs in entries.values())
    idle = sum(_kinds(runs) == {"skipped"} for runs in entries.values())
    runs = [run for several in entries.values() for run in several]
    lines = [
        f"entries: {len(entries)}, pass: {len(passed)}, crashes: {crashed}, without a check: {idle}",
        f"runs of an entry at one dtype: {len(runs)}; samples: {_sum(runs, 'samples')}; "
        f"checks: {_sum(runs, 'checks')}, failed: {_sum(runs, 'failed')}",
    ]
    return "\n".join([*lines, *(_fallback_lines(entries, passed) if fallbacks else ())])


def _kinds(runs: Iterable[Outcome]) -> set[str]:
    return {run.outcome for run in runs}


def _sum(runs: Iterable[Outcome], count: str) -> int:
    return sum(run.details.get(count, 0) for run in runs)


def _fallback_lines(entries: dict[str, list[Outcome]], passed: Sequence[str]) -> list[str]:
    used = {name: {text for run in runs for text in run.details.get("fallbacks", ())} for name, runs in entries.items()}
    users = Counter(text for texts in used.values() for text in sorted(texts))
    lines = [f"without a fallback: {sum(not used[name] for name in passed)}"]
    if users:
        lines.append("fallbacks, by entries that meet them:")
    ordered = sorted(users.items(), key=lambda item: (-item[1], item[0]))
    return [*lines, *(f"  {count:4} {text}" for text, count in ordered[:_SHOWN])]

"""The summary of a run: entries that pass, that use no fallback, that fail; operators by the entries that need them."""

from collections import Counter
from typing import Any


def empty_result(entry: str, dtype: str) -> dict[str, Any]:
    """Of one entry at one dtype, before anything ran; plain data, as it is stored."""
    return {"entry": entry, "dtype": dtype, "samples": 0, "checks": 0, "failures": [], "failed": 0, "fallbacks": {}}


def summary(results: list[dict[str, Any]]) -> str:
    entries = {r["entry"] for r in results}
    crashed = sorted({r["entry"] for r in results if r.get("crash")})
    failed = sorted({r["entry"] for r in results if r["failed"] or r.get("crash")})
    fallen = {r["entry"] for r in results if r["fallbacks"]}
    unsampled = sorted(entries - {r["entry"] for r in results if r["samples"]})
    checks = sum(r["checks"] for r in results)
    bad = sum(r["failed"] for r in results)
    lines = [
        f"entries: {len(entries)}, pass: {len(entries) - len(failed)}, crashes: {len(crashed)}",
        f"without a fallback: {len(entries - fallen - set(failed))}; without a sample: {len(unsampled)}",
        f"runs of an entry at one dtype: {len(results)}; samples: {sum(r['samples'] for r in results)}; "
        f"checks: {checks}, failed: {bad}",
    ]
    for result in results:
        if result.get("crash"):
            lines.append(f"CRASH {result['entry']} {result['dtype']}: {result['crash']}")
        for failure in result["failures"][:1]:
            lines.append(
                f"FAIL {result['entry']} {result['dtype']} ({result['failed']} of {result['checks']}) "
                f"{failure['mode']}: {failure['fault'][:160]}"
            )
    users: Counter[str] = Counter()
    for entry in entries:
        used = {f for r in results if r["entry"] == entry for f in r["fallbacks"]}
        users.update(used)
    lines.append("fallbacks, by entries that meet them:")
    lines += [f"  {count:4} {operator}" for operator, count in users.most_common(40)]
    return "\n".join(lines)

"""The page of measurements: what each operator came to, beside each other for each vendor and release of torch."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from op_tools.torch_tests.coverage.measured import FALLBACK, NATIVE, UNTESTED, WRONG, Measured, Row

_VERDICTS = (NATIVE, FALLBACK, WRONG, UNTESTED)
_HEAD = """\
# Operators, measured

<!-- written by `op-tools coverage`; do not edit -->

torch's own samples of every operator ran on the device: forward, backward, in place and with `out=`. Each call of an
operator that they reach was compared with the CPU.

- native: every call ran on the device. Views and random operators have no values to compare.
- fallback: something ran on the CPU in at least one call, for one of the [reasons](torch-backend.md#fallback).
- wrong: at least one result is further from the CPU's than [rounding explains](op-tools.md#what-is-compared), and so is
  what the sample gives. What an operator only keeps for its gradient, each device has in its own way.
- untested: the device has a kernel that no sample reaches.

A dtype is that of the first tensor of floating-point or complex numbers, or else of the first tensor.

```
op-tools torch-tests --device dipu --suite opinfo --coverage --out measured.json     # --all-dtypes: beyond float32
op-tools coverage measured.json --out docs/operator-coverage.md                      # also of several measurements
```
"""


def page(several: Sequence[Measured]) -> str:
    """Markdown, the same for the same measurements."""
    parts = [_HEAD, "## Runs", _runs(several)]
    lost = "\n".join(_lost(several))
    if lost:
        parts += ["## Kernels that a release lacks", lost]
    return "\n\n".join(part.strip("\n") for part in (*parts, "## Operators", _operators(several))) + "\n"


def counts(one: Measured) -> Counter[str]:
    """How many overloads come to what; one with several verdicts counts with the last of native, fallback, wrong."""
    worst: dict[str, str] = {name: UNTESTED for name in one.registered}
    for row in one.rows:
        before = worst.get(row.overload, NATIVE)
        known = NATIVE if before == UNTESTED else before
        worst[row.overload] = max(known, row.verdict, key=_VERDICTS.index)
    return Counter(worst.values())


def _title(one: Measured) -> str:
    return f"{one.vendor}, torch {one.release}"


def _runs(several: Sequence[Measured]) -> str:
    lines = [
        "| run | samples | kernels of the device | native | fallback | wrong | untested | schemas | harness |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in several:
        found = counts(one)
        part = "" if one.shards == ("1/1",) else f", parts {', '.join(one.shards)}"
        cells = [_title(one), f"{one.dtypes}{part}", f"{len(one.registered)} of {len(one.known)}"]
        cells += [str(found[verdict]) for verdict in _VERDICTS] + [f"`{one.schemas[:12]}`", f"`{one.harness[:12]}`"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _lost(several: Sequence[Measured]) -> Iterator[str]:
    """Of neighbouring releases, what the older one has a kernel for and the newer one does not."""
    for older, newer in pairwise(several):
        if older.vendor != newer.vendor:
            continue
        gone = sorted(set(older.registered) - set(newer.registered))
        removed = [name for name in gone if name not in newer.known]
        for names, why in ((removed, "torch has no such operator"), (sorted(set(gone) - set(removed)), "no kernel")):
            if names:
                listed = ", ".join(f"`{name}`" for name in names)
                yield f"- {_title(newer)}, against {older.release}: {listed}: {why}."


def _operators(several: Sequence[Measured]) -> str:
    lines = [f"| operator | {' | '.join(map(_title, several))} |", f"|---|{'---|' * len(several)}"]
    rows = [_by_overload(one) for one in several]
    names = sorted({name for one, found in zip(several, rows, strict=True) for name in (*one.registered, *found)})
    for name in names:
        cells = [_cell(name, one, found) for one, found in zip(several, rows, strict=True)]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _by_overload(one: Measured) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in one.rows:
        found[row.overload].append(row)
    return found


def _cell(name: str, one: Measured, found: dict[str, list[Row]]) -> str:
    rows = found.get(name, [])
    if not rows:
        if name not in one.known:
            return "not in this torch"
        return UNTESTED if name in one.registered else ""
    parts = []
    for verdict in (NATIVE, FALLBACK, WRONG):
        those = [row for row in rows if row.verdict == verdict]
        if those:
            parts.append(f"{verdict}: {', '.join(_told(row, name) for row in those)}")
    return "<br>".join(parts)


def _told(row: Row, name: str) -> str:
    if row.verdict == NATIVE:
        return row.dtype
    count = row.wrong if row.verdict == WRONG else row.fallen
    part = "" if count == row.calls else f"{count} of {row.calls} calls"
    reasons = sorted({_reason(text, name) for text in row.causes}) if row.verdict == FALLBACK else [row.example]
    said = "; ".join(text.replace("|", "\\|").replace("<", "&lt;") for text in (part, *reasons) if text)
    return f"{row.dtype} ({said})" if said else row.dtype


def _reason(text: str, name: str) -> str:
    """The cause alone where it is of the operator itself: "no kernel"."""
    operator, _, cause = text.partition(" (")
    own = operator.removeprefix("aten::").partition(".")[0] == name.partition(".")[0]
    return cause.removesuffix(")") if own else text

"""What a comparison of modules found, as lines for people and as JSON."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from op_tools.modules.comparison import ModuleRun, ModulesCompared, Parting
from op_tools.runs.difference import Deviation

_ROWS = 6


def first_of(found: Sequence[ModulesCompared]) -> ModulesCompared | None:
    """The process whose modules parted first; None where none did."""
    parted = [(one.parting.line, one) for one in found if one.parting is not None]
    return min(parted, key=lambda entry: entry[0])[1] if parted else None


def lines(found: Sequence[ModulesCompared]) -> Iterator[str]:
    """A table of the modules of each process, and where they part first."""
    for one in found:
        if len(found) > 1:
            yield f"rank {one.a.rank}:"
        yield from _table(one)
        for name, missing in zip("AB", one.only, strict=True):
            if missing:
                more = f" and {len(missing) - _ROWS} more" if len(missing) > _ROWS else ""
                yield f"only {name}: {', '.join(missing[:_ROWS])}{more}"
    first = first_of(found)
    yield ""
    if first is None or first.parting is None:
        yield "equal but for rounding"
        return
    parting = first.parting
    yield f"first divergence: {_title(parting)}{_rank(first)}, {parting.kind}: {parting.reason}"
    yield f"  recorded in {first.a.path}:{parting.line}"


def facts(found: Sequence[ModulesCompared]) -> dict[str, Any]:
    """As JSON holds it."""
    first = first_of(found)
    return {
        "equal": first is None,
        "processes": [_process(one) for one in found],
        "first": None if first is None or first.parting is None else _parted(first.parting),
    }


def _table(found: ModulesCompared) -> Iterator[str]:
    """Relative differences: of what a module is given and gives, and of the gradients of both."""
    width = max((len(_name(run)) for run in found.runs), default=0)
    kinds = max((len(run.type) for run in found.runs), default=0)
    yield f"{'module':{width}}  {'class':{kinds}}  {'inputs':>8} {'outputs':>8} {'grad of':>8} {'grad of':>8}"
    yield f"{'':{width}}  {'':{kinds}}  {'':>8} {'':>8} {'outputs':>8} {'inputs':>8}"
    for run in found.runs:
        results = {place: gap for place, gap in run.gradients.items() if place.startswith("result")}
        given = {place: gap for place, gap in run.gradients.items() if place not in results}
        shown = " ".join(f"{_shown(gaps):>8}" for gaps in (run.inputs, run.outputs, results, given))
        yield f"{_name(run):{width}}  {run.type:{kinds}}  {shown}"


def _shown(gaps: dict[str, Deviation | None]) -> str:
    if not gaps:
        return "-"
    worst = max(math.inf if gap is None else gap.relative for gap in gaps.values())
    return "0" if worst == 0 else f"{worst:.1e}" if math.isfinite(worst) else "other"


def _name(run: ModuleRun) -> str:
    name = run.module or "(model)"
    return name if run.number == 0 else f"{name} #{run.number + 1}"


def _title(parting: Parting) -> str:
    name = parting.module or "the model"
    return f"{name} ({parting.type})" if parting.type else name


def _rank(found: ModulesCompared) -> str:
    return f" on rank {found.a.rank}" if found.a.rank or found.a.rank != found.b.rank else ""


def _process(found: ModulesCompared) -> dict[str, Any]:
    return {
        "ranks": [found.a.rank, found.b.rank],
        "files": [str(found.a.path), str(found.b.path)],
        "modules": [_run(run) for run in found.runs],
        "only": [list(names) for names in found.only],
        "divergence": None if found.parting is None else _parted(found.parting),
    }


def _run(run: ModuleRun) -> dict[str, Any]:
    told = {"module": run.module, "class": run.type, "number": run.number}
    for name in ("inputs", "outputs", "gradients"):
        told[name] = {place: _gap(gap) for place, gap in getattr(run, name).items()}
    return told


def _parted(parting: Parting) -> dict[str, Any]:
    names = ("kind", "module", "type", "number", "reason", "line")
    return {**{name: getattr(parting, name) for name in names}, "gap": _gap(parting.gap)}


def _gap(gap: Deviation | None) -> dict[str, Any] | None:
    return None if gap is None else {name: getattr(gap, name) for name in Deviation.__slots__}

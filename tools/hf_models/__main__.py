"""The command: `python -m tools.hf_models`."""

import json
import sys
import time
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import click

from tools.hf_models.outcome import Outcome
from tools.hf_models.parallel import run_models
from tools.hf_models.zoo import USUAL, names


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", multiple=True, metavar="GLOB", help="Only these models of the whole zoo, e.g. 'gemma*'.")
@click.option("--all", "everything", is_flag=True, help="The whole zoo, rather than the usual models.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Models at a time.")
@click.option("--optimizer", type=click.Choice(["adamw", "sgd"]), default="adamw", show_default=True)
@click.option("--attention", type=click.Choice(["eager", "sdpa"]), default="sdpa", show_default=True)
@click.option("--compile", "compiled", is_flag=True, help="torch.compile on dipu, against eager mode on the CPU.")
@click.option("--timeout", type=click.FloatRange(1), default=300.0, show_default=True, help="Seconds for a model.")
@click.option("--out", type=click.Path(path_type=Path), help="Also write the outcomes as JSON.")
@click.option("--list", "listed", is_flag=True, help="List the models and end.")
def main(
    only: tuple[str, ...],
    everything: bool,
    jobs: int,
    optimizer: str,
    attention: str,
    compiled: bool,
    timeout: float,
    out: Path | None,
    listed: bool,
) -> None:
    """Train models of transformers for three steps on the CPU and on dipu, from the same weights and inputs.

    Losses, all gradients and all weights must agree, and tied weights must stay tied. Operators that fell back to the
    CPU are listed, and are no failure. Exit codes: 0 all models agree, 1 some do not, 2 wrong usage.
    """
    chosen = [name for name in names() if _wanted(name, only, everything)]
    if not chosen:
        raise click.UsageError("no model has such a name; --list shows them all")
    if listed:
        click.echo("\n".join(chosen if only else names()))
        return
    begin, outcomes = time.perf_counter(), []
    options = ["--optimizer", optimizer, "--attention", attention, *(["--compile"] if compiled else [])]
    for outcome in run_models(chosen, options, jobs, timeout):
        outcomes.append(outcome)
        click.echo(_line(outcome))
    outcomes.sort(key=lambda outcome: chosen.index(outcome.model))
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        rows = [{"model": outcome.model, "error": outcome.error, **outcome.result} for outcome in outcomes]
        out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    click.echo(_summary(outcomes, time.perf_counter() - begin))
    sys.exit(0 if all(outcome.agrees for outcome in outcomes) else 1)


def _wanted(name: str, only: tuple[str, ...], everything: bool) -> bool:
    if only:
        return any(fnmatchcase(name, pattern) for pattern in only)
    return everything or name in USUAL


def _line(outcome: Outcome) -> str:
    if outcome.error:
        return f"{outcome.model:24} {'FAILED':8} {outcome.error}"
    result = outcome.result
    counts = [f"loss {result['losses']['dipu'][-1]:<9.5f}"]
    for kind in ("gradient", "weight"):
        counts.append(f"{kind}s {result[f'{kind}s'] - len(result[f'{kind}_differences'])}/{result[f'{kind}s']}")
    counts.append(f"tied {result['tied'] if result['still_tied'] else 'LOST'}, fell back {len(result['fallbacks'])}")
    if result["sensitive"]:
        counts.append("(sensitive to rounding)")
    head = f"{outcome.model:24} {'agrees' if outcome.agrees else 'DIFFERS':8} {' '.join(counts)}"
    return "\n".join([head, *(f"    {line}" for line in _details(outcome))])


def _details(outcome: Outcome) -> list[str]:
    result = outcome.result
    lines = [f"{operator} x{count}: {cause}" for operator, cause, count in result["fallbacks"]]
    if result["compiled"] is not None:
        words = {what: found for what, found in result["compiled"].items() if what != "islands of"}
        lines.append(", ".join(f"{count} {what}" for what, count in words.items()))
        lines.append("islands of " + (", ".join(result["compiled"]["islands of"]) or "nothing"))
    for kind in ("loss", "gradient", "weight"):
        lines += [f"{kind} {line}" for line in result[f"{kind}_differences"][:3]]
    return lines


def _summary(outcomes: list[Outcome], seconds: float) -> str:
    agreeing = sum(outcome.agrees for outcome in outcomes)
    lines = [f"{agreeing} of {len(outcomes)} models agree, in {seconds:.0f} s"]
    models: Counter[tuple[str, str]] = Counter()
    calls: Counter[tuple[str, str]] = Counter()
    for outcome in outcomes:
        for operator, cause, count in outcome.result.get("fallbacks", ()):
            models[operator, cause] += 1
            calls[operator, cause] += count
    if models:
        lines.append("operators that fell back, with the models that have them and the calls:")
    lines += [f"  {op:44} {n:3} models {calls[op, why]:6} calls  {why}" for (op, why), n in models.most_common()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()

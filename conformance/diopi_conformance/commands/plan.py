"""`diopi-conformance plan`: the cases, without running any."""

import json
from pathlib import Path
from typing import Any

import click

from diopi_conformance.cases.plan import Case, CasePlan
from diopi_conformance.commands.filters import SECTIONS, filters, planned
from diopigen.command_group import SectionedCommand
from diopigen.verbosity import tell


@click.command("plan", cls=SectionedCommand, sections=SECTIONS)
@filters
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text")
def command(vendor: str, plan_path: Path | None, form: str, **chosen: Any) -> None:
    """List the cases.

    \b
    Examples:
      diopi-conformance plan --vendor droplet --op add
      diopi-conformance plan --vendor droplet --dtype bf16 --format json
    """
    plan, cases = planned(vendor, plan_path, chosen)
    for case in cases:
        click.echo(json.dumps(_entry(plan, case)) if form == "json" else case.id)
    if form == "text":
        tell(f"{len(cases)} cases of {len({c.function for c in cases})} functions", err=True)


def _entry(plan: CasePlan, case: Case) -> dict[str, Any]:
    """One case for JSON; shapes are those that the case gives, by argument, of a list of tensors a list."""
    function = plan.functions[case.function]
    tensors = {p.arg for p in function.params if p.is_tensor} | {p.name for p in function.params if p.is_tensor}
    if function.plain:
        tensors |= {p.arg for p in plan.functions[function.plain].params if p.is_tensor}
    return {
        "id": case.id,
        "function": case.function,
        "dtypes": case.dtypes,
        "shapes": {name: value for name, value in case.values.items() if name in tensors},
        "values": {name: value for name, value in case.values.items() if name not in tensors},
        "layout": case.layout,
        "view": case.view,
        "fill": case.fill,
        "change": case.change,
        "origin": "model" if case.models else "row",
        "models": list(case.models),
    }

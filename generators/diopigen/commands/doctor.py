"""Says what this machine lacks for which target, and the command that fixes it."""

import json
import sys
from dataclasses import asdict
from itertools import chain

from rich.table import Table

from diopigen.doctor.check import Check, State
from diopigen.doctor.packages import package_checks
from diopigen.doctor.tools import tool_checks
from diopigen.project import Project
from diopigen.verbosity import console, quiet, tell

_STYLES = {State.OK: "green", State.MISSING: "red", State.WRONG: "red", State.STALE: "yellow"}
_OPTIONAL = "dim"
_WIDTH = 150  # columns where no terminal says how many it has


def doctor(project: Project, vendor: str | None, form: str) -> int:
    """Checks the machine, and with `vendor` all that this vendor needs; the exit code: 1 if something needed lacks."""
    checks = list(chain(package_checks(project, vendor), tool_checks(project, vendor)))
    if not any(check.failed for check in checks if check.target == "generate"):
        # Loaded only now: without its packages the generator cannot be imported.
        from diopigen.doctor.checkout import checkout_checks

        checks += checkout_checks(project, vendor)
    if form == "json":
        print(json.dumps([{**asdict(check), "state": check.state.value} for check in checks], indent=2))
    else:
        _print(checks)
    return 1 if any(check.failed for check in checks) else 0


def _print(checks: list[Check]) -> None:
    """A table of what is not as it should be, after a line for each target that lacks nothing."""
    shown = console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _WIDTH)
    targets = list(dict.fromkeys(check.target for check in checks))
    for target in () if quiet() else targets:
        good = [f"{check.what} {check.found}" for check in checks if check.target == target and check.state is State.OK]
        if len(good) == sum(1 for check in checks if check.target == target):
            facts = ", ".join(good)
            shown.print(f"[green]ok[/green]  {target}: ", end="")
            shown.print(facts, markup=False)
    rows = [check for check in checks if check.state is not State.OK]
    if rows:
        shown.print(_table(rows))
    failed = sum(1 for check in checks if check.failed)
    tell(f"{len(checks)} checks: " + (f"{failed} failed" if failed else "nothing that is needed is missing"))


def _table(rows: list[Check]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("for", "what", "state", "found", "wanted", "fix"):
        table.add_column(title, overflow="fold")
    for row in rows:
        state = row.state.value + ("" if row.needed else ", optional")
        style = _STYLES[row.state] if row.needed else _OPTIONAL
        table.add_row(row.target, row.what, f"[{style}]{state}[/{style}]", row.found, row.wanted, row.remedy)
    return table

"""The command: `python -m tools.opinfo`."""

import json
import os
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from tools.opinfo.pool import Task, run_tasks
from tools.opinfo.report import summary

ROOT = Path(__file__).resolve().parents[2]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--all-dtypes", is_flag=True, help="Every dtype of each entry; float32 otherwise.")
@click.option("--only", multiple=True, metavar="GLOB", help="Only these entries, ex. 'nn.functional.*'.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True)
@click.option("--timeout", default=300, show_default=True, help="Seconds for one entry at one dtype.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=ROOT / "conformance_results" / "opinfo.json",
    help="The JSON report.",
)
def main(all_dtypes: bool, only: tuple[str, ...], jobs: int, timeout: int, out: Path) -> None:
    """Run torch's own samples of every operator on dipu: forward, backward, in place and out=, against the CPU.

    Exit codes: 0 all entries pass, 1 some do not, 2 wrong usage.
    """
    begin = time.perf_counter()
    tasks = _tasks(all_dtypes, only)
    if not tasks:
        raise click.UsageError(f"no entry matches {' '.join(only)}")
    results: list[dict[str, Any]] = []
    for result in run_tasks(tasks, jobs, timeout):
        results.append(result)
        click.echo(f"\r{len(results)} of {len(tasks)}", err=True, nl=False)
    click.echo("", err=True)
    results.sort(key=lambda r: (r["entry"], r["dtype"]))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"seconds": round(time.perf_counter() - begin, 1), "results": results}, indent=1))
    click.echo(summary(results))
    click.echo(f"{time.perf_counter() - begin:.0f} s; {out}")
    sys.exit(1 if any(r["failed"] or r.get("crash") for r in results) else 0)


def _tasks(every: bool, only: tuple[str, ...]) -> list[Task]:
    from tools.opinfo.entry import dtypes_of, entries

    return [
        Task(entry=name, dtype=str(dtype).removeprefix("torch."))
        for name, entry in entries().items()
        if not only or any(fnmatchcase(name, glob) for glob in only)
        for dtype in dtypes_of(entry, every)
    ]


if __name__ == "__main__":
    main()

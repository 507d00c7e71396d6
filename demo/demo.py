"""Shows the whole chain on one vendor: conformance cases, then three models trained on `dipu` and on the CPU."""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEPS = 50


def main() -> int:
    """Runs the demo; the exit code: 0 all good, 1 something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vendor", default="droplet", help="a folder of vendors/ (droplet)")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"training steps of each model ({STEPS})")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes of the conformance suite")
    options = parser.parse_args()
    if not _conformance(options.vendor, options.jobs):
        return 1
    return _training(options.steps)


def _conformance(vendor: str, jobs: int) -> bool:
    """Whether the vendor's library passes its cases; they run again only if the library or the plan changed."""
    library = ROOT / "build" / vendor / "lib" / "libdiopi_impl.so"
    plan = ROOT / "generated" / vendor / "conformance" / "plan.json"
    record = ROOT / "build" / vendor / "conformance.json"
    digest = hashlib.sha256(library.read_bytes() + plan.read_bytes()).hexdigest()
    try:
        if json.loads(record.read_text(encoding="utf-8")) == {"passed": digest}:
            print("conformance: every case passed (library and plan are unchanged since)")
            return True
    except (OSError, ValueError):
        pass
    command = [sys.executable, "-m", "diopi_conformance", "run", "--vendor", vendor, "--jobs", str(jobs)]
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode != 0:
        return False
    record.write_text(json.dumps({"passed": digest}) + "\n", encoding="utf-8")
    return True


def _training(steps: int) -> int:
    """Trains the three models on both devices and prints the table; the exit code."""
    import torch
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table

    from models import TASKS
    from train import operators_of_step, relative_difference, train

    if not hasattr(torch, "dipu") or not torch.dipu.is_available():
        print("torch has no device 'dipu'; run 'make build' first", file=sys.stderr)
        return 1
    console = Console()
    table = Table(title=f"{steps} steps of each model, float32, the same seed on both devices")
    for column in ("model", "loss on dipu", "loss on cpu", "difference", "native", "fallback", "step dipu", "step cpu"):
        table.add_column(column, justify="left" if column == "model" else "right")
    good = True
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        for task in TASKS:
            bar = progress.add_task(task.name, total=2 * steps)
            torch.dipu.fallback.reset()
            dipu = train(task, "dipu", steps, lambda bar=bar: progress.advance(bar))
            operators = operators_of_step(task, "dipu")
            fallen = {fallback.operator for fallback in torch.dipu.fallback.report()}
            cpu = train(task, "cpu", steps, lambda bar=bar: progress.advance(bar))
            early = relative_difference(dipu.losses[min(1, steps - 1)], cpu.losses[min(1, steps - 1)])
            late = relative_difference(dipu.losses[-1], cpu.losses[-1])
            good = good and early <= 1e-5 and late <= 1e-3 and not fallen
            table.add_row(
                task.name,
                f"{dipu.losses[-1]:.6f}",
                f"{cpu.losses[-1]:.6f}",
                f"{late:.1e}",
                str(len(operators) - len(fallen)),
                str(len(fallen)),
                f"{dipu.step_ms:.1f} ms",
                f"{cpu.step_ms:.1f} ms",
            )
    console.print(table)
    if not good:
        console.print("[red]a loss differs (1e-5 after 2 steps, 1e-3 at the end), or an operator fell back[/red]")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

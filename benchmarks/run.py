"""Runs the benchmarks, each beside a named peer in the same run; prints one table and keeps results/<name>.json."""

import argparse
import importlib
import sys
import time
from pathlib import Path

from figures import Report, facts, save
from rich.console import Console
from rich.table import Table
from setting import HERE, Setting

NAMES = (
    "wrapper_overhead",
    "adaptor_overhead",
    "kernels",
    "training",
    "compiled",
    "compile_time",
    "generator",
    "compile_units",
    "conformance_run",
    "op_tools_overhead",
    "operators",
)
ON_A_GPU = ("operators", "bandwidth", "compiled", "compiled_high", "fused_calls")  # of the vendor cuda
KNOWN = (*NAMES, "bandwidth", "compiled_high", "fused_calls", "collectives")  # the last of two GPUs


def main() -> int:
    """Runs what was asked for; the exit code is 1 if a benchmark could not run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"of {', '.join(KNOWN)}; all that suit the vendor if none"
    )
    parser.add_argument("--vendor", default="droplet", help="a folder of vendors/ (droplet)")
    parser.add_argument("--build", type=Path, default=HERE.parent / "build" / "droplet", help="its build folder")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="where the figures are kept")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in KNOWN]
    if unknown:
        parser.error(f"there is no benchmark '{unknown[0]}'; choose of {', '.join(KNOWN)}")
    setting = Setting(options.vendor, options.build)
    if not (setting.libraries / "libdiopi_impl.so").exists():
        print(f"{options.build} holds no libraries; run 'make build IMPL={options.vendor}' first", file=sys.stderr)
        return 1
    known = facts(setting.compiler, setting.vendor)
    console = Console(width=None if sys.stdout.isatty() else 140)
    for name in options.names or (ON_A_GPU if options.vendor == "cuda" else NAMES):
        start = time.monotonic()
        report: Report = importlib.import_module(name).measure(setting)
        save(report, known, options.results)
        _print(console, report, time.monotonic() - start)
    return 0


def _print(console: Console, report: Report, seconds: float) -> None:
    table = Table(title=f"{report.benchmark}: {report.about} ({seconds:.0f} s)", title_justify="left")
    for column in ("what", "median", "quartiles", "target"):
        table.add_column(column, justify="left" if column in ("what", "target") else "right")
    for each in report.figures:
        table.add_row(each.name, f"{each.median:g} {each.unit}", f"{each.low:g} to {each.high:g}", "")
    table.add_section()
    for comparison in report.comparisons:
        table.add_row(comparison.name, f"{comparison.value:g} {comparison.unit}", "", comparison.target)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())

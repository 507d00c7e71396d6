"""Builds the wheels: diopigen, torch_dipu for each release of torch that is named, and vendors' packages.

    python tools/wheels.py                         all, torch_dipu for this environment's torch; into dist
    python tools/wheels.py --torch 2.12 2.13       for these, in environments of their own in build/matrix

The wheels of torch_dipu have one name whatever the release, so each release has a folder, e.g. dist/torch-2.13.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "wheels"
RELEASES = tuple(sorted(path.stem.removeprefix("torch-") for path in (ROOT / "constraints").glob("torch-*.txt")))
VENDORS = tuple(
    sorted(path.parent.name.removeprefix("torch_dipu_") for path in ROOT.glob("python/torch_dipu_*/pyproject.toml"))
)
_SHOWN = 30  # lines of the log of a build that failed


@dataclass(frozen=True, slots=True)
class Wheel:
    """A package of this checkout, the Python that builds it and the folder for it."""

    name: str  # in messages and of the log, e.g. "torch_dipu-2.13"
    source: Path
    python: Path
    folder: Path


def main() -> int:
    """The exit code is 1 when a wheel failed, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the wheels go (dist)")
    parser.add_argument("--torch", nargs="+", default=[], metavar="RELEASE", choices=RELEASES, help=", ".join(RELEASES))
    parser.add_argument("--vendor", nargs="*", default=VENDORS, choices=VENDORS, help=f"of {', '.join(VENDORS)} (all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilers at a time")
    options = parser.parse_args()
    try:
        wheels = list(_wheels(options))
        for number, wheel in enumerate(wheels, start=1):
            print(f"{number}/{len(wheels)} {wheel.name}", flush=True)
            if not _build(wheel, options.jobs):
                return 1
    except KeyboardInterrupt:
        print("interrupted; the next call goes on from here", file=sys.stderr)
        return 130
    return 0


def _wheels(options: argparse.Namespace) -> Iterator[Wheel]:
    here, out = Path(sys.executable), options.out.absolute()
    yield Wheel("diopigen", ROOT, here, out)
    if not options.torch:
        release = ".".join(metadata.version("torch").split(".")[:2])
        yield Wheel(f"torch_dipu-{release}", ROOT / "python" / "torch_dipu", here, out / f"torch-{release}")
    for release in options.torch:
        python = ROOT / "build" / "matrix" / f"torch-{release}" / "bin" / "python"
        yield Wheel(f"torch_dipu-{release}", ROOT / "python" / "torch_dipu", python, out / f"torch-{release}")
    for vendor in options.vendor:
        yield Wheel(f"torch_dipu_{vendor}", ROOT / "python" / f"torch_dipu_{vendor}", here, out)


def _build(wheel: Wheel, jobs: int) -> bool:
    """Builds one, with what is said in a log; prints where it is and how large, or the end of the log."""
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs)}
    environment["PATH"] = f"{wheel.python.parent}{os.pathsep}{environment['PATH']}"
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--verbose", "--wheel-dir", str(wheel.folder)]
    commands = [[str(wheel.python), "-m", "pip", "wheel", *options, str(wheel.source)]]
    if wheel.python != Path(sys.executable):
        release = wheel.name.partition("-")[2]
        commands.insert(0, ["make", "setup", f"VENV=build/matrix/torch-{release}", f"TORCH={release}"])
    log = LOGS / f"{wheel.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with log.open("w", encoding="utf-8") as file:
        for command in commands:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT, check=False
            )
            if done.returncode != 0:
                break
    if done.returncode != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        print("\n".join(lines[-_SHOWN:]), file=sys.stderr)
        print(f"error: {wheel.name} failed; all of it: {log}", file=sys.stderr)
        return False
    made = max(wheel.folder.glob(f"{wheel.name.partition('-')[0]}-*.whl"), key=lambda path: path.stat().st_mtime)
    size, minutes = made.stat().st_size / 1e6, (time.monotonic() - start) / 60
    print(f"    {wheel.folder / made.name}: {size:.1f} MB in {minutes:.1f} min", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())

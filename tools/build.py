"""Generates and builds one vendor: `diopigen all`, then CMake; a second call with nothing changed takes a moment."""

import argparse
import os
import shutil
import sys
from importlib import metadata
from pathlib import Path

from builds.steps import Build, run

ROOT = Path(__file__).resolve().parent.parent
_MANY_JOBS = 8


def main() -> int:
    """Builds into --build; the exit code is that of the first step that failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vendor", default="droplet", help="a folder of vendors/ (droplet)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "droplet", help="the build folder")
    parser.add_argument("--convert-config", type=Path, help="what the chip lacks, instead of convert_config.yaml")
    parser.add_argument("--profile", type=Path, action="append", default=[], help="also lib/<name> for this file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilers at a time")
    parser.add_argument("--no-torch", action="store_true", help="leave the PyTorch backend out")
    parser.add_argument("--define", action="append", default=[], metavar="NAME=VALUE", help="a variable for CMake")
    parser.add_argument(
        "--sanitize",
        nargs="?",
        choices=("address", "thread"),
        const="address",
        default="OFF",
        help="with AddressSanitizer and UBSan (address, where nothing is named), or ThreadSanitizer (thread)",
    )
    options = parser.parse_args()
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    builds = _builds(options, environment)
    return run(builds, ROOT, environment, at_once=len(builds) - 1)


def _builds(options: argparse.Namespace, environment: dict[str, str]) -> list[Build]:
    """The builds, of which all but the last may run at the same time."""
    generate = [sys.executable, "-m", "diopigen", "all", "--vendor", options.vendor]
    settings = [f"-DDIOPI_SANITIZE={options.sanitize}", f"-DPython_EXECUTABLE={sys.executable}"]
    settings += [f"-D{variable}" for variable in options.define]
    if shutil.which("ninja", path=environment["PATH"]):
        settings += ["-G", "Ninja"]
    vendor = [f"-DDIOPI_VENDOR={options.vendor}"]
    config = options.convert_config
    if config is not None:  # CMake takes the same folder
        generate += ["--convert-config", str(config.absolute()), "--out", str(options.build.absolute() / "generated")]
    vendor += [f"-DDIOPI_CONVERT_CONFIG={'' if config is None else config.absolute()}"]
    vendor += [f"-DDIOPI_PROFILES={';'.join(str(path.absolute()) for path in options.profile)}"]
    if options.no_torch:
        without = _configure(options.build, [*vendor, "-DDIOPI_TORCH=OFF", *settings])
        return [Build(options.build, [generate, without], options.jobs)]
    backend = _backend_folder(options.sanitize)
    alone = _configure(backend, ["-DDIOPI_TORCH=ONLY", *settings])
    beside = _configure(options.build, [*vendor, f"-DDIOPI_TORCH={backend}", *settings])
    if options.jobs < _MANY_JOBS or (backend / "lib" / "libtorch_dipu.so").exists():
        return [Build(backend, [generate, alone], options.jobs), Build(options.build, [beside], options.jobs)]
    # The backend waits for its precompiled header and has too few units for many processors. The operators are compiled
    # beside it, by a few compilers more than there are processors (many more take each other's caches), and take it
    # afterwards.
    without = _configure(options.build, [*vendor, "-DDIOPI_TORCH=OFF", *settings])
    return [
        Build(backend, [alone], options.jobs // 2),
        Build(options.build, [generate, without], options.jobs * 5 // 8),
        Build(options.build, [beside], options.jobs, is_recorded=False),
    ]


def _backend_folder(sanitize: str) -> Path:
    """Where the PyTorch backend is built, once for all vendors; e.g. build/torch_dipu-2.13.0."""
    release = metadata.version("torch").partition("+")[0]
    return ROOT / "build" / f"torch_dipu-{release}{'' if sanitize == 'OFF' else f'-{sanitize}'}"


def _configure(folder: Path, settings: list[str]) -> list[str]:
    return ["cmake", "-S", ".", "-B", str(folder), *settings]


if __name__ == "__main__":
    sys.exit(main())

"""Generates and builds one vendor: `diopigen all`, then CMake; a second call with nothing changed takes a moment."""

import argparse
import os
import shutil
import sys
from pathlib import Path

from builds.steps import Build, run

ROOT = Path(__file__).resolve().parent.parent


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
    return run([Build(options.build, _preparation(options, environment), options.jobs)], ROOT, environment)


def _preparation(options: argparse.Namespace, environment: dict[str, str]) -> list[list[str]]:
    generate = [sys.executable, "-m", "diopigen", "all", "--vendor", options.vendor]
    configure = ["cmake", "-S", ".", "-B", str(options.build), f"-DDIOPI_VENDOR={options.vendor}"]
    config = options.convert_config
    if config is not None:  # CMake takes the same folder
        generate += ["--convert-config", str(config.absolute()), "--out", str(options.build.absolute() / "generated")]
    configure += [f"-DDIOPI_CONVERT_CONFIG={'' if config is None else config.absolute()}"]
    configure += [f"-DDIOPI_PROFILES={';'.join(str(path.absolute()) for path in options.profile)}"]
    configure += [f"-DDIOPI_TORCH={'OFF' if options.no_torch else 'ON'}"]
    configure += [f"-DDIOPI_SANITIZE={options.sanitize}"]
    configure += [f"-DPython_EXECUTABLE={sys.executable}", *(f"-D{variable}" for variable in options.define)]
    if shutil.which("ninja", path=environment["PATH"]):
        configure += ["-G", "Ninja"]
    return [generate, configure]


if __name__ == "__main__":
    sys.exit(main())

"""Tests the generator with the oldest packages that pyproject.toml admits, and with the newest: each in an environment.

`python -m tools.admitted_versions` needs a registry of packages. torch, and what it needs, is that of this Python.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from tools.constraints import ROOT, required_by, resolved

RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}
_UV = str(Path(sys.executable).with_name("uv"))


def passes(which: str, folder: Path, more: Sequence[str]) -> bool:
    """Do the tests pass in an environment of the oldest or newest packages that is made in `folder`?"""
    listed = folder / "packages.txt"
    listed.write_text(resolved([], "--resolution", RESOLUTIONS[which], "--no-annotate"), encoding="utf-8")
    place = folder / "environment"
    python = place / "bin" / "python"
    install = [_UV, "pip", "install", "--quiet", "--python", str(python)]
    for command in (
        [_UV, "venv", "--quiet", "--python", sys.executable, str(place)],
        [*install, "-r", str(listed)],
        [*install, "--no-deps", "--no-build-isolation", "-e", str(ROOT)],
    ):
        subprocess.run(command, check=True, cwd=ROOT)
    _lend_torch(next((place / "lib").glob("python*/site-packages")))
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    tests = [str(python), "-m", "pytest", "tests/unit", "tests/golden", "--tier", "quick", *more]
    return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode == 0


def _lend_torch(packages: Path) -> None:
    lent = ["torch"]
    for name in lent:
        for file in metadata.files(name) or ():
            place = packages / file.parts[0]
            if file.parts[0] not in ("..", "__pycache__") and not place.exists():
                place.symlink_to(str(metadata.distribution(name).locate_file(file.parts[0])))
        lent += [other for other in required_by(name) if other not in lent]


def main() -> int:
    """The exit code is 1 if a test fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=tuple(RESOLUTIONS), help="only the oldest, or the newest (both)")
    parser.add_argument("more", nargs="*", help="after --: options for pytest")
    options = parser.parse_args()
    failed = []
    for which in RESOLUTIONS if options.only is None else (options.only,):
        print(f"== the {which} versions", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            if not passes(which, Path(folder), options.more):
                failed.append(which)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

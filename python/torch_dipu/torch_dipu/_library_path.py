"""Where the built libraries lie: beside this package when it is installed, in the build folder in a checkout."""

import os
from pathlib import Path

_BACKEND = "libtorch_dipu.so"  # the same for every vendor
_VENDOR = "libdiopi_impl.so"


def library_dir() -> Path:
    """The folder with libtorch_dipu.so, _C and libdiopi_impl.so.

    ``DIPU_LIBRARY_DIR`` names it outright; ``DIPU_VENDOR`` picks one of a checkout's build folders, of which the one
    built last is taken otherwise. Raises ImportError with one sentence when there is none.
    """
    named = os.environ.get("DIPU_LIBRARY_DIR")
    if named:
        return _existing(Path(named), f"DIPU_LIBRARY_DIR is {named}")
    package = Path(__file__).resolve().parent
    if (package / _BACKEND).exists():
        return package
    root = package.parents[2]
    builds = root / "build"
    vendor = os.environ.get("DIPU_VENDOR")
    if vendor:
        return _existing(builds / vendor / "lib", f"DIPU_VENDOR is {vendor}")
    # A folder that is not named after a vendor is a build of another kind, e.g. one with sanitizers.
    vendors = {folder.name for folder in (root / "vendors").glob("*") if folder.is_dir()}
    found = (path for path in builds.glob(f"*/lib/{_VENDOR}") if path.parts[-3] in vendors)
    built = sorted(found, key=lambda path: path.stat().st_mtime)
    built = [path for path in built if (path.parent / _BACKEND).exists()]
    if not built:
        raise ImportError(f"torch_dipu is not built: there is no {_BACKEND} under {builds}; run `make build`")
    return built[-1].parent


def _existing(folder: Path, reason: str) -> Path:
    if not (folder / _BACKEND).exists():
        raise ImportError(f"{reason}, but there is no {_BACKEND} in {folder}; run `make build`")
    return folder

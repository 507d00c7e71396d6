"""Where the built libraries lie: beside this package when it is installed, in the build folder in a checkout.

An installed vendor is a package of its own, which an entry point of the group `torch_dipu.vendors` names.
"""

import os
from importlib import metadata, util
from pathlib import Path

_BACKEND = "libtorch_dipu.so"  # the same for every vendor
_VENDOR = "libdiopi_impl.so"
_VENDORS = "torch_dipu.vendors"  # the group; e.g. droplet = "torch_dipu_droplet"


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


def vendor_library(folder: Path) -> Path:
    """The vendor's library for the backend in ``folder``; what it names need not be there.

    ``DIPU_VENDOR_LIBRARY`` names it outright. Otherwise it is the one beside the backend, or that of the installed
    vendor, of which ``DIPU_VENDOR`` chooses one. Raises ImportError with one sentence where that names none.
    """
    named = os.environ.get("DIPU_VENDOR_LIBRARY")
    beside = folder / _VENDOR
    if named or beside.exists():
        return Path(named) if named else beside
    packages = {found.name: found.value for found in metadata.entry_points(group=_VENDORS)}
    if not packages:
        return beside
    vendor = os.environ.get("DIPU_VENDOR") or (next(iter(packages)) if len(packages) == 1 else "")
    if vendor not in packages:
        known = ", ".join(sorted(packages))
        reason = f"there is no vendor '{vendor}'" if vendor else "several vendors are installed"
        raise ImportError(f"{reason}: choose one of {known} with DIPU_VENDOR")
    package = util.find_spec(packages[vendor])
    if package is None or package.origin is None:
        raise ImportError(f"the package {packages[vendor]} of the vendor '{vendor}' is not there; install it again")
    return Path(package.origin).parent / _VENDOR

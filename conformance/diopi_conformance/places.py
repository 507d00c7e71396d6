"""Where a vendor's plan, libraries and known failures lie: in a checkout, in its own repository, or in its package."""

from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from diopigen.project import vendor_name

BACKEND = "libtorch_dipu.so"
_PLAN = Path("conformance") / "plan.json"
_PACKAGES = "torch_dipu.vendors"  # the entry points of installed vendors


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The files of one vendor, which need not be there, and the command that makes the libraries."""

    plan: Path
    libraries: Path
    known: Path
    build: str


def places_of(vendor: str) -> Places:
    """Seen from the working directory; an installed package serves where nothing is generated here."""
    plan = Path("generated") / vendor / _PLAN
    if own_vendor() == vendor:
        known, build = Path("known_failures.yaml"), "cmake -S . -B build && cmake --build build"
        return Places(plan=plan, libraries=Path("build") / "lib", known=known, build=build)
    package = None if plan.exists() else _package(vendor)
    if package is not None:
        build = f"pip install --force-reinstall torch_dipu_{vendor}"
        return Places(plan=package / _PLAN, libraries=package, known=package / "known_failures.yaml", build=build)
    return Places(
        plan=plan,
        libraries=Path("build") / vendor / "lib",
        known=Path("vendors") / vendor / "known_failures.yaml",
        build=f"make build IMPL={vendor}",
    )


def own_vendor() -> str | None:
    """The vendor whose own repository the working directory is; None elsewhere."""
    here = Path.cwd()
    return vendor_name(here) if (here / "vendor.yaml").is_file() and here.parent.name != "vendors" else None


def installed_backend() -> Path | None:
    """The folder of the installed package torch_dipu, where it has the PyTorch backend."""
    found = _folder("torch_dipu")
    return found if found is not None and (found / BACKEND).exists() else None


def _package(vendor: str) -> Path | None:
    named = next((point.value for point in metadata.entry_points(group=_PACKAGES, name=vendor)), None)
    return None if named is None else _folder(named)


def _folder(package: str) -> Path | None:
    found = util.find_spec(package)
    return None if found is None or found.origin is None else Path(found.origin).parent

"""Where things lie: the project's root, its schemas, vendors, templates and caches."""

import os
from dataclasses import dataclass
from pathlib import Path

from diopigen.diagnostics import Diagnostics
from diopigen.source.yaml.nodes import Leaf, Mapping, read_yaml

_SHARE = "share"  # what an installed package brings lies there


class NoProject(Exception):
    """There is no project where the command was started; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The folders of one checkout, or of a vendor's own repository beside an installed package; all are absolute."""

    root: Path  # where generated files go, and what messages name files from
    package: Path | None = None  # what an installed package brings: schemas, templates, runtime_cpp, vendors
    own: tuple[str, Path] | None = None  # a vendor that is not one of vendors/, and its folder
    staged_headers: Path | None = None  # the contract's headers of this run, before they are written
    more_schemas: tuple[Path, ...] = ()  # folders of a vendor's own operators, beside those that its vendor.yaml names
    convert_config: Path | None = None  # read instead of a vendor's own; e.g. /src/vendors/droplet/profiles/lossy.yaml

    @property
    def home(self) -> Path:
        """The folder of schemas, templates, runtime_cpp and vendors: the checkout, or what the package brings."""
        return self.package or self.root

    @property
    def schemas(self) -> Path:
        return self.home / "schemas"

    @property
    def vendors(self) -> Path:
        return self.home / "vendors"

    @property
    def inside(self) -> bool:
        """Whether this is a checkout, whose headers and editors' schema are kept with its sources."""
        return self.package is None

    def vendor_folder(self, name: str) -> Path:
        """Where the sources of a vendor are."""
        return self.own[1] if self.own is not None and self.own[0] == name else self.vendors / name

    def config(self, vendor: str) -> Path:
        """What `vendor` lacks: its convert_config.yaml, or the file that this run takes instead."""
        return self.convert_config or self.vendor_folder(vendor) / "convert_config.yaml"

    @property
    def templates(self) -> Path:
        return self.home / "templates"

    @property
    def runtime(self) -> Path:
        return self.home / "runtime_cpp"

    @property
    def generated(self) -> Path:
        return self.root / "generated"

    @property
    def headers(self) -> Path:
        """The folder that `#include <diopi/...>` finds the contract's headers in."""
        return self.staged_headers or self.generated / "include"

    def declarations(self, vendor: str) -> Path:
        """The folder that sources of `vendor` find "impl_functions.hpp" in while they are searched."""
        return self.headers / "declarations" / vendor

    @property
    def cache(self) -> Path:
        """Parsed ATen schemas and vendor sources; safe to delete at any time."""
        return Path(os.environ.get("DIOPIGEN_CACHE_DIR") or self.root / ".cache" / "diopigen")

    def shown(self, path: Path) -> str:
        """`path` as messages show it: relative to the root where it lies inside."""
        try:
            return path.resolve().relative_to(self.root).as_posix()
        except ValueError:
            return path.as_posix()

    def vendor_names(self) -> tuple[str, ...]:
        """Every folder of vendors/ that has a vendor.yaml, and the vendor's own, in alphabetical order."""
        own = set() if self.own is None else {self.own[0]}
        return tuple(sorted(own | {p.parent.name for p in self.vendors.glob("[!.]*/vendor.yaml")}))


def find_project(start: Path) -> Project:
    """The project that holds `start`: the nearest folder upwards that is a checkout, or a vendor's own repository.

    The latter has a vendor.yaml; its schemas are those of the installed package. Raises NoProject if there is neither.
    """
    try:
        str(start.resolve()).encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(start.resolve()).decode("utf-8", "backslashreplace")
        raise NoProject(f"the name of {shown} is not UTF-8, which compilers need; move the checkout") from error
    for folder in (start.resolve(), *start.resolve().parents):
        if _is_home(folder):
            return Project(root=folder)
        if (folder / "vendor.yaml").is_file() and not (
            folder.parent.name == "vendors" and _is_home(folder.parent.parent)
        ):
            return Project(root=folder, package=installed(), own=(vendor_name(folder), folder))
    raise NoProject(
        f"there is no diopigen project at {start} or above it; change into the checkout or a vendor's folder, name it "
        "with --project, or start one with 'diopigen new-vendor NAME --dir FOLDER'"
    )


def vendor_name(folder: Path) -> str:
    """What its vendor.yaml says, or the folder's own name."""
    said = read_yaml(folder / "vendor.yaml", "vendor.yaml", Diagnostics())
    name = said.get("name") if isinstance(said, Mapping) else None
    return name.text if isinstance(name, Leaf) and name.text else folder.name


def contract() -> Project:
    """The contract of this package, wherever the program is started; of an installed one the user has the cache.

    Raises NoProject where the package is damaged.
    """
    home = installed()
    return Project(root=Path.home(), package=home) if home.name == _SHARE else Project(root=home)


def installed() -> Path:
    """What the package brings: schemas, templates, run time, vendors. Raises NoProject where it is damaged."""
    package = Path(__file__).resolve().parent
    for folder in (package / _SHARE, package.parent.parent):  # installed, or in a checkout
        if _is_home(folder):
            return folder
    raise NoProject(f"the package in {package} lacks its schemas; install diopigen again")


def _is_home(folder: Path) -> bool:
    return (folder / "schemas" / "ops").is_dir() and (folder / "vendors").is_dir()

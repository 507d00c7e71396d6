"""Where things lie: the project's root, its schemas, vendors, templates and caches."""

import os
from dataclasses import dataclass
from pathlib import Path


class NoProject(Exception):
    """There is no project where the command was started; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The folders of one checkout; every path is absolute."""

    root: Path
    staged_headers: Path | None = None  # the contract's headers of this run, before they are written
    convert_config: Path | None = None  # read instead of a vendor's own; e.g. /src/vendors/droplet/profiles/lossy.yaml

    @property
    def schemas(self) -> Path:
        return self.root / "schemas"

    @property
    def vendors(self) -> Path:
        return self.root / "vendors"

    def config(self, vendor: str) -> Path:
        """What `vendor` lacks: its convert_config.yaml, or the file that this run takes instead."""
        return self.convert_config or self.vendors / vendor / "convert_config.yaml"

    @property
    def templates(self) -> Path:
        return self.root / "templates"

    @property
    def runtime(self) -> Path:
        return self.root / "runtime_cpp"

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
        """Every folder of vendors/ that has a vendor.yaml, in alphabetical order."""
        return tuple(sorted(p.parent.name for p in self.vendors.glob("[!.]*/vendor.yaml")))


def find_project(start: Path) -> Project:
    """The project that holds `start`: the nearest folder upwards with `schemas/ops` and `vendors`.

    Raises NoProject if there is none.
    """
    try:
        str(start.resolve()).encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(start.resolve()).decode("utf-8", "backslashreplace")
        raise NoProject(f"the name of {shown} is not UTF-8, which compilers need; move the checkout") from error
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "schemas" / "ops").is_dir() and (folder / "vendors").is_dir():
            return Project(root=folder)
    raise NoProject(
        f"there is no diopigen project at {start} or above it; " "change into the checkout or name it with --project"
    )

"""Where outputs go: the contract's files, PyTorch's wrappers and one vendor's files each have a root and a manifest."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from diopigen.emit.fresh import installed_version
from diopigen.project import Project
from diopigen.targets.editor import FILES
from diopigen.targets.output import Output

MANIFEST = "MANIFEST.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """One root of outputs. `folders` maps an output's first folder or name to where it lies under the root."""

    root: Path
    manifest: Path
    folders: tuple[tuple[str, str], ...] = ()  # e.g. (("include/", "generated/include/"),)

    def placed(self, outputs: Iterable[Output]) -> list[Output]:
        """`outputs` with their paths under the root."""
        return [replace(output, path=self.path(output.path)) for output in outputs]

    def path(self, path: str) -> str:
        for prefix, target in self.folders:
            if path.startswith(prefix):
                return target + path.removeprefix(prefix)
        return path


_CHECKED_IN = (
    ("include/", "generated/include/"),
    ("docs/", "generated/docs/"),
    *((name, f"schemas/{name}") for name in FILES),
    ("vocabulary.json", "schemas/vocabulary.json"),
)


def contract_place(project: Project, out: Path | None) -> Destination:
    """Where headers, documentation and the editors' schema go: into the checkout, or all under `out` or generated/."""
    if out is not None or not project.inside:
        root = out or project.generated
        return Destination(root=root, manifest=root / MANIFEST)
    return Destination(root=project.root, manifest=project.generated / MANIFEST, folders=_CHECKED_IN)


def op_schema(project: Project, path: Path) -> str:
    """Where a file of entries finds the editors' schema, e.g. "../generated/op.schema.json"."""
    from diopigen.source.format.op_style import OF_CONTRACT  # with pydantic, which most runs need not load

    if not path.resolve().is_relative_to(project.root):
        return OF_CONTRACT
    folder = project.schemas if project.inside else project.generated
    return Path(os.path.relpath(folder / "op.schema.json", path.resolve().parent)).as_posix()


def wrappers_place(project: Project, out: Path | None) -> Destination:
    """Where the wrappers of the installed torch's operators go, which are the same for every vendor.

    e.g. generated/torch_dipu-2.13.0, or `out`/torch_dipu-2.13.0
    """
    version = (installed_version("torch") or "missing").partition("+")[0]
    root = (out or project.generated) / f"torch_dipu-{version}"
    return Destination(root=root, manifest=root / MANIFEST)


def vendor_place(project: Project, out: Path | None, vendor: str) -> Destination:
    """Where the files of one vendor go: generated/<vendor>, or `out`/<vendor>."""
    root = (out or project.generated) / vendor
    return Destination(root=root, manifest=root / MANIFEST)

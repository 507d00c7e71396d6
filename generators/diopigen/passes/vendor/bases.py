"""Reads vendor.yaml and what `base` leads to: in which order other vendors' functions fill the gaps of one vendor."""

from dataclasses import dataclass, field
from pathlib import Path

from diopigen.diagnostics import Diagnostics, Span
from diopigen.project import Project
from diopigen.source.vendor.surface import VendorSurface
from diopigen.source.yaml.nodes import Leaf, Mapping, Node, Sequence, plain, read_yaml
from diopigen.source.yaml.validate import fits
from diopigen.text import suggestion

PORTABLE = "portable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder of vendors/ and what its vendor.yaml says."""

    name: str  # e.g. "droplet"
    path: Path
    surface: VendorSurface
    node: Node

    def at(self, key: str, position: int | None = None) -> Span:
        """Where the value of `key` stands, or the entry at `position` of its list."""
        value = self.node.get(key) if isinstance(self.node, Mapping) else None
        if isinstance(value, Sequence) and position is not None and position < len(value.items):
            value = value.items[position]
        return value.span if isinstance(value, Leaf | Sequence) else self.node.span


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseFolder:
    """A base that is a folder of vendors/."""

    folder: Folder
    order: tuple[str, ...]  # e.g. ("ascend", "portable"): its own bases
    span: Span  # the name in `base` of the deriving vendor that leads to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Bases:
    order: tuple[str, ...]  # e.g. ("ascend", "portable")
    folders: tuple[BaseFolder, ...]  # of those that are no `portable`, in that order


def read_folder(project: Project, name: str, diagnostics: Diagnostics) -> Folder | None:
    """The folder vendors/<name>, or None after diagnostics."""
    path = project.vendor_folder(name) / "vendor.yaml"
    node = read_yaml(path, project.shown(path), diagnostics)
    if node is None or not fits(node, VendorSurface, "vendor.yaml", diagnostics):
        return None
    folder = Folder(name=name, path=path.parent, surface=VendorSurface.model_validate(plain(node)), node=node)
    if folder.surface.name not in (None, name):
        message = f"the vendor '{name}' calls itself '{folder.surface.name}'"
        diagnostics.error("bad-name", message, folder.at("name"), "vendors of a checkout have their folder's name")
    return folder


def read_bases(project: Project, folder: Folder, diagnostics: Diagnostics) -> Bases:
    """Each base followed by its own bases; what several bases share comes after all of them.

    The vendor's own list decides about the names in it. A base with a mistake of its own is told of at its name.
    """
    reader = _Reader(project=project, root=folder)
    order = reader.order(folder, (), diagnostics)
    found = (reader.found[name] for name in order if name != PORTABLE)
    return Bases(order=order, folders=tuple(found))


def report_broken(base: str, span: Span, found: Diagnostics, diagnostics: Diagnostics) -> None:
    """Says at `span` that `base` has mistakes, which are its own business but for the first."""
    if found.failed:
        first = next(d for d in found.ordered() if d.severity.value == "error")
        diagnostics.error(
            "broken-base",
            f"the base '{base}' has errors",
            span,
            f"run 'diopigen lint --vendor {base}'",
            ((first.message, first.span),),
        )


@dataclass(slots=True, kw_only=True)
class _Reader:
    project: Project
    root: Folder
    found: dict[str, BaseFolder] = field(default_factory=dict)
    circle: tuple[tuple[str, Span], ...] = ()  # e.g. (("b", span), ("a", span)): from the root back to it

    def order(self, folder: Folder, trail: tuple[tuple[str, Span], ...], diagnostics: Diagnostics) -> tuple[str, ...]:
        """The bases of `folder`; `trail` are the names that led to it, with their places."""
        named = folder.surface.base
        found: list[str] = []
        for position, name in enumerate(named):
            step = (*trail, (name, folder.at("base", position)))
            if name in named[:position]:
                diagnostics.error("duplicate-base", f"'{name}' is named twice", step[-1][1], "remove one of them")
            elif name == PORTABLE:
                found.append(name)
            elif self._is_base(folder, step, diagnostics):
                inner = self._inner(name, step, diagnostics)
                found += [] if inner is None else [name, *(other for other in inner if other not in named)]
        return tuple(name for position, name in enumerate(found) if name not in found[position + 1 :])

    def _is_base(self, folder: Folder, step: tuple[tuple[str, Span], ...], diagnostics: Diagnostics) -> bool:
        name, span = step[-1]
        if name == self.root.name:
            self.circle = step
            if len(step) == 1:
                self._report_circle(diagnostics)
            return False
        if name in (earlier for earlier, _ in step[:-1]):
            diagnostics.error("circular-base", f"'{name}' is a base of itself", span, "remove it")
            return False
        known = self.project.vendor_names()
        if name in known:
            return True
        others = [PORTABLE, *(other for other in known if other != folder.name)]
        hint = suggestion(name, others) or f"the bases are {', '.join(others)}"
        diagnostics.error("unknown-base", f"there is no base '{name}'", span, hint)
        return False

    def _inner(self, name: str, step: tuple[tuple[str, Span], ...], diagnostics: Diagnostics) -> tuple[str, ...] | None:
        """The bases of the base `name`; None if it cannot be read."""
        mistakes = Diagnostics()
        folder = read_folder(self.project, name, mistakes)
        order = () if folder is None else self.order(folder, step, mistakes)
        if len(step) == 1 and self.circle:
            self._report_circle(diagnostics)
        report_broken(name, step[-1][1], mistakes, diagnostics)
        if folder is None:
            return None
        self.found.setdefault(name, BaseFolder(folder=folder, order=order, span=step[0][1]))
        return order

    def _report_circle(self, diagnostics: Diagnostics) -> None:
        names = " -> ".join((self.root.name, *(name for name, _ in self.circle)))
        diagnostics.error(
            "circular-base",
            f"'{self.root.name}' is a base of itself: {names}",
            self.circle[0][1],
            "remove one of the names",
            tuple((f"'{name}' is named here", span) for name, span in self.circle[1:]),
        )
        self.circle = ()

"""The options that say which project and vendor a command is about, and how they are found."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from diopigen.project import NoProject, Project, find_project, vendor_name
from diopigen.verbosity import detail


@dataclass(slots=True, kw_only=True)
class Selection:
    """Where the options say that the project and a vendor's own folder are; the root context's object."""

    folder: Path | None
    vendor_dir: Path | None
    schemas: tuple[Path, ...] = ()  # of operators of the vendor's own


def selected_project(context: click.Context, convert_config: Path | None = None) -> Project:
    """The project of a command. Raises click.UsageError where there is none."""
    project = _selected(context)
    detail(
        f"reads {project.home}" if project.own is None else f"reads {project.home}, and the vendor's {project.own[1]}"
    )
    return project if convert_config is None else replace(project, convert_config=convert_config.resolve())


def checkout(context: click.Context, cure: str = "name one by --project") -> Project:
    """The project of a command that is for checkouts alone. Raises click.UsageError in a vendor's own repository."""
    project = selected_project(context)
    if project.inside:
        return project
    raise click.UsageError(
        f"this is for a checkout of diopigen, and {project.root} is the repository of a vendor; {cure}"
    )


def _selected(context: click.Context) -> Project:
    selection: Selection = context.find_root().obj
    own = None if selection.vendor_dir is None else selection.vendor_dir.resolve()
    if own is not None and not (own / "vendor.yaml").is_file():
        raise click.UsageError(f"there is no vendor.yaml in {own}; 'diopigen new-vendor NAME --dir {own}' makes one")
    try:
        project = _found(selection.folder or Path.cwd(), own)
    except NoProject as error:
        raise click.UsageError(str(error)) from error
    if own is not None and own.parent != project.vendors:
        project = replace(project, own=(vendor_name(own), own))
    return replace(project, more_schemas=selection.schemas)


def _found(folder: Path, own: Path | None) -> Project:
    """The project of a folder; outside of all of them that of the vendor's own folder."""
    try:
        return find_project(folder)
    except NoProject:
        if own is None:
            raise
        return find_project(own)


def _named_vendor(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """A vendor's name, which is that of the folder where a path is given, or that of the folder that one is in."""
    if value is not None and os.sep in value:
        selection: Selection = context.find_root().obj
        selection.vendor_dir = Path(value)
        return vendor_name(selection.vendor_dir.resolve())
    if value is not None or context.resilient_parsing or context.params.get("listed"):  # rules are of no project
        return value
    own = _selected(context).own
    return None if own is None else own[0]


def _needed_vendor(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """As _named_vendor(). Raises click.MissingParameter where there is none."""
    name = _named_vendor(context, parameter, value)
    if name is None and not context.resilient_parsing:
        raise click.MissingParameter(ctx=context, param=parameter)
    return name


def existing_vendor(project: Project, vendor: str) -> str:
    """`vendor`, which the project has. Raises click.UsageError where it does not."""
    known = project.vendor_names()
    if vendor not in known:
        from diopigen.text import suggestion

        near = suggestion(vendor, known)
        raise click.UsageError(
            f"there is no vendor '{vendor}'; {near or ''}{' ' if near else ''}the vendors are {', '.join(known)}"
        )
    return vendor


def require_vendor(context: click.Context, vendor: str | None, convert_config: Path | None) -> None:
    """Raises click.UsageError where a configuration or schemas are given and nothing says whose."""
    if vendor is None and convert_config is not None:
        raise click.UsageError(f"whose chip is {convert_config} about? name it by --vendor")
    selection: Selection = context.find_root().obj
    if vendor is None and selection.schemas:
        raise click.UsageError(f"whose operators are in {selection.schemas[0]}? name the vendor by --vendor")


def _more_schemas(context: click.Context, parameter: click.Parameter, value: tuple[Path, ...]) -> None:
    if value:
        context.find_root().obj.schemas += tuple(path.resolve() for path in value)


def vendor_option(
    text: str, callback: Callable[..., str | None] = _named_vendor
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option ``--vendor`` of a command that also works without one; `text` is its help."""
    return click.option("--vendor", metavar="NAME|FOLDER", callback=callback, help=text)


needed_vendor_option = vendor_option(
    "One of vendors/, or a folder by its path; needless in a vendor's own repository.", _needed_vendor
)
convert_config_option = click.option(
    "--convert-config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="What a variant of the chip lacks: read instead of the vendor's convert_config.yaml.",
)
schemas_option = click.option(
    "--schemas",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    expose_value=False,
    callback=_more_schemas,
    help="Entries of operators of the vendor's own, beside 'schemas' of its vendor.yaml; may be repeated.",
)

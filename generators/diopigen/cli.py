"""The command line: parses options, calls the pipeline, sets the exit code."""

import gc
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import click

from diopigen.command_group import CommandGroup
from diopigen.project import NoProject, Project, contract, installed
from diopigen.selection import (
    Selection,
    checkout,
    convert_config_option,
    existing_vendor,
    needed_vendor_option,
    require_vendor,
    schemas_option,
    selected_project,
    vendor_option,
)
from diopigen.verbosity import verbose

FORMATS = ("human", "json", "github", "sarif")
_VENDOR_TARGETS = {
    "adaptor": "the exported C symbols and the conversions of dtype and layout",
    "kernels": "the elementwise kernels that the schemas give, and the list of sources to compile",
    "calls": "the functions that only call PyTorch, for a vendor that is generated from it",
    "composites": "the functions that are composed of others",
    "compiler": "the table of operators that the compiler back end reads",
    "conformance": "the plan of the conformance suite",
    "torch_operators": "the vendor's own operators, as torch calls them",
}

_BEFORE = ("adaptor", "kernels", "calls", "composites", "compiler", "conformance")  # commands of a release ago


class _Commands(CommandGroup):
    sections: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "Generate": ("all", "header", "aten", "docs"),
        "Check and explain": ("lint", "fmt", "explain", "coverage", "compat", "doctor"),
        "Start something new": ("new", "new-vendor", "import-header", "cmake-dir"),
        "Names of a release ago": _BEFORE,
    }


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--project", "folder", type=click.Path(path_type=Path), help="The checkout; found upwards from here.")
@click.option(
    "--vendor-dir",
    envvar="DIOPI_VENDOR_DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A vendor's folder outside of vendors/; default: found upwards from here.",
)
@click.pass_context
def cli(context: click.Context, folder: Path | None, vendor_dir: Path | None) -> None:
    """Generate everything a chip needs to run PyTorch from one operator schema.

    \b
    Examples:
      diopigen all --vendor droplet          write headers, adaptor, kernels, wrappers, conformance plan
      diopigen all --vendor droplet --check  exit with 1 if a file is not up to date; write nothing
      diopigen all --vendor droplet --convert-config vendors/droplet/profiles/lossy.yaml --out build/lossy
                                             write them for a variant of the chip that lacks more
      diopigen lint --vendor droplet         check the schemas and a vendor's convert_config.yaml
      diopigen explain add --vendor droplet  show what follows from one entry, and from which line
      diopigen coverage --vendor droplet     report what the vendor has, function by function, type by type

    Exit codes: 0 fine, 1 findings, 2 wrong usage or an unfit machine; docs/exit-codes.md has the others.
    """
    context.obj = Selection(folder=folder, vendor_dir=vendor_dir)


def _require_clang() -> None:
    try:
        from diopigen.source.cpp.clang import require_clang

        require_clang()
    except ImportError as error:
        raise click.ClickException(
            f"headers cannot be read ({error}); install clang by 'pip install libclang'"
        ) from error


def _output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change."),
        click.option("--diff", is_flag=True, help="Write nothing; print what would change; exit with 1 if anything."),
        click.option("--out", type=click.Path(path_type=Path), help="Write under this folder, not into the checkout."),
        click.option("--force", is_flag=True, help="Overwrite generated files that were edited by hand."),
        _format_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


_format_option = click.option(
    "--error-format", type=click.Choice(FORMATS), default="human", help="How findings are printed."
)


@cli.command("all")
@needed_vendor_option
@convert_config_option
@schemas_option
@click.option(
    "--only",
    type=click.Choice(tuple(_VENDOR_TARGETS)),
    multiple=True,
    help=f"Write only {'; or '.join(f'{what} ({name})' for name, what in _VENDOR_TARGETS.items())}.",
)
@_output_options
@click.pass_context
def all_command(
    context: click.Context, /, vendor: str, convert_config: Path | None, only: tuple[str, ...], **options: Any
) -> None:
    """Write every output for one vendor.

    \b
    Examples:
      diopigen all --vendor droplet
      diopigen all --vendor droplet --check --diff         what would change; exit with 1 if anything
      diopigen all --vendor droplet --only kernels --out build/kernels-only
      diopigen all                                         in a repository of a vendor
    """
    from diopigen.commands.generate import Request, generate

    project = selected_project(context, convert_config)
    targets, every = only or tuple(_VENDOR_TARGETS), not only
    request = Request(
        contract=every, wrappers=every, targets=targets, vendor=existing_vendor(project, vendor), **options
    )
    sys.exit(generate(project, request))


@cli.command("header")
@_output_options
@click.pass_context
def header_command(context: click.Context, /, **options: Any) -> None:
    """Write the C headers and the schema for editors.

    \b
    Examples:
      diopigen header
      diopigen header --check
    """
    from diopigen.commands.generate import Request, generate

    project = selected_project(context)
    sys.exit(generate(project, Request(contract=True, targets=(), vendor=None, **options)))


@cli.command("aten")
@_output_options
@click.pass_context
def aten_command(context: click.Context, /, **options: Any) -> None:
    """Write the PyTorch operators that call the C functions, and the C headers.

    They are the same for every vendor and fit the installed torch: their folder is named after its version.

    \b
    Examples:
      diopigen aten
      diopigen aten --out build/wrappers --diff
    """
    from diopigen.commands.generate import Request, generate

    request = Request(contract=True, wrappers=True, targets=(), vendor=None, **options)
    sys.exit(generate(selected_project(context), request))


def _add_vendor_command(name: str) -> None:
    """The name of a release ago for `all --only`."""

    @cli.command(name, help=f"Write {_VENDOR_TARGETS[name]}.", deprecated=f"use 'diopigen all --only {name}'")
    @needed_vendor_option
    @convert_config_option
    @schemas_option
    @_output_options
    @click.pass_context
    def command(context: click.Context, /, vendor: str, convert_config: Path | None, **options: Any) -> None:
        context.invoke(all_command, vendor=vendor, convert_config=convert_config, only=(name,), **options)


for _name in _BEFORE:
    _add_vendor_command(_name)


@cli.command("lint")
@vendor_option("Also check this vendor's YAML files and sources.")
@convert_config_option
@schemas_option
@click.option("--list", "listed", is_flag=True, help="List the rules with their numbers and codes; check nothing.")
@click.option("--notes", is_flag=True, help="Show notes, too, as --verbose does: worth knowing, but no faults.")
@_format_option
@click.pass_context
def lint_command(
    context: click.Context,
    vendor: str | None,
    convert_config: Path | None,
    listed: bool,
    notes: bool,
    error_format: str,
) -> None:
    """Check the schemas, and a vendor's files, without writing anything.

    \b
    Examples:
      diopigen lint
      diopigen lint --vendor droplet --notes
      diopigen lint --vendor droplet --error-format sarif > lint.sarif
      diopigen lint --list                                 every rule, with its number
    """
    from diopigen.commands.lint import lint
    from diopigen.commands.rules import list_rules

    if listed:
        sys.exit(list_rules(contract(), error_format))
    require_vendor(context, vendor, convert_config)
    project = selected_project(context, convert_config)
    sys.exit(
        lint(project, None if vendor is None else existing_vendor(project, vendor), error_format, notes or verbose())
    )


@cli.command("explain")
@click.argument("name")
@vendor_option("Also show the implementation and the conversions of this vendor.")
@convert_config_option
@schemas_option
@_format_option
@click.pass_context
def explain_command(
    context: click.Context, name: str, vendor: str | None, convert_config: Path | None, error_format: str
) -> None:
    """Show what follows from one op (add) or function (diopiAddInp), each fact with its line.

    \b
    Examples:
      diopigen explain add --vendor droplet
      diopigen explain diopiAddInpScalar
    """
    from diopigen.commands.explain import explain

    require_vendor(context, vendor, convert_config)
    project = selected_project(context, convert_config)
    sys.exit(explain(project, name, None if vendor is None else existing_vendor(project, vendor), error_format))


@cli.command("fmt")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; print what would change; exit with 1 if anything.")
@_format_option
@click.pass_context
def fmt_command(context: click.Context, files: tuple[Path, ...], check: bool, diff: bool, error_format: str) -> None:
    """Bring FILES, or all of schemas/ops and what each vendor lacks, into canonical form; comments stay in place.

    \b
    Examples:
      diopigen fmt
      diopigen fmt --check --diff
      diopigen fmt schemas/ops/unary.yaml
    """
    from diopigen.commands.fmt import fmt

    sys.exit(fmt(selected_project(context), files, check, diff, error_format))


@cli.command("doctor")
@vendor_option("Also check all that this vendor needs, what is built for it, and that its device starts.")
@click.option("--format", "form", type=click.Choice(("table", "json")), default="table", show_default=True)
@click.pass_context
def doctor_command(context: click.Context, vendor: str | None, form: str) -> None:
    """Say what this machine lacks for which target, and the command that fixes it.

    \b
    Examples:
      diopigen doctor
      diopigen doctor --vendor cuda
      diopigen doctor --format json
    """
    from diopigen.commands.doctor import doctor

    project = selected_project(context)
    sys.exit(doctor(project, None if vendor is None else existing_vendor(project, vendor), form))


@cli.command("new")
@click.argument("op")
@click.option("--like", metavar="OP", help="The op to take as the model; default: a minimal elementwise op.")
@click.option("--topic", help="The file of schemas/ops, or of a vendor's 'schemas'; default: that of the model.")
@click.pass_context
def new_command(context: click.Context, op: str, like: str | None, topic: str | None) -> None:
    """Write the entry of a new op, ready to edit.

    \b
    Examples:
      diopigen new softcap --like hardtanh
      diopigen new softcap --topic activation
    """
    from diopigen.commands.new import new

    sys.exit(new(selected_project(context), op, like, topic))


@cli.command("new-vendor")
@click.argument("name")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="A repository of its own, outside of the checkout, in this new or empty folder.",
)
@click.pass_context
def new_vendor_command(context: click.Context, name: str, folder: Path | None) -> None:
    """Make a vendor that builds and trains on the host, with no operator of its own: vendors/NAME, or --dir.

    \b
    Examples:
      diopigen new-vendor chip                             vendors/chip in a checkout
      diopigen new-vendor chip --dir chip-kernels          a repository of its own
    """
    from diopigen.commands.new_vendor import new_repository, new_vendor

    if folder is None:
        sys.exit(new_vendor(checkout(context, f"name a folder for '{name}' by --dir"), name))
    try:
        sys.exit(new_repository(installed(), name, folder.resolve()))
    except NoProject as error:
        raise click.UsageError(str(error)) from error


@cli.command("cmake-dir")
def cmake_dir_command() -> None:
    """Print the folder of the CMake package Diopi, for -DDiopi_DIR.

    \b
    Examples:
      cmake -S . -B build -DDiopi_DIR="$(diopigen cmake-dir)"
    """
    try:
        print(installed() / "runtime_cpp" / "cmake")
    except NoProject as error:
        raise click.UsageError(str(error)) from error


@cli.command("coverage")
@needed_vendor_option
@convert_config_option
@schemas_option
@click.option(
    "--format", "form", type=click.Choice(("markdown", "json", "html")), default="markdown", show_default=True
)
@click.option("--out", type=click.Path(path_type=Path), help="A file to write; default: standard output.")
@click.option(
    "--report",
    "--results",
    "results",
    type=click.Path(path_type=Path),
    help="A conformance report; conformance_results/V.json.",
)
@click.pass_context
def coverage_command(
    context: click.Context,
    vendor: str,
    convert_config: Path | None,
    form: Any,
    out: Path | None,
    results: Path | None,
) -> None:
    """Report what a vendor has of the contract.

    \b
    Examples:
      diopigen coverage --vendor droplet
      diopigen coverage --vendor droplet --format html --out coverage.html
      diopigen coverage --vendor droplet --report conformance_results/droplet.json
    """
    from diopigen.commands.coverage import report_coverage

    project = selected_project(context, convert_config)
    sys.exit(report_coverage(project, existing_vendor(project, vendor), form, out, results))


@cli.command("compat")
@click.option("--against", help="An older header, a folder of headers, a git revision of this checkout, or a record.")
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), help="Write a record of what there is now.")
@click.option(
    "--include", multiple=True, type=click.Path(path_type=Path, exists=True), help="Where older headers include from."
)
@click.option("--torch", "releases", nargs=2, metavar="OLD NEW", help="Releases of torch, e.g. 2.11 2.13, or records.")
@click.option("--save-torch", type=click.Path(path_type=Path, dir_okay=False), help="Record the installed torch.")
@_format_option
@click.pass_context
def compat_command(
    context: click.Context,
    /,
    against: str | None,
    save: Path | None,
    releases: tuple[str, str] | None,
    save_torch: Path | None,
    **options: Any,
) -> None:
    """Compare the headers that the schemas give with older ones, or releases of torch by the operators that are bound.

    Exits with 1 if something breaks or differs.

    \b
    Examples:
      diopigen compat --against old/include
      diopigen compat --save contract.record
      diopigen compat --torch 2.13 2.15
      diopigen compat --save-torch schemas/aten/2.15.txt
    """
    if releases is not None or save_torch is not None:
        sys.exit(_compat_torch(checkout(context), releases, save_torch))
    _require_clang()
    from diopigen.commands.compat.headers import NoHeaders, Request, compat

    if against is None and save is None:
        raise click.UsageError("name what to compare with by --against, or where to write the record by --save")
    try:
        sys.exit(compat(selected_project(context), Request(against=against, save=save, **options)))
    except NoHeaders as error:
        raise click.UsageError(str(error)) from error


def _compat_torch(project: Project, releases: tuple[str, str] | None, save: Path | None) -> int:
    from diopigen.aten.records import NoRecord, TorchMissing
    from diopigen.commands.compat.releases import save_torch, torch_drift

    try:
        if save is not None:
            save_torch(project, save)
        return 0 if releases is None else torch_drift(project, *releases)
    except (NoRecord, TorchMissing) as error:
        raise click.UsageError(str(error)) from error


@cli.command("docs")
@click.option("--out", type=click.Path(path_type=Path), help="The folder to write to; default: build/docs.")
@_format_option
@click.pass_context
def docs_command(context: click.Context, out: Path | None, error_format: str) -> None:
    """Write the documentation site, which 'make docs' builds.

    \b
    Examples:
      diopigen docs
      diopigen docs --out build/site
    """
    try:
        from diopigen.commands.docs import write_docs
    except ModuleNotFoundError as missing:
        if missing.name != "latex2mathml":
            raise
        raise click.UsageError("the site needs packages; install them with: pip install 'diopigen[docs]'") from missing

    project = checkout(context)
    sys.exit(write_docs(project, out or project.root / "build" / "docs", error_format))


@cli.command("import-header")
@click.argument("header", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="A file of schemas/ops; standard output.")
@click.option("--include", multiple=True, type=click.Path(path_type=Path, exists=True), help="Where it includes from.")
@_format_option
@click.pass_context
def import_header_command(context: click.Context, /, header: Path, **options: Any) -> None:
    """Write entries for the functions of a header that no schema gives; what is guessed is marked.

    \b
    Examples:
      diopigen import-header old/functions.h
      diopigen import-header old/functions_ext.h --include old --out schemas/ops/imported.yaml
    """
    _require_clang()
    if options["out"] is not None and options["out"].exists():
        raise click.UsageError(f"{options['out']} is there already; name a new file")
    from diopigen.commands.import_header import Request, import_header

    sys.exit(import_header(selected_project(context), Request(header=header, **options)))


def main() -> None:
    """The console script."""
    # A run keeps nearly all that it makes and ends within seconds; looking for garbage would be a seventh of its time.
    gc.disable()
    cli(prog_name="diopigen")

"""Writes a call as stand-alone files."""

from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from diopi_conformance.cases.plan import CasePlan
from diopi_conformance.outcome import Outcome
from diopi_conformance.prepare import Prepared
from diopi_conformance.process.worker_pool import Libraries
from diopi_conformance.report.wording import reason
from diopi_conformance.repro.c_file import c_view
from diopi_conformance.repro.example import example
from diopi_conformance.repro.python_file import FileHeader, python_view
from diopigen.atomic import write_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The paths of what was written."""

    python: Path
    c: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where the files go and what they should find there."""

    folder: Path
    libraries: Libraries
    include: Path  # the folder of the contract's headers
    seconds: int  # after which a call counts as hanging


def write_files(plan: CasePlan, prepared: Prepared, outcome: Outcome, place: Destination) -> Files:
    """A Python and a C file that make the prepared call. Raises TooLarge, Unwritable and, for the disk, OSError."""
    call = example(plan, prepared)
    stem = prepared.case.id.replace("/", "_")
    files = Files(python=place.folder / f"{stem}.py", c=place.folder / f"{stem}.c")

    def about(file: Path) -> FileHeader:
        return FileHeader(
            vendor=plan.vendor,
            case=prepared.case.id,
            reason=reason(outcome) or outcome.verdict.value,
            file=file.name,
            runtime=str(place.libraries.runtime),
            library=str(place.libraries.vendor),
            seconds=place.seconds,
        )

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "files"),
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    texts = {
        files.python: environment.get_template("example.py.j2").render(view=python_view(call, about(files.python))),
        files.c: environment.get_template("example.c.j2").render(view=c_view(call, about(files.c), str(place.include))),
    }
    for path, text in texts.items():
        write_text(path, text)
    return files

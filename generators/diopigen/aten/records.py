"""What releases of torch declare: the schema of each overload by its name, from the installed torch or a kept record.

A record is a text file with one schema a line, as torch writes them; `schemas/aten/<version>.txt` holds those of
releases that are supported.
"""

import importlib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from diopigen.aten.catalog import TorchMissing, minor, schema_folder

Schemas = dict[str, str]


class NoRecord(Exception):
    """There is no record of what was named; the message says which there are."""


def installed() -> Schemas:
    """The schemas of the installed torch, generated ones included. Raises TorchMissing with a sentence for the user."""
    folder = schema_folder()
    gen = importlib.import_module("torchgen.gen")  # it is slow to import
    parsed = gen.parse_native_yaml(str(folder / "native_functions.yaml"), str(folder / "tags.yaml"))
    return _by_name(str(function.func) for function in parsed.native_functions)


def read(word: str, folder: Path) -> Schemas:
    """The schemas of `word`: a file, a release that `folder` has a record of ("2.11"), or the installed release.

    Raises NoRecord or TorchMissing.
    """
    path = Path(word)
    kept = folder / f"{minor(word)}.txt"
    for candidate in (path, kept):
        if candidate.is_file():
            return _by_name(candidate.read_text(encoding="utf-8").splitlines())
    if minor(word) == installed_minor():
        return installed()
    known = sorted({record.stem for record in folder.glob("*.txt")} | {installed_minor() or ""} - {""})
    raise NoRecord(f"there is no record of torch {word}; there are records of {', '.join(known) or 'none'}")


def installed_minor() -> str | None:
    """e.g. "2.13"; None where there is no torch."""
    try:
        return minor(version("torch"))
    except PackageNotFoundError:
        return None


def text(schemas: Schemas) -> str:
    """A record, in the order of names."""
    return "".join(f"{schemas[name]}\n" for name in sorted(schemas))


def _by_name(lines: Iterable[str]) -> Schemas:
    return {line.partition("(")[0]: line.strip() for line in lines if line.strip()}


__all__ = ["NoRecord", "Schemas", "TorchMissing", "installed", "installed_minor", "read", "text"]

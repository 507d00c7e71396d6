"""Tells build tools what a run read: a stamp that is touched on every run, and a depfile for it."""

import os
from collections.abc import Iterable
from pathlib import Path

from diopigen.atomic import write_bytes


def write_depfile(folder: Path, inputs: Iterable[str]) -> None:
    """Writes `folder`/.depfile, which makes `folder`/.stamp depend on `inputs`, and touches the stamp."""
    stamp = folder / ".stamp"
    names = " \\\n  ".join(_escaped(path) for path in inputs)
    content = os.fsencode(f"{_escaped(stamp.as_posix())}: \\\n  {names}\n")
    depfile = folder / ".depfile"
    if not depfile.is_file() or depfile.read_bytes() != content:
        write_bytes(depfile, content)
    stamp.touch()


def _escaped(path: str) -> str:
    return path.replace("#", "\\#").replace("$", "$$").replace(" ", "\\ ")

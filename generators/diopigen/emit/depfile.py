"""Tells build tools what a run read: a stamp that is touched on every run, and a depfile for it."""

from collections.abc import Iterable
from pathlib import Path

from diopigen.emit.writer import write_text


def write_depfile(folder: Path, inputs: Iterable[Path]) -> None:
    """Writes `folder`/.depfile, which makes `folder`/.stamp depend on `inputs`, and touches the stamp."""
    stamp = folder / ".stamp"
    names = " \\\n  ".join(_escaped(path) for path in inputs)
    text = f"{_escaped(stamp)}: \\\n  {names}\n"
    depfile = folder / ".depfile"
    if not depfile.is_file() or depfile.read_text(encoding="utf-8") != text:
        write_text(depfile, text)
    stamp.touch()


def _escaped(path: Path) -> str:
    return path.as_posix().replace("#", "\\#").replace("$", "$$").replace(" ", "\\ ")

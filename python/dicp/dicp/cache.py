"""Built programs on disk: a folder for each, named by what it depends on; written whole or not at all."""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from dicp.fingerprint import digests
from dicp.target import Target

_process_folder: list[tempfile.TemporaryDirectory[str]] = []


def built(target: Target, source: str, folder: Path | None) -> Path:
    """The library of a source, from the cache or the compiler. Raises BuildFailed.

    Processes that build the same program at once each build their own, and the first to finish is kept: a folder is
    renamed into its place, so that nobody sees half of one, and one that a killed process left has another name.
    """
    if folder is None:
        if not _process_folder:
            _process_folder.append(tempfile.TemporaryDirectory(prefix="dicp-"))
        folder = Path(_process_folder[0].name)
    place = folder / program_key(target, source)
    library = place / "program.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=folder))
    try:
        written = own / f"program{target.suffix}"
        written.write_text(source, encoding="utf-8")
        target.build(written, own / "program.so")
        try:
            os.rename(own, place)
        except OSError:  # another process was first
            if not library.exists():
                raise
    finally:
        shutil.rmtree(own, ignore_errors=True)
    return library


def program_key(target: Target, source: str) -> str:
    """The name of a program: of its text, the headers that this includes, and what compiles it for which libraries."""
    parts = [target.key, *digests(target.headers(source)), source]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

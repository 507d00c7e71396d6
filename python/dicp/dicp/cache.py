"""Built programs on disk: a folder for each, named by what it depends on; the library in it is named by its content."""

import hashlib
import os
import shutil
import stat
import tempfile
import warnings
from pathlib import Path

from dicp.fingerprint import digests
from dicp.target import Target

_process_folder: list[tempfile.TemporaryDirectory[str]] = []


def built(target: Target, source: str, folder: Path | None) -> Path:
    """The library of a source, from the cache or the compiler. Raises BuildFailed.

    The process runs what it loads. So a library must belong to this user or to root, nobody else may write it or its
    folder, and its content must be what was built; any other one is dropped and built again.

    Processes that build the same program at once each build their own, and the first to finish is kept: a folder is
    renamed into its place, so that nobody sees half of one, and one that a killed process left has another name.
    """
    folder = _private(folder) if folder is not None else _folder_of_process()
    place = folder / program_key(target, source)
    if (kept := _whole(place)) is not None:
        return kept
    own = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=folder))
    try:
        written = own / f"program{target.suffix}"
        written.write_text(source, encoding="utf-8")
        library = own / "program.so"
        target.build(written, library)
        library.chmod(0o700)
        return _installed(library.rename(own / _name(place.name, library)), place)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def program_key(target: Target, source: str) -> str:
    """The name of a program: of its text, the headers that this includes, and what compiles it for which libraries."""
    parts = [target.key, *digests(target.headers(source)), source]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _private(folder: Path) -> Path:
    """The folder of the cache; that of the process, with a warning, where others could have put programs into it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if _is_private(status):
        return folder
    owner = "it belongs to another user" if status.st_uid not in _trusted_users() else f"chmod go-w '{folder}'"
    warnings.warn(f"the cache of programs, {folder}, is not used, because others may write it: {owner}", stacklevel=2)
    return _folder_of_process()


def _folder_of_process() -> Path:
    if not _process_folder:
        _process_folder.append(tempfile.TemporaryDirectory(prefix="dicp-"))
    return Path(_process_folder[0].name)


def _trusted_users() -> tuple[int, int]:
    return 0, os.geteuid()


def _is_private(status: os.stat_result) -> bool:
    """Whether nobody but this user and root may write what has this status."""
    return status.st_uid in _trusted_users() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_private_folder(place: Path) -> bool:
    try:
        status = place.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and _is_private(status)


def _whole(place: Path) -> Path | None:
    """The library of a program that lies there, if there is one that may be loaded."""
    if not _is_private_folder(place):
        return None
    return next((library for library in sorted(place.glob("*.so")) if _is_whole(library)), None)


def _is_whole(library: Path) -> bool:
    try:
        status = library.lstat()
        private = stat.S_ISREG(status.st_mode) and _is_private(status)
        return private and library.name == _name(library.parent.name, library)
    except OSError:
        return False


def _name(key: str, library: Path) -> str:
    """What a library of the program `key` is called: its content belongs to this program and no other."""
    return f"program-{hashlib.sha256(key.encode() + library.read_bytes()).hexdigest()}.so"


def _installed(library: Path, place: Path) -> Path:
    """Where a new library lies once its folder has become `place`, or that of another process that was first."""
    own = library.parent
    if os.path.lexists(place) and not _is_private_folder(place):
        _drop(place, own)
    try:
        os.rename(own, place)
    except OSError:  # another process was first, or what lies there is damaged
        if (first := _whole(place)) is not None:
            return first
        for damaged in place.glob("*.so"):
            if damaged.name != library.name or damaged.is_dir():  # a file of that name is replaced, and never missing
                _drop(damaged, own)
        os.replace(library, place / library.name)
    return place / library.name


def _drop(path: Path, own: Path) -> None:
    """Removes what lies there, whatever it is and whoever wrote it; what cannot be removed is moved out of the way."""
    aside = Path(tempfile.mkdtemp(prefix=f"{own.name}-dropped-", dir=own.parent))
    os.rename(path, aside / path.name)
    shutil.rmtree(aside, ignore_errors=True)

"""Built programs on disk: a folder for each, named by what it depends on; the library in it is named by its content."""

import fcntl
import hashlib
import os
import pwd
import secrets
import shutil
import stat
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dicp.fingerprint import digests
from dicp.target import Target
from diopigen.atomic import write_text

_process_folder: list[tempfile.TemporaryDirectory[str]] = []


def built(target: Target, source: str, folder: Path | None) -> Path:
    """The library of a source, from the cache or the compiler. Raises BuildFailed and Unwritable.

    The process runs what it loads. So a library must belong to this user or to root, nobody else may write it or its
    folder, and its content must be what was built; any other one is dropped and built again.

    Processes that build the same program at once each build their own, and the first to finish is kept: a folder is
    renamed into its place, so that nobody sees half of one. What killed processes left goes with the next build.
    """
    folder = _private(folder) if folder is not None else _folder_of_process()
    for place in _places(folder, program_key(target, source)):
        if (kept := _whole(place)) is not None:
            return kept
    _clear(place)
    with _own_folder(place) as own:
        written = own / f"program{target.suffix}"
        write_text(written, source)
        library = own / "program.so"
        target.build(written, library)
        library.chmod(0o700)
        return _installed(library.rename(own / _name(place.name, library)), place)


@contextmanager
def _own_folder(place: Path) -> Iterator[Path]:
    """A folder to build in, locked as long as this process builds."""
    while True:
        own = Path(tempfile.mkdtemp(prefix=f".{place.name}-build-", dir=place.parent))
        with suppress(FileNotFoundError):
            handle = _locked(own)
            if own.exists():
                break
            os.close(handle)
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)
        os.close(handle)


def _locked(folder: Path, more: int = 0) -> int:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | more)
    except OSError:
        os.close(handle)
        raise
    return handle


def _clear(place: Path) -> None:
    """Removes what killed processes left beside it."""
    for dropped in place.parent.glob(".*-dropped-*"):
        _remove(dropped)
    for left in place.parent.glob(".*-build-*"):
        with suppress(OSError):  # another process builds there
            handle = _locked(left, fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
            os.close(handle)


def program_key(target: Target, source: str) -> str:
    """The name of a program: of its text, the headers that this includes, and what compiles it for which libraries."""
    parts = [target.key, *digests(target.headers(source)), source]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _private(folder: Path) -> Path:
    """The folder of the cache; that of the process, with a warning, where others could have put programs into it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        return _passed_over(folder, f"because it cannot be made: {error.strerror}; set DICP_CACHE to a folder that can")
    for place in _way_to(folder.resolve()):
        status = place.stat()
        if _is_private(status) or (place != folder.resolve() and _keeps_entries(status)):
            continue
        if status.st_uid in _trusted_users():
            cure = f"chmod go-w '{place}'"
        else:
            cure = "it belongs to another user" if place == folder.resolve() else f"{place} belongs to another user"
        return _passed_over(folder, f"because others may write it: {cure}")
    return folder


def _places(folder: Path, key: str) -> Iterator[Path]:
    """Where a program may lie, the last where it may be built: with a warning not in a cache that only can be read."""
    yield folder / key
    if not os.access(folder, os.W_OK | os.X_OK):
        yield _passed_over(folder, "because it cannot be written; set DICP_CACHE to a folder that can") / key


def _passed_over(folder: Path, reason: str) -> Path:
    warnings.warn(f"the cache of programs, {folder}, is not used, {reason}", stacklevel=4)
    return _folder_of_process()


def _way_to(folder: Path) -> Iterator[Path]:
    """The folder and those above it, as far as the user's home, or the root."""
    home = None
    with suppress(KeyError):  # of a user who has no entry, as in a container
        home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    for place in (folder, *folder.parents):
        yield place
        if place == home:
            break


def _keeps_entries(status: os.stat_result) -> bool:
    """Whether nobody but its owner may put another folder into the place of one of this user, e.g. /tmp"""
    return status.st_uid in _trusted_users() and bool(status.st_mode & stat.S_ISVTX)


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
        _drop(place, place)
    try:
        os.rename(own, place)
    except OSError:  # another process was first, or what lies there is damaged
        if (first := _whole(place)) is not None:
            return first
        for damaged in place.glob("*.so"):
            if damaged.name != library.name or damaged.is_dir():  # a file of that name is replaced, and never missing
                _drop(damaged, place)
        os.replace(library, place / library.name)
    return place / library.name


def _drop(path: Path, place: Path) -> None:
    """Removes what lies there, whatever it is and whoever wrote it; what cannot be removed is moved out of the way."""
    aside = place.with_name(f".{place.name}-dropped-{secrets.token_hex(8)}")
    os.rename(path, aside)
    _remove(aside)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink() if path.is_symlink() or not path.is_dir() else shutil.rmtree(path)

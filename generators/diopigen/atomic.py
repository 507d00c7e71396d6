"""Writes files that are kept: whole or not at all, whenever the process ends; every write goes through here.

A file is written beside its place, under a lock, and renamed. The name of that scratch file follows from the name of
the file, so that the next write takes over what a killed one left. Links are followed; pipes, devices and what lies in
/dev or /proc are written to.
"""

import fcntl
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LONGEST = 240  # bytes of a file's name that its scratch file's name has of it

# What reading a kept file raises that has another form than the program gives it.
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


class Unwritable(OSError):
    """A file cannot be written; the text says which, and why."""

    def __init__(self, path: Path, cause: OSError) -> None:
        super().__init__(cause.errno, cause.strerror, str(path))

    def __str__(self) -> str:
        return f"{self.filename} cannot be written: {self.strerror}"


def write_text(path: Path, text: str) -> None:
    """Replaces the file at `path` in one step, with its folder where there is none. Raises Unwritable."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """As `write_text`."""
    _put(path, content, _replace)


def append(path: Path, content: bytes) -> None:
    """Adds `content` at the end of the file at `path`, or nothing of it. Raises Unwritable."""
    _put(path, content, _extend)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which then takes the place of the one at `path`; where the block fails, that stays.

    Raises Unwritable.
    """
    scratch = scratch_of(path)
    earlier = scratch.with_suffix(".old")
    with _writing(path), _locked_folder(scratch):
        try:
            if earlier.exists() and not path.exists():  # a run was killed between the two renames below
                earlier.rename(path)
            yield scratch
            shutil.rmtree(earlier, ignore_errors=True)
            if path.exists():
                path.rename(earlier)
            scratch.rename(path)
            shutil.rmtree(earlier, ignore_errors=True)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def is_special(path: Path) -> bool:
    """Whether a write goes to what lies at `path`, e.g. a pipe or /dev/stdout, rather than into its place."""
    try:
        return _regular(path) is None
    except OSError:
        return False


def clear_scratch(path: Path) -> None:
    """Removes what a killed run left beside `path`."""
    with suppress(OSError):
        scratch_of(path).unlink()


def scratch_of(path: Path) -> Path:
    """Where what becomes `path` is written. e.g. "include/.functions.h.part" """
    return path.with_name(f".{os.fsdecode(os.fsencode(path.name)[:_LONGEST])}.part")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Failures to write `path`, or a part of it, are failures to write `path`."""
    try:
        yield
    except OSError as error:
        raise Unwritable(path, error) from error


def _put(path: Path, content: bytes, put: Callable[[Path, bytes], None]) -> None:
    with _writing(path):
        target = _regular(path)
        if target is None:
            _pass_on(path, content)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            put(target, content)


def _extend(path: Path, content: bytes) -> None:
    with path.open("ab", buffering=0) as stream:
        size = os.fstat(stream.fileno()).st_size
        try:
            _write(stream.fileno(), content)
        except BaseException:
            stream.truncate(size)
            raise


def _regular(path: Path) -> Path | None:
    """The regular file, there or not, that `path` leads to; None where it leads to something else."""
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        regular = True
    if not regular or path.absolute().parts[1:2] in (("dev",), ("proc",)):
        return None
    return Path(os.path.realpath(path))


def _pass_on(path: Path, content: bytes) -> None:
    """Writes to what is no regular file; what leads to standard output goes there, after what is printed already."""
    with path.open("ab", buffering=0) as stream:
        handles = [n for n in (1, 2) if _is(n, path) and not stat.S_ISCHR(os.fstat(n).st_mode)]
        sys.stdout.flush()
        _write(handles[0] if handles else stream.fileno(), content)


def _is(handle: int, path: Path) -> bool:
    """Whether an open file is what lies at `path`."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False


def _replace(path: Path, content: bytes) -> None:
    scratch = scratch_of(path)
    handle = _locked(scratch, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.ftruncate(handle, 0)
        _write(handle, content)
        if path.exists():
            os.fchmod(handle, stat.S_IMODE(path.stat().st_mode))
        scratch.rename(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)


def _locked(path: Path, flags: int) -> int:
    """A locked handle of what lies at `path`; who had the lock before may have renamed it meanwhile."""
    while True:
        handle = os.open(path, flags, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _is(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


@contextmanager
def _locked_folder(path: Path) -> Iterator[None]:
    """The folder at `path`, empty."""
    while True:
        path.mkdir(parents=True, exist_ok=True)
        try:
            handle = _locked(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            break
        except FileNotFoundError:  # who had the lock has finished it
            continue
    try:
        for entry in os.scandir(path):
            shutil.rmtree(entry) if entry.is_dir(follow_symlinks=False) else os.unlink(entry)
        yield
    finally:
        os.close(handle)


def _write(handle: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]

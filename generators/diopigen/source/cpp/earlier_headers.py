"""Finds the older headers that a user names: a file, a folder, a revision of git; lays revisions out as files."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from diopigen.atomic import write_bytes


class NoHeaders(Exception):
    """What was named has no headers; the text says what was looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierHeaders:
    """Headers, and where they look for what they include."""

    paths: tuple[Path, ...]
    include_dirs: tuple[Path, ...]


def headers_at(path: Path) -> EarlierHeaders:
    """The header at `path`, or those of a folder: of its include/diopi, its diopi, or itself, whichever has any.

    Raises NoHeaders if there is none.
    """
    if path.is_file():
        return EarlierHeaders(paths=(path,), include_dirs=_roots(path.parent))
    for folder in (path / "include" / "diopi", path / "diopi", path):
        found = tuple(sorted(folder.glob("*.h")))
        if found:
            return EarlierHeaders(paths=found, include_dirs=_roots(folder))
    raise NoHeaders(f"there are no headers in {path}: neither *.h, nor diopi/*.h, nor include/diopi/*.h")


def _roots(folder: Path) -> tuple[Path, ...]:
    """From where `#include <diopi/diopirt.h>` and `#include "diopirt.h"` find the neighbours of a header."""
    return (folder.parent, folder) if folder.name == "diopi" else (folder,)


def headers_of_revision(root: Path, revision: str, folder: str, cache: Path) -> EarlierHeaders:
    """The headers that the revision of the repository at `root` has in `folder`, laid out under `cache`.

    Raises NoHeaders if git does not know the revision, or it has no headers there.
    """
    commit = _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()
    listed = _git(root, "ls-tree", "-r", "--name-only", "-z", commit, "--", folder) if commit else b""
    names = [name for name in listed.decode().split("\0") if name.endswith(".h")]
    if not names:
        raise NoHeaders(f"git has no headers of '{revision}' in {folder}")
    target = cache / "revisions" / commit[:12]
    for name in names:
        path = target / Path(name).relative_to(folder)
        write_bytes(path, _git(root, "show", f"{commit}:./{name}"))
    paths = tuple(sorted(target / Path(name).relative_to(folder) for name in names))
    return EarlierHeaders(paths=paths, include_dirs=(target,))


def _git(root: Path, *words: str) -> bytes:
    """What git answers in `root`; nothing if it refuses or is not there."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, check=False)
    except OSError:
        return b""
    return done.stdout if done.returncode == 0 else b""

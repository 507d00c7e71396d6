"""What tests build, once for all tests, workers and runs.

Everything lies in build/store/<name>-<digest>; the digest is of all that it is built from, so that a change of a
source, a header, a flag or the compiler makes another entry. A lock of each entry keeps two workers from building the
same.
"""

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORE = ROOT / "build" / "store"
_DAY = 86400
_HEADERS = (".cuh", ".h", ".hpp", ".inc")


def stored(name: str, parts: Iterable[str | Path], make: Callable[[Path], None]) -> Path:
    """The folder that `make` fills, called with it while it is empty, unless that was done for the same parts.

    A part is a text, a file that counts by its content, or a folder that counts by the headers below it. Nothing is
    kept where `make` raises an error.
    """
    place = STORE / f"{name}-{digest(parts)}"
    STORE.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.is_dir():
            with tempfile.TemporaryDirectory(dir=STORE, prefix=".") as unfinished:
                folder = Path(unfinished) / name
                folder.mkdir()
                make(folder)
                folder.rename(place)
        os.utime(place)
    return place


def compiled(command: Sequence[str | Path], name: str) -> Path:
    """The file `name` that a compiler's command makes, which lacks only `-o`; see stored().

    Files and -I folders among the words count by their content. Raises AssertionError with the compiler's words.
    """
    words = [str(word) for word in command]

    def make(folder: Path) -> None:
        done = subprocess.run([*words, "-o", str(folder / name)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    return stored(Path(name).stem, [_version(words[0]), name, *_parts(words)], make) / name


def forget(days: float = 7) -> None:
    """Removes entries that no test has used for so long."""
    if STORE.is_dir():
        for place in STORE.iterdir():
            if place.is_dir() and time.time() - place.stat().st_mtime > days * _DAY:
                shutil.rmtree(place, ignore_errors=True)
                place.with_suffix(".lock").unlink(missing_ok=True)


def digest(parts: Iterable[str | Path]) -> str:
    """Of the texts, and of the contents of files and folders."""
    found = hashlib.sha256()
    for part in parts:
        text = content(part) if isinstance(part, Path) else part
        found.update(f"{len(text)}:{text}".encode())
    return found.hexdigest()[:20]


@functools.cache
def content(path: Path) -> str:
    """A digest of a file, or of the headers below a folder with their places; each process reads it once."""
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    files = sorted(file for file in path.rglob("*") if file.suffix in _HEADERS)
    return digest(word for file in files for word in (file.relative_to(path).as_posix(), file))


def _parts(words: Sequence[str]) -> Iterator[str | Path]:
    """What a command is made of: words, and what files and folders of headers hold, wherever these lie."""
    for before, word in zip(("", *words), words, strict=False):
        path = Path(word.removeprefix("-I"))
        is_folder = (word.startswith("-I") and word != "-I") or before == "-I"
        if is_folder and path.is_dir():
            yield from ("-I", path)
        elif before and path.is_absolute() and path.is_file():
            yield from (path.name, path)
        else:
            yield word


@functools.cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout

"""Results that are kept between runs, in files that say when they are damaged; each may be deleted at any time."""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

from diopigen.atomic import Unwritable, write_text
from diopigen.diagnostics import Diagnostics, Span

Found = TypeVar("Found")
_VERSION = 2
_RUNS = 4  # that may leave a text unused before it is forgotten: checkouts and branches may share a file


class Damaged(Exception):
    """A file is not as it was written."""


def read_checked(path: Path, version: int) -> str | None:
    """What `write_whole` wrote; None where there is nothing of this version. Raises Damaged."""
    try:
        head, _, content = path.read_bytes().partition(b"\n")
        written = json.loads(head)
        if written["version"] != version:
            return None
        if written["checksum"] == _hash(content):
            return content.decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(str(path)) from error
    raise Damaged(str(path))


def undamaged(read: Callable[[Path], Found], path: Path, shown: str, diagnostics: Diagnostics) -> Found:
    """What `read` gives of the file; one that is damaged is reported, and goes."""
    try:
        return read(path)
    except Damaged:
        span = Span(path=shown, line=1, column=1)
        diagnostics.warning("damaged-cache", "this cache is damaged and was rebuilt", span)
        path.unlink(missing_ok=True)
        return read(path)


def write_checked(path: Path, version: int, text: str) -> None:
    """As `write_whole`. A folder that is read-only is no error."""
    with suppress(Unwritable):
        write_whole(path, version, text)


def write_whole(path: Path, version: int, text: str) -> None:
    """A line with the version and a checksum, and `text`. Raises Unwritable."""
    write_text(path, f"{json.dumps({'version': version, 'checksum': _hash(text.encode())})}\n{text}")


class KeptTexts:
    """Texts by what they follow from: the inputs that a key is made of, this Python, and the generator itself.

    A file is a line that tells of each text its key, the runs that left it unused and its length, and the texts.
    """

    def __init__(self, path: Path) -> None:
        """Raises Damaged."""
        self._path = path
        self._made: dict[str, str] = {}
        self._used: set[str] = set()
        content = read_checked(path, _VERSION)
        index, _, self._texts = (content or "[]\n").partition("\n")
        self._ages: dict[str, int] = {}
        self._places: dict[str, tuple[int, int]] = {}
        start = 0
        for key, age, length in json.loads(index):
            self._ages[key], self._places[key] = age, (start, start + length)
            start += length

    @staticmethod
    def key(*inputs: object) -> str:
        """Of values whose `repr` says all that they are."""
        return _hash(f"{_generator()}\0{inputs!r}".encode())

    def found(self, key: str) -> str | None:
        place = self._places.get(key)
        if place is None:
            return self._made.get(key)
        self._used.add(key)
        return self._texts[slice(*place)]

    def keep(self, key: str, text: str) -> None:
        self._made[key] = text

    def write(self) -> None:
        """Leaves the file as it is where nothing was added."""
        if not self._made:
            return
        aged = {key: 0 if key in self._used else age + 1 for key, age in self._ages.items() if key not in self._made}
        texts = {key: self._texts[slice(*self._places[key])] for key, age in aged.items() if age < _RUNS} | self._made
        index = [(key, aged.get(key, 0), len(text)) for key, text in sorted(texts.items())]
        write_checked(self._path, _VERSION, "\n".join((json.dumps(index), "".join(texts[key] for key, _, _ in index))))


@contextmanager
def kept_texts(path: Path, shown: str, diagnostics: Diagnostics) -> Iterator[KeptTexts]:
    """What earlier runs kept, and after the block what this one adds."""
    kept = undamaged(KeptTexts, path, shown, diagnostics)
    yield kept
    kept.write()


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


@cache
def _generator() -> str:
    """A hash of this package's files."""
    digest = hashlib.blake2b(repr(sys.version_info).encode(), digest_size=16)
    folder = Path(__file__).parent
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".lark", ".yaml", ".json")):
        digest.update(f"{path.relative_to(folder)}\0{_hash(path.read_bytes())}\0".encode())
    return digest.hexdigest()

"""Results that are kept between runs, in files that say when they are damaged; each may be deleted at any time."""

import hashlib
import json
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from diopigen.atomic import Unwritable, write_text

_VERSION = 1
_RUNS = 4  # that may leave a text unused before it is forgotten: checkouts and branches may share a file


class Damaged(Exception):
    """A file is not as it was written."""


def read_checked(path: Path, version: int) -> str | None:
    """What `write_checked` wrote; None where there is nothing of this version. Raises Damaged."""
    try:
        head, _, text = path.read_text(encoding="utf-8").partition("\n")
        written = json.loads(head)
        if written["version"] != version:
            return None
        if written["checksum"] == _hash(text.encode()):
            return text
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(str(path)) from error
    raise Damaged(str(path))


def write_checked(path: Path, version: int, text: str) -> None:
    """A line with the version and a checksum, and `text`. A folder that is read-only is no error."""
    with suppress(Unwritable):
        write_text(path, f"{json.dumps({'version': version, 'checksum': _hash(text.encode())})}\n{text}")


class KeptTexts:
    """Texts by what they follow from: the inputs that a key is made of, this Python, and the generator itself."""

    def __init__(self, path: Path) -> None:
        """Raises Damaged."""
        self._path = path
        self._changed = False
        text = read_checked(path, _VERSION)
        self._texts: dict[str, list[object]] = {} if text is None else json.loads(text)  # by key: runs unused, text
        self._used: set[str] = set()

    @staticmethod
    def key(*inputs: object) -> str:
        """Of values whose `repr` says all that they are."""
        return _hash(f"{_generator()}\0{inputs!r}".encode())

    def found(self, key: str) -> str | None:
        entry = self._texts.get(key)
        if entry is None:
            return None
        self._used.add(key)
        return str(entry[1])

    def keep(self, key: str, text: str) -> None:
        self._texts[key] = [0, text]
        self._used.add(key)
        self._changed = True

    def write(self) -> None:
        """Leaves the file as it is where nothing was added."""
        if not self._changed:
            return
        aged = {k: [0 if k in self._used else int(str(age)) + 1, text] for k, (age, text) in self._texts.items()}
        left = {key: entry for key, entry in aged.items() if int(str(entry[0])) < _RUNS}
        write_checked(self._path, _VERSION, json.dumps(left, ensure_ascii=False, sort_keys=True))


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

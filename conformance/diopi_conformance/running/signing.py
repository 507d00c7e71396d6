"""Lines that only this user can have written, each behind the ones before it: for files that are believed later."""

import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path

_BYTES = 32


class Chain:
    """Signs lines, and checks them in the same order. A signature is of the line and of all before it."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._last = b""

    def signed(self, text: bytes) -> bytes:
        """The next line: signature, space, text."""
        self._last = hmac.digest(self._key, self._last + text, hashlib.sha256)
        return self._last.hex().encode() + b" " + text

    def text(self, line: bytes) -> bytes | None:
        """The text of the next line; None where it is not what was signed there."""
        text = line.partition(b" ")[2]
        return text if hmac.compare_digest(self.signed(text), line) else None


def user_key() -> bytes:
    """This user's key, made when it is first asked for and kept where nobody else can read it.

    Where it cannot be kept, each process has its own: what it signs, no other process believes.
    """
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    path = state / "diopi-conformance" / "key"
    try:
        return _kept(path) or _made(path)
    except OSError:
        return secrets.token_bytes(_BYTES)


def _kept(path: Path) -> bytes | None:
    """The key in a file; None where there is none, or one that others may know or have written."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        status, key = os.fstat(descriptor), file.read(_BYTES + 1)
    private = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return key if private and len(key) == _BYTES else None


def _made(path: Path) -> bytes:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key := secrets.token_bytes(_BYTES))
    part.replace(path)
    return key

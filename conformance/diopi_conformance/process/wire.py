"""Messages between the runner and its workers: a JSON head and raw bytes behind it. Nothing is ever unpickled."""

import json
import struct
from typing import IO, Any

UNWRITTEN = 0xCB  # each byte of a number in host memory before the call that should write it
OTHER_OUTPUT = 0xFF  # each byte of an output before the second call
ON_OTHER_BYTES = "on other bytes in memory that nobody wrote"

_LENGTHS = struct.Struct("<QQ")  # of the head and of the bytes


class Closed(Exception):
    """The other side is gone."""


def same_answer(head: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether another call did the same, but for the bytes of its tensors and its time."""
    return all(head[key] == value for key, value in other.items() if key != "seconds")


def send(stream: IO[bytes], head: dict[str, Any], blobs: list[bytes]) -> None:
    """Write one message; the head gets the blobs' lengths."""
    text = json.dumps({**head, "blobs": [len(b) for b in blobs]}).encode()
    stream.write(b"".join((_LENGTHS.pack(len(text), sum(map(len, blobs))), text, *blobs)))
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """Read one message. Raises Closed at the end of the stream, also in the middle of a message."""
    head_bytes, blob_bytes = _LENGTHS.unpack(_exactly(stream, _LENGTHS.size))
    head: dict[str, Any] = json.loads(_exactly(stream, head_bytes))
    rest = _exactly(stream, blob_bytes)
    blobs: list[bytes] = []
    start = 0
    for length in head.pop("blobs"):
        blobs.append(rest[start : start + length])
        start += length
    return head, blobs


def _exactly(stream: IO[bytes], count: int) -> bytes:
    found = stream.read(count)
    if found is None or len(found) < count:
        raise Closed
    return found

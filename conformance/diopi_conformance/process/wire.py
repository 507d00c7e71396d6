"""Messages between the runner and its workers: a JSON head and raw bytes behind it. Nothing is ever unpickled."""

import json
import struct
from typing import IO, Any

UNWRITTEN = 0xCB  # each byte of a number in host memory before the call that should write it
FRESH = 0xFF  # each byte of fresh memory in the first call: NaN in every floating-point type
OTHER_OUTPUT = 0xFF  # each byte of an output before the second call
ON_OTHER_BYTES = "on other bytes in memory that nobody wrote"

_LENGTHS = struct.Struct("<QQ")  # of the head and of the bytes


_MOST = 1 << 40  # bytes; more is no length


class Closed(Exception):
    """The other side is gone."""


class MalformedMessage(Exception):
    """What came is not a message: another program has written to the stream."""


def same_answer(head: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether another call did the same, but for the bytes of its tensors and its time."""
    return all(head[key] == value for key, value in other.items() if key != "seconds")


def send(stream: IO[bytes], head: dict[str, Any], blobs: list[bytes]) -> None:
    """Write one message; the head gets the blobs' lengths."""
    text = json.dumps({**head, "blobs": [len(b) for b in blobs]}).encode()
    stream.write(b"".join((_LENGTHS.pack(len(text), sum(map(len, blobs))), text, *blobs)))
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict[str, Any], list[bytes]]:
    """Read one message. Raises Closed at the end of the stream, even inside a message, and MalformedMessage."""
    head_bytes, blob_bytes = _LENGTHS.unpack(_exactly(stream, _LENGTHS.size))
    if max(head_bytes, blob_bytes) > _MOST:
        raise MalformedMessage
    text, rest = _exactly(stream, head_bytes), _exactly(stream, blob_bytes)
    blobs: list[bytes] = []
    start = 0
    try:
        head: dict[str, Any] = json.loads(text)
        for length in head.pop("blobs"):
            blobs.append(rest[start : start + length])
            start += length
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise MalformedMessage from None
    return head, blobs


def _exactly(stream: IO[bytes], count: int) -> bytes:
    found = stream.read(count)
    if found is None or len(found) < count:
        raise Closed
    return found

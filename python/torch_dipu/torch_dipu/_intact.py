"""Whether a shared library has all its bytes: the loader maps one that was cut off, and reading on ends the process."""

import os
import struct
from collections.abc import Iterable
from pathlib import Path

_HEADER = struct.Struct("<4sBB10x16xQQ4xHHHHH")  # of a 64-bit ELF file: what is read of it
_SEGMENT = struct.Struct("<8xQ16xQ16x")
_LITTLE_ENDIAN, _64_BITS = 1, 2


def check_intact(libraries: Iterable[Path]) -> None:
    """Raises ImportError, with one sentence, for the first library that was cut off; other faults the loader finds."""
    for path in libraries:
        try:
            with path.open("rb") as file:
                size, needed = os.fstat(file.fileno()).st_size, _needed(file.read(4096))
        except OSError:
            continue
        if size < needed:
            raise ImportError(f"{path} was cut off: it has {size} of {needed} bytes; build it again with `make build`")


def _needed(begin: bytes) -> int:
    """How long a file with this beginning must be; 0 for a format that is not this one."""
    if len(begin) < _HEADER.size or not begin.startswith(b"\x7fELF"):
        return 0
    _, bits, order, segments, sections, _, segment_size, segment_count, section_size, section_count = _HEADER.unpack(
        begin[: _HEADER.size]
    )
    if (bits, order) != (_64_BITS, _LITTLE_ENDIAN):
        return 0
    ends = [sections + section_size * section_count, segments + segment_size * segment_count]
    for number in range(segment_count):
        row = begin[segments + number * segment_size :][: _SEGMENT.size]
        if len(row) == _SEGMENT.size:
            offset, length = _SEGMENT.unpack(row)
            ends.append(offset + length)
    return max(ends)

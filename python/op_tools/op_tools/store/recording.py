"""The files of a recorded run.

    <root>/rank<rank>_pid<pid>.jsonl     a line of JSON about the run, then a line for each thing that was recorded
    <root>/memory/<digest>.safetensors   the memory of tensors, by content

A line is appended after the memory that it names: what a killed process leaves behind is readable to its last line.
Tensors of more than `whole` elements are kept as a sketch (see sketch.py).
"""

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from diopigen.atomic import MALFORMED, append
from op_tools.store.json_values import to_json
from op_tools.store.memory import MemoryWriter, Record
from op_tools.store.sketch import sketch, statistics
from op_tools.values import extent, mapped, tensors_in

FORMAT = 1
DEFAULT = "op_record_results"
WHOLE = 1 << 16
CALL, MODULE, GRADIENTS, WEIGHTS = "call", "module", "gradients", "weights"  # kinds of lines

Facts = Callable[[torch.Tensor], Record]


class BadRecording(ValueError):
    """A folder or file that is no recording, or one that is damaged; the text says which and why."""


class RecordingWriter:
    """Appends to the file of this process below `root`, which is made with the first line."""

    def __init__(self, root: Path, *, whole: int = WHOLE) -> None:
        self.root, self.whole = root, whole
        self.lines = 0
        self._lock = threading.Lock()
        self._path: Path | None = None

    def held(self, value: Any, facts: Facts = lambda _: {}) -> Any:
        """Arguments or results as JSON; the memory of tensors is written. `facts` adds to what is said of a tensor."""
        memory = MemoryWriter(self.root)
        tensors = list({id(tensor): tensor for _, tensor in tensors_in(value)}.values())
        hosts = {id(tensor): _host(tensor) for tensor in tensors}
        small = [host for host in hosts.values() if host.numel() <= self.whole]
        records = memory.records(small)
        told = {key: {**(records.get(id(host)) or _sketched(host, memory))} for key, host in hosts.items()}
        for tensor in tensors:
            told[id(tensor)].update(facts(tensor))
        return mapped(value, lambda leaf: told[id(leaf)] if isinstance(leaf, torch.Tensor) else _plain(leaf))

    def append(self, line: Record) -> None:
        """Adds a line; it is with the system when this returns."""
        with self._lock:
            if self._path is None:
                self._path = self.root / f"rank{rank()}_pid{os.getpid()}.jsonl"
                self.root.mkdir(parents=True, exist_ok=True)
                _append(self._path, _header())
            _append(self._path, line)
            self.lines += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What one process recorded."""

    path: Path
    header: Record
    lines: tuple[Record, ...]

    @property
    def rank(self) -> int:
        return int(self.header["rank"])

    @property
    def root(self) -> Path:
        """Where the memory lies."""
        return self.path.parent

    def of(self, *kinds: str) -> list[Record]:
        """The lines of these kinds, in order."""
        return [line for line in self.lines if line["kind"] in kinds]


def rank() -> int:
    """Of this process among those of a distributed run; 0 where there is none."""
    text = os.environ.get("RANK", "")
    if text.isdecimal():
        return int(text)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    return 0


def recordings(place: Path) -> list[Recording]:
    """Every process of a recorded run, by rank: of a folder, or one file. Raises BadRecording."""
    paths = [place] if place.is_file() else sorted(place.glob("rank*_pid*.jsonl"), key=_order)
    if not paths:
        raise BadRecording(f"{place} holds no recording; make one with `op-tools run SCRIPT --record {place}`")
    return [read_recording(path) for path in paths]


def read_recording(path: Path) -> Recording:
    """One file; a last line that was cut off is left out. Raises BadRecording."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadRecording(f"{path} cannot be read: {error}") from None
    lines = list(_parsed(path, text))
    header = lines[0] if lines else {}
    if header.get("kind") != "recording":
        raise BadRecording(f"{path} is no recording; make one with `op-tools run SCRIPT --record DIR`")
    if header.get("format") != FORMAT:
        raise BadRecording(f"{path} is of format {header.get('format')}; this version reads {FORMAT}")
    return Recording(path=path, header=header, lines=tuple(lines[1:]))


def _parsed(path: Path, text: str) -> Iterator[Record]:
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        try:
            found = json.loads(line)
            if not isinstance(found, dict) or "kind" not in found:
                raise ValueError("not a line of a recording")
        except MALFORMED as error:
            if not line.endswith("\n"):  # the process was killed while it wrote
                return
            raise BadRecording(f"{path}:{number}: {error}") from None
        yield found


def _order(path: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", path.name))


def _append(path: Path, line: Record) -> None:
    append(path, (json.dumps(line, separators=(",", ":"), default=str) + "\n").encode())


def _header() -> Record:
    return {
        "kind": "recording",
        "format": FORMAT,
        "rank": rank(),
        "pid": os.getpid(),
        "torch": torch.__version__,
        "command": sys.argv,
    }


def _host(tensor: torch.Tensor) -> torch.Tensor:
    """On the CPU; views of much more memory than they show are copied."""
    host = tensor.detach().resolve_conj().resolve_neg().cpu()
    return host.contiguous() if extent(host) > 2 * host.numel() else host


def _sketched(host: torch.Tensor, memory: MemoryWriter) -> Record:
    sums = sketch(host)
    return {
        "sketch": memory.records([sums])[id(sums)],
        "dtype": str(host.dtype).removeprefix("torch."),
        "shape": list(host.shape),
        **statistics(host),
    }


def _plain(value: Any) -> Any:
    try:
        return to_json(value)
    except TypeError:
        return {"other": type(value).__name__}

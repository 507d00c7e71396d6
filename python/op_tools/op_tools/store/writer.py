"""Writes captured calls."""

import json
import threading
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from diopigen.atomic import write_bytes
from op_tools.calls import OperatorCall, location
from op_tools.contract import entry_of
from op_tools.describe import short
from op_tools.results import stamp
from op_tools.store import layout
from op_tools.store.json_values import to_json
from op_tools.store.memory import MemoryWriter, Record
from op_tools.values import mapped, tensors_in


class CaptureWriter:
    """Writes calls below `root` until quotas are used up: `per_operator` calls of each overload, `total` bytes of
    memory.

    `written` counts calls by overload, `left` those beyond the quotas or that hold what cannot be kept, with the
    reason.
    """

    def __init__(self, root: Path, *, per_operator: int | None = None, total: int | None = None) -> None:
        self.root = root
        self._per_operator, self._total = per_operator, total
        self._bytes = 0
        self._lock = threading.Lock()
        self.written: Counter[str] = Counter()
        self.left: Counter[tuple[str, str]] = Counter()

    def has_room(self, call: OperatorCall) -> bool:
        """Whether the quotas allow another call of the operator; counted where they do not."""
        name = call.overload.name
        if self._per_operator is not None and self.written[name] >= self._per_operator:
            self.left[name, f"{self._per_operator} are kept"] += 1
            return False
        if self._total is not None and self._bytes >= self._total:
            self.left[name, f"{self._total} bytes are used"] += 1
            return False
        return True

    def write(
        self, before: OperatorCall, outputs: dict[str, torch.Tensor], *, device: str, mismatch: Any = None
    ) -> Path | None:
        """Keeps a call: `before` has copies of its arguments on the CPU, as they were; `outputs` are what it gave.

        Gives the call's folder, or None where it holds what cannot be kept, or more than the quota has left.
        """
        memory = MemoryWriter(self.root, waits=True)
        after = {place: tensor.detach().resolve_conj().resolve_neg().cpu() for place, tensor in outputs.items()}
        try:
            given, found = _held(before.given, memory), _held(after, memory)
        except TypeError as reason:
            self.left[before.overload.name, str(reason)] += 1
            return None
        if not self._reserved(before.overload.name, memory.used):
            return None
        folder = layout.call_folder(self.root, before.title, before.number, stamp())
        memory.write()
        write_bytes(folder / layout.INPUT, _json(_input(before, given, device)))
        result: Record = {"format": layout.FORMAT, "outputs": found}
        if mismatch is not None:
            result["mismatch"] = {**asdict(mismatch), "text": mismatch.text}
        write_bytes(folder / layout.OUTPUT, _json(result))
        with self._lock:
            self.written[before.overload.name] += 1
        return folder

    def _reserved(self, operator: str, size: int) -> bool:
        """Takes bytes of the quota; counted where it has not as many left."""
        with self._lock:
            if self._total is not None and self._bytes + size > self._total:
                self.left[operator, f"it would be more than {self._total} bytes"] += 1
                return False
            self._bytes += size
            return True


def _input(call: OperatorCall, given: Any, device: str) -> Record:
    entry = entry_of(call.overload)
    node, sequence = call.node
    return {
        "format": layout.FORMAT,
        "operator": call.overload.name,
        "function": call.function,
        "symbols": [] if entry is None else list(entry.symbols),
        "number": call.number,
        "phase": call.phase,
        "node": node,
        "sequence": sequence,
        "location": location(),
        "device": device,
        "torch": torch.__version__,
        "shown": {name: short(value) for name, value in call.given.items()},
        "arguments": given,
    }


def _held(value: Any, memory: MemoryWriter) -> Any:
    """Arguments or outputs as JSON: tensors as records, lists as lists. Raises TypeError."""
    records = memory.records(tensor for _, tensor in tensors_in(value))
    return mapped(value, lambda leaf: records[id(leaf)] if isinstance(leaf, torch.Tensor) else to_json(leaf))


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, default=str) + "\n").encode()

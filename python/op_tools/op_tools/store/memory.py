"""The memory of tensors: written once for equal contents, and tensors that share memory read back as sharing it."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save

from diopigen.atomic import write_bytes
from op_tools.store.layout import memory_file
from op_tools.values import begin_of, extent

Record = dict[str, Any]


class MemoryWriter:
    """Keeps the memory of tensors of one call; `used` are the bytes that were new.

    With `waits` they are written by write(), when their number is first needed.
    """

    def __init__(self, root: Path, *, waits: bool = False) -> None:
        self._root = root
        self._waits = waits
        self._waiting: dict[Path, bytes] = {}
        self.used = 0

    def records(self, tensors: Iterable[torch.Tensor]) -> dict[int, Record]:
        """By id of a tensor what JSON says of it. The tensors are on the CPU; those of one storage are kept
        together."""
        distinct = list({id(tensor): tensor for tensor in tensors}.values())
        shared: dict[tuple[int, torch.dtype], list[torch.Tensor]] = {}
        for tensor in distinct:
            shared.setdefault((tensor.untyped_storage()._cdata, tensor.dtype), []).append(tensor)
        found: dict[int, Record] = {}
        for number, group in enumerate(shared.values()):
            begin = begin_of(group)
            end = max(tensor.storage_offset() + extent(tensor) for tensor in group)
            digest = self._keep(group[0].detach().as_strided((end - begin,), (1,), begin))
            for tensor in group:
                found[id(tensor)] = {
                    "tensor": digest,
                    "memory": number,  # those with one number share it; equal contents alone do not
                    "dtype": str(tensor.dtype).removeprefix("torch."),
                    "shape": list(tensor.shape),
                    "stride": list(tensor.stride()),
                    "storage_offset": tensor.storage_offset() - begin,
                }
        return found

    def _keep(self, memory: torch.Tensor) -> str:
        data = save({"memory": memory.contiguous()})
        digest = _digest(data)
        path = memory_file(self._root, digest)
        if path not in self._waiting and not path.exists():
            self._waiting[path] = data
            self.used += len(data)
        if not self._waits:
            self.write()
        return digest

    def write(self) -> None:
        """Writes what waits."""
        for path, data in self._waiting.items():
            write_bytes(path, data)
        self._waiting = {}


class MemoryReader:
    """Tensors of one call on a device; records that name one memory share it."""

    def __init__(self, root: Path, device: torch.device) -> None:
        self._root, self._device = root, device
        self._memories: dict[tuple[str, int], torch.Tensor] = {}

    def tensor(self, record: Record) -> torch.Tensor:
        """Raises ValueError for a memory that is missing or broken."""
        place = record["tensor"], record["memory"]
        memory = self._memories.get(place)
        if memory is None:
            memory = self._memories[place] = self._read(record["tensor"])
        return memory.as_strided(record["shape"], record["stride"], record["storage_offset"])

    def _read(self, digest: str) -> torch.Tensor:
        path = memory_file(self._root, digest)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ValueError(f"{path} cannot be read: {error.strerror}") from None
        if _digest(data) != digest:
            raise ValueError(f"{path} cannot be read: its content is not what was written")
        return load(data)["memory"].to(self._device)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=20).hexdigest()

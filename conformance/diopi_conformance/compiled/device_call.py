"""A case as a call on the device: its tensors made there, its results read back for the judge."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from diopi_conformance.cases.plan import CasePlan
from diopi_conformance.judgement.compare import judge
from diopi_conformance.outcome import Outcome
from diopi_conformance.prepare import Buffer, Prepared
from diopi_conformance.values.elements import Array
from diopigen.vocabulary.checks import CHECK
from diopigen.vocabulary.torch_dtypes import DTYPE_OF, TORCH_DTYPES

_HOST = {"bool*": np.uint8, "double*": np.float64, "float*": np.float32, "int64*": np.int64}


@dataclass(slots=True, kw_only=True)
class DeviceCall(ABC):
    """One call whose tensors are on the device; what computes it is a subclass's."""

    plan: CasePlan
    prepared: Prepared
    storages: list[torch.Tensor]  # the whole memory behind each buffer

    @property
    def random(self) -> bool:
        return CHECK[self.prepared.function.check].random

    @property
    @abstractmethod
    def tensors(self) -> dict[str, torch.Tensor]:
        """Those among the arguments, by where they stand, e.g. "self", "tensors.2"."""

    @abstractmethod
    def text(self, read: Mapping[str, str], bind: Callable[[Any], str]) -> str:
        """The call in Python, as an expression; `read` says how each tensor is spelled, `bind` names an object."""

    @abstractmethod
    def run(self) -> Any:
        """Eagerly."""

    @abstractmethod
    def returned(self, result: Any) -> dict[str, Any]:
        """What was computed, by written parameter."""

    def judged(self, result: Any) -> Outcome:
        """What the suite says of the results and of what the call wrote."""
        found = self.returned(result)
        for param, value in list(found.items()):
            if isinstance(value, list | tuple):
                found.update({f"{param}[{index}]": item for index, item in enumerate(value)})
        made = [found.get(slot.label) for slot in self.prepared.slots]
        host = [param for param in self.prepared.function.params if param.role == "host"]
        head = {
            "outcome": "returned",
            "status": 0,
            "synchronized": True,
            "error": "",
            "damaged": [],
            "scratch_damaged": False,
            "host": [_bytes_of(found.get(param.name), param.passing) for param in host],
            "new": [None if tensor is None else self._facts(tensor) for tensor in made],
        }
        blobs = [self._after(index, buffer, found) for index, buffer in enumerate(self.prepared.buffers)]
        blobs += [b"" if tensor is None else words_of(_in_memory_order(tensor)).tobytes() for tensor in made]
        return judge(self.plan, self.prepared, head, blobs)

    def _after(self, index: int, buffer: Buffer, returned: dict[str, Any]) -> bytes:
        words = words_of(self.storages[index])
        given = returned.get(buffer.label)
        if buffer.expected is not None and isinstance(given, torch.Tensor):
            if tuple(given.shape) != tuple(buffer.layout.sizes):
                return words.tobytes()  # left as it was: poisoned
            words = words.copy()
            words[buffer.layout.positions()] = words_of(given.to(TORCH_DTYPES[buffer.dtype])).reshape(
                buffer.layout.sizes
            )
        return words.tobytes()

    def _facts(self, tensor: torch.Tensor) -> dict[str, Any]:
        number = self.plan.dtypes.get(DTYPE_OF[tensor.dtype].name, (-1,))[0]
        dense = tensor if _is_dense(tensor) else torch.empty(tensor.shape, device="meta")
        return {"sizes": list(tensor.shape), "strides": list(dense.stride()), "dtype": number, "offset": 0}


def storages_of(prepared: Prepared, device: str) -> list[torch.Tensor]:
    """The memory behind each buffer, as it is before the call."""
    return [on_device(buffer.before, buffer.dtype, device) for buffer in prepared.buffers]


def view_of(buffer: Buffer, storage: torch.Tensor) -> torch.Tensor:
    """The tensor that a buffer is, over its memory."""
    place = buffer.layout
    return torch.as_strided(storage, place.sizes, place.strides, place.offset)


def values_of(prepared: Prepared, storages: list[torch.Tensor]) -> dict[str, Any]:
    """What the function reads, by parameter: tensors on the device, the rest as it is."""
    views = [view_of(buffer, storage) for buffer, storage in zip(prepared.buffers, storages, strict=True)]
    values: dict[str, Any] = dict(prepared.values)
    for param, arg in zip(prepared.function.params, prepared.request["args"], strict=True):
        if param.role in ("in", "inout") and arg["pass"] in ("tensor", "tensors"):
            value = arg["value"]
            if isinstance(value, list):
                values[param.name] = [None if index is None else views[index] for index in value]
            else:
                values[param.name] = None if value is None else views[value]
    return values


def places(named: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every value, those of lists one by one, with where it stands."""
    for name, value in named.items():
        if isinstance(value, list | tuple):
            yield from ((f"{name}.{index}", item) for index, item in enumerate(value))
        else:
            yield name, value


def spelled(name: str, value: Any, read: Mapping[str, str]) -> str:
    """An argument in Python."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(spelled(f'{name}.{index}', item, read) for index, item in enumerate(value))}]"
    if isinstance(value, torch.Tensor):
        return read[name]
    if isinstance(value, float) and not math.isfinite(value):
        return "math.nan" if math.isnan(value) else "math.inf" if value > 0 else "-math.inf"
    return repr(value)


def words_of(tensor: torch.Tensor) -> Array:
    """The elements as the suite stores them, in row-major order."""
    here = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if here.dtype == torch.bfloat16:
        here = here.view(torch.int16)
    if here.dtype == torch.bool:
        here = here.view(torch.uint8)
    words: Array = here.numpy()
    return words.view(np.uint16) if tensor.dtype == torch.bfloat16 else words


def _is_dense(tensor: torch.Tensor) -> bool:
    return bool(torch.ops.aten.is_non_overlapping_and_dense(tensor))


def _in_memory_order(tensor: torch.Tensor) -> torch.Tensor:
    """All elements in one dimension: as they lie in memory, or row-major where there are gaps."""
    if _is_dense(tensor):
        return torch.as_strided(tensor, (tensor.numel(),), (1,), tensor.storage_offset())
    return tensor.reshape(-1)


def on_device(words: Array, name: str, device: str) -> torch.Tensor:
    """Words of the suite as a tensor."""
    dtype = TORCH_DTYPES[name]
    if dtype == torch.bfloat16:
        return torch.from_numpy(words.view(np.int16)).view(dtype).to(device)
    if dtype == torch.bool:
        return torch.from_numpy(words).view(dtype).to(device)
    return torch.from_numpy(words.copy()).to(device)


def _bytes_of(value: Any, passing: str) -> str:
    if isinstance(value, torch.Tensor):
        value = value.item()
    return np.asarray(value if value is not None else 0, dtype=_HOST[passing]).tobytes().hex()

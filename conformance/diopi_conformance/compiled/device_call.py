"""A case as a call of an ATen operator on the device: its tensors made there, its results read back for the judge."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from diopi_conformance.cases.plan import Plan
from diopi_conformance.expected.overloads import applies, arguments, overload, written_arguments
from diopi_conformance.expected.reference_call import Call
from diopi_conformance.judgement.compare import judge
from diopi_conformance.outcome import Outcome
from diopi_conformance.prepare import Buffer, Prepared
from diopi_conformance.values.elements import Array

_TORCH = {
    "i8": torch.int8,
    "u8": torch.uint8,
    "i16": torch.int16,
    "u16": torch.uint16,
    "i32": torch.int32,
    "u32": torch.uint32,
    "i64": torch.int64,
    "u64": torch.uint64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "bool": torch.bool,
    "c64": torch.complex64,
    "c128": torch.complex128,
}
_NAMES = {dtype: name for name, dtype in _TORCH.items()}
_HOST = {"bool*": np.uint8, "double*": np.float64, "float*": np.float32, "int64*": np.int64}


class Unsaid(Exception):
    """No operator of ATen says what the case asks for."""


@dataclass(slots=True, kw_only=True)
class DeviceCall:
    """One call: the operator, and its arguments with tensors on the device."""

    plan: Plan
    prepared: Prepared
    entry: Mapping[str, Any]  # of the plan: how an overload stands for the function
    storages: list[torch.Tensor]  # the whole memory behind each buffer
    named: dict[str, Any] = field(default_factory=dict)

    @property
    def random(self) -> bool:
        return self.prepared.function.check == "distribution"

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Those among the arguments, by where they stand. ex) "self", "tensors.2"."""
        found: dict[str, torch.Tensor] = {}
        for name, value in self.named.items():
            for place, item in _places(name, value):
                if isinstance(item, torch.Tensor):
                    found[place] = item
        return found

    def run(self) -> list[Any]:
        """Eagerly; the results as a list."""
        return listed(overload(self.entry["overload"])(**self.named))

    def text(self, read: Mapping[str, str]) -> str:
        """The call in Python, as an expression; `read` says how each tensor is spelled."""
        given = [f"{name}={_text(name, value, read)}" for name, value in self.named.items()]
        packet, _, which = str(self.entry["overload"]).partition(".")
        return f"torch.ops.aten.{packet}.{which or 'default'}({', '.join(given)})"

    def judged(self, results: list[Any]) -> Outcome:
        """What the suite says of the results and of what the call wrote."""
        returned = self._returned(results)
        made = [returned.get(slot.label) for slot in self.prepared.slots]
        head = {
            "outcome": "returned",
            "status": 0,
            "synchronized": True,
            "error": "",
            "damaged": [],
            "scratch_damaged": False,
            "host": [
                _bytes_of(returned.get(p.name), p.passing) for p in self.prepared.function.params if p.role == "host"
            ],
            "new": [None if tensor is None else self._facts(tensor) for tensor in made],
        }
        blobs = [self._after(index, buffer, returned) for index, buffer in enumerate(self.prepared.buffers)]
        blobs += [b"" if tensor is None else words_of(_in_memory_order(tensor)).tobytes() for tensor in made]
        return judge(self.plan, self.prepared, head, blobs)

    def _returned(self, results: list[Any]) -> dict[str, Any]:
        """By the label of the suite, what the operator gave for a written parameter."""
        found: dict[str, Any] = {}
        several = len(self.entry["returns"]) > 1 or not _gives_list(self.entry["overload"])
        for param, index in self.entry["returns"].items():
            value = results[index] if several else results
            found[param] = value
        for param, name in self.entry["writes"].items():
            found[param] = self.named[name]
        for param, value in list(found.items()):
            if isinstance(value, list | tuple):
                found.update({f"{param}[{index}]": item for index, item in enumerate(value)})
        return found

    def _after(self, index: int, buffer: Buffer, returned: dict[str, Any]) -> bytes:
        words = words_of(self.storages[index])
        given = returned.get(buffer.label)
        if buffer.expected is not None and isinstance(given, torch.Tensor):
            if tuple(given.shape) != tuple(buffer.layout.sizes):
                return words.tobytes()  # left as it was: poisoned
            words = words.copy()
            words[buffer.layout.positions()] = words_of(given.to(_TORCH[buffer.dtype])).reshape(buffer.layout.sizes)
        return words.tobytes()

    def _facts(self, tensor: torch.Tensor) -> dict[str, Any]:
        number = self.plan.dtypes.get(_NAMES[tensor.dtype], (-1,))[0]
        dense = tensor if _is_dense(tensor) else torch.empty(tensor.shape, device="meta")
        return {"sizes": list(tensor.shape), "strides": list(dense.stride()), "dtype": number, "offset": 0}


def device_calls(plan: Plan, prepared: Prepared, device: str) -> list[dict[str, Any]]:
    """The entries of the plan that say the case. Raises Unsaid where none does."""
    call = _call(plan, prepared, _tensors(prepared, device))
    entries = [entry for entry in prepared.function.references if applies(entry, call)]
    if not entries:
        raise Unsaid("no operator of ATen says what the case asks for")
    return entries


def device_call(plan: Plan, prepared: Prepared, entry: Mapping[str, Any], device: str) -> DeviceCall:
    """The call with memory of its own on the device."""
    storages = _tensors(prepared, device)
    call = _call(plan, prepared, storages)
    made = DeviceCall(plan=plan, prepared=prepared, entry=entry, storages=storages)
    made.named = arguments(entry, call, own=lambda tensor: tensor)
    outputs = {index: param for param, index in entry["returns"].items()}
    for index, name in enumerate(written_arguments(entry)):
        param = outputs.get(index)
        place = next((i for i, b in enumerate(prepared.buffers) if b.label == param), None)
        made.named[name] = (
            torch.empty(0, device=device) if place is None else _viewed(prepared.buffers[place], storages[place])
        )
    return made


def listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


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


def _tensors(prepared: Prepared, device: str) -> list[torch.Tensor]:
    return [_on_device(buffer.before, buffer.dtype, device) for buffer in prepared.buffers]


def _on_device(words: Array, name: str, device: str) -> torch.Tensor:
    dtype = _TORCH[name]
    if dtype == torch.bfloat16:
        return torch.from_numpy(words.view(np.int16)).view(dtype).to(device)
    if dtype == torch.bool:
        return torch.from_numpy(words).view(dtype).to(device)
    return torch.from_numpy(words.copy()).to(device)


def _viewed(buffer: Buffer, storage: torch.Tensor) -> torch.Tensor:
    place = buffer.layout
    return torch.as_strided(storage, place.sizes, place.strides, place.offset)


def _call(plan: Plan, prepared: Prepared, storages: list[torch.Tensor]) -> Call:
    views = [_viewed(buffer, storage) for buffer, storage in zip(prepared.buffers, storages, strict=True)]
    values: dict[str, Any] = dict(prepared.values)
    for param, arg in zip(prepared.function.params, prepared.request["args"], strict=True):
        if param.role in ("in", "inout") and arg["pass"] in ("tensor", "tensors"):
            value = arg["value"]
            if isinstance(value, list):
                values[param.name] = [None if index is None else views[index] for index in value]
            else:
                values[param.name] = None if value is None else views[value]
    return Call(plan=plan, function=prepared.function, case=prepared.case, dtypes=prepared.case.dtypes, values=values)


def _gives_list(name: str) -> bool:
    returns = overload(name)._schema.returns  # type: ignore[attr-defined]
    return len(returns) == 1 and str(returns[0].type).startswith("List[")


def _bytes_of(value: Any, passing: str) -> str:
    if isinstance(value, torch.Tensor):
        value = value.item()
    return np.asarray(value if value is not None else 0, dtype=_HOST[passing]).tobytes().hex()


def _places(name: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, list | tuple):
        return [(f"{name}.{index}", item) for index, item in enumerate(value)]
    return [(name, value)]


def _text(name: str, value: Any, read: Mapping[str, str]) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_text(f'{name}.{index}', item, read) for index, item in enumerate(value))}]"
    if isinstance(value, torch.Tensor):
        return read[name]
    if isinstance(value, float) and not math.isfinite(value):
        return "math.nan" if math.isnan(value) else "math.inf" if value > 0 else "-math.inf"
    return repr(value)

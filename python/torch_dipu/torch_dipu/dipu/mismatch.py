"""A call whose result the CPU does not share: what differs, and a file that runs the call again."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torch_dipu import _native

_C = _native.load()

COMPARE = 2  # the control bit of operators that are compared with the CPU
_FORMAT = 1
# numpy has no such numbers: their bits travel as integers.
_AS_BITS = {torch.bfloat16: torch.int16}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    operator: str  # e.g. "aten::mul.Tensor"
    value: str  # e.g. "output 0", "written self", "harmed other"
    what: str  # e.g. "Float[2, 3] strides [3, 1] differs"
    index: list[int]  # of the worst element
    device: float
    cpu: float
    error: float  # absolute
    tolerance: float  # what was allowed there
    ulp: float  # the error in units of the last place
    wrong: int  # elements beyond tolerance
    elements: int
    text: str  # all of it in one line


def saver(folder: Path) -> Callable[[str, dict[str, Any], dict[str, Any]], None]:
    """What is called with each mismatch: it writes `folder`/<operator>-<number>.npz, whole or not at all."""

    def save(operator: str, arguments: dict[str, Any], mismatch: dict[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        stem = operator.removeprefix("aten::").replace(".", "_")
        number = sum(1 for _ in folder.glob(f"{stem}-*.npz"))
        path = folder / f"{stem}-{number}.npz"
        arrays: dict[str, np.ndarray[Any, Any]] = {}
        record = {
            "format": _FORMAT,
            "operator": operator,
            "arguments": {name: _packed(value, arrays) for name, value in arguments.items()},
            "mismatch": mismatch,
        }
        whole = path.with_suffix(".part")
        with whole.open("wb") as file:
            np.savez(file, record=np.array(json.dumps(record)), **arrays)  # type: ignore[arg-type]
        whole.rename(path)

    return save


def _packed(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    """A JSON form of an argument; tensors leave their storage in `arrays`."""
    if isinstance(value, torch.Tensor):
        # The copies that the comparison made are dense: no byte is stored that no element shows.
        dense = value if torch.empty_like(value).stride() == value.stride() else value.contiguous()
        flat = torch.as_strided(dense, (dense.numel(),), (1,), dense.storage_offset())
        key = f"tensor_{len(arrays)}"
        arrays[key] = (flat.view(_AS_BITS[flat.dtype]) if flat.dtype in _AS_BITS else flat).numpy()
        dtype = str(value.dtype).removeprefix("torch.")
        return {"tensor": key, "dtype": dtype, "shape": list(dense.shape), "stride": list(dense.stride())}
    if isinstance(value, list):
        return [_packed(item, arrays) for item in value]
    return value


def _unpacked(value: Any, arrays: Any) -> Any:
    if isinstance(value, dict):
        dtype = getattr(torch, value["dtype"])
        flat = torch.from_numpy(arrays[value["tensor"]].copy())
        flat = flat.view(dtype) if dtype in _AS_BITS else flat
        return torch.as_strided(flat, value["shape"], value["stride"]).to("dipu")
    if isinstance(value, list):
        return [_unpacked(item, arrays) for item in value]
    return value


def replay(path: str | Path) -> Mismatch | None:
    """Run the call of a dumped mismatch again on the device; what differs now, or None.

    Raises ValueError for a file that is none of these.
    """
    with np.load(path, allow_pickle=False) as arrays:
        if "record" not in arrays:
            raise ValueError(f"{path} is not the dump of a mismatch")
        record = json.loads(str(arrays["record"]))
        name = record["operator"]
        base, _, overload = name.removeprefix("aten::").partition(".")
        operator = getattr(getattr(torch.ops.aten, base), overload or "default")
        given = {key: _unpacked(value, arrays) for key, value in record["arguments"].items()}
    _C.reset_comparisons()
    _C.set_on_mismatch("log")
    _C.set_control(name.replace(".", r"\."), COMPARE)
    try:
        operator(**given)
    finally:
        _C.set_control("", COMPARE)
    worst = next((row[-1] for row in _C.comparison_report() if row[0] == name), None)
    return None if worst is None else Mismatch(**worst)

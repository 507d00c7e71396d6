"""What a run of torch's samples measured of each operator, as `op-tools torch-tests --coverage` reports it."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import op_tools
from diopigen.records.codec import OtherVersion, record_of

_COUNTS = ("calls", "compared", "fallen", "apart", "wrong")
NATIVE, FALLBACK, WRONG, UNTESTED = "native", "fallback", "wrong", "untested"


class NoMeasurement(ValueError):
    """A file has no measurement, or several do not belong together; the text says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The calls of one overload in one dtype."""

    overload: str  # e.g. "add.Tensor"
    dtype: str  # e.g. "float32"
    calls: int
    compared: int  # with the CPU
    fallen: int  # calls in which something ran on the CPU
    apart: int  # calls with a result that differs from the CPU's, which no result of a sample shows
    wrong: int  # others that differ
    causes: dict[str, int]  # e.g. {"aten::special_i1.out (no kernel)": 3}
    example: str  # of what was wrong

    @property
    def verdict(self) -> str:
        return WRONG if self.wrong else FALLBACK if self.fallen else NATIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Of one vendor with one release of torch."""

    vendor: str  # e.g. "droplet"
    torch: str  # e.g. "2.15.0+cpu"
    schemas: str  # the SHA-256 of the schemas' files
    harness: str  # the same of op_tools
    dtypes: str  # at which samples ran: "float32" or "all"
    shards: tuple[str, ...]  # e.g. ("1/2", "2/2")
    known: tuple[str, ...]  # overloads of this torch
    registered: tuple[str, ...]  # those of them with a kernel of the device
    rows: tuple[Row, ...]
    version: int = 1

    @property
    def release(self) -> str:
        """e.g. "2.15.0"."""
        return self.torch.partition("+")[0]


def measured(calls: Iterable[Sequence[dict[str, Any]]], *, every: bool, shard: str) -> Measured:
    """What the calls of all tests come to, on the dipu that was started."""
    import torch

    module: Any = torch.get_device_module("dipu")
    known = sorted(name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::"))
    served = [name for name in known if torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1")]
    return Measured(
        vendor=module.vendor_type.lower(),
        torch=torch.__version__,
        schemas=_schemas(),
        harness=_digest(Path(op_tools.__file__).parent, "**/*.py"),
        dtypes="all" if every else str(torch.float32).removeprefix("torch."),
        shards=(shard,),
        known=tuple(name.removeprefix("aten::") for name in known),
        registered=tuple(name.removeprefix("aten::") for name in served),
        rows=_added(_row(call) for several in calls for call in several),
    )


def read_measured(path: Path) -> Measured:
    """Of the report of a run. Raises NoMeasurement."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or "coverage" not in found:
            raise NoMeasurement(f"{path}: no measurement; 'op-tools torch-tests --suite opinfo --coverage' makes one")
        return record_of(Measured, found["coverage"])
    except OSError as error:
        raise NoMeasurement(f"{path} cannot be read: {error.strerror}") from None
    except OtherVersion as error:
        raise NoMeasurement(f"{path}: {error}") from None
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, NoMeasurement):
            raise
        raise NoMeasurement(f"{path}: no report of op-tools torch-tests: {error}") from None


def together(several: Sequence[Measured]) -> tuple[Measured, ...]:
    """One for each vendor and release, in order, of the shards of its run.

    Raises NoMeasurement where shards differ in what they were measured with, or one is there twice.
    """
    found: dict[tuple[str, tuple[int, ...]], Measured] = {}
    for one in several:
        key = one.vendor, tuple(int(part) for part in one.release.split(".") if part.isdigit())
        found[key] = one if key not in found else _joined(found[key], one)
    return tuple(found[key] for key in sorted(found))


def _joined(a: Measured, b: Measured) -> Measured:
    what = f"{a.vendor} with torch {a.release}"
    for name in ("torch", "schemas", "harness", "dtypes", "known", "registered"):
        if getattr(a, name) != getattr(b, name):
            raise NoMeasurement(f"the runs of {what} differ in '{name}': measure all shards with the same")
    if twice := set(a.shards) & set(b.shards):
        raise NoMeasurement(f"the part {min(twice)} of {what} is there twice")
    values = {name: getattr(a, name) for name in ("vendor", "torch", "schemas", "harness", "dtypes", "known")}
    rows, shards = _added((*a.rows, *b.rows)), tuple(sorted((*a.shards, *b.shards)))
    return Measured(**values, registered=a.registered, shards=shards, rows=rows)


def _row(call: dict[str, Any]) -> Row:
    counts = {name: call.get(name, 0) for name in _COUNTS}
    overload = call["overload"].removeprefix("aten.").removesuffix(".default")
    texts = {"causes": call.get("causes", {}), "example": call.get("example", "")}
    return Row(overload=overload, dtype=call["dtype"], **counts, **texts)


def _added(rows: Iterable[Row]) -> tuple[Row, ...]:
    """One for each overload and dtype, in order."""
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = row.overload, row.dtype
        found[key] = row if key not in found else _sum(found[key], row)
    return tuple(found[key] for key in sorted(found))


def _sum(a: Row, b: Row) -> Row:
    counts = {name: getattr(a, name) + getattr(b, name) for name in _COUNTS}
    causes = {text: a.causes.get(text, 0) + b.causes.get(text, 0) for text in sorted({*a.causes, *b.causes})}
    return Row(overload=a.overload, dtype=a.dtype, **counts, causes=causes, example=a.example or b.example)


def _schemas() -> str:
    from diopigen.project import contract

    return _digest(contract().schemas, "**/*.yaml")


def _digest(folder: Path, pattern: str) -> str:
    """Of names and contents; what lies elsewhere has no part in it."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob(pattern)):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()

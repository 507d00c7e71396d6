"""How far a value of one run is from one of the other, both read from disk."""

import math
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import torch

from diopi_conformance.judgement.tolerance import precision_of, ulp
from op_tools.judgement import DTYPES
from op_tools.store.memory import MemoryReader, Record
from op_tools.store.sketch import columns_of, sketch, statistics

_CPU = torch.device("cpu")
_KEPT = 256  # tensors in memory


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor that a run recorded."""

    root: Path
    record: Record

    @property
    def dtype(self) -> str:
        """e.g. "float32"."""
        return str(self.record["dtype"])

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.record["shape"])

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def is_whole(self) -> bool:
        """Whether every element was kept."""
        return "tensor" in self.record

    @property
    def unit(self) -> float:
        """The unit roundoff of its dtype; 0 for integers."""
        precision = precision_of(self.short) if self.short else None
        return 0.0 if precision is None else 2.0**-precision.digits

    @property
    def short(self) -> str:
        """Its dtype as the schemas write it, e.g. "f32"; empty for integers."""
        return DTYPES.get(getattr(torch, self.dtype), "")

    def elements(self) -> torch.Tensor:
        """As a row, on the CPU, of its own dtype; complex numbers are two each. Raises ValueError."""
        tensor = MemoryReader(self.root, _CPU).tensor(self.record)
        return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).reshape(-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """The distance of two values of as many elements."""

    relative: float  # the 2-norm of the difference, by the greater of both norms; infinite for NaN against numbers
    apart: float  # the 2-norm of the difference
    worst: float  # the largest difference of two elements
    index: tuple[int, ...]  # of that element
    both: tuple[float, float] | None  # that element of each; None where the elements were not kept
    ulp: float | None  # that difference, in units of the last place of the largest element of the first value

    @property
    def text(self) -> str:
        """e.g. "[0, 7] is 1.5 in A and 1.25 in B, 2.1e+06 ULP apart"."""
        steps = "" if self.ulp is None or not math.isfinite(self.ulp) else f", {self.ulp:.3g} ULP apart"
        place = f"{list(self.index)} " if self.index else ""
        if self.both is None:
            return f"{place}differs by about {self.worst:.3g}{steps}"
        return f"{place}is {self.both[0]:.9g} in A and {self.both[1]:.9g} in B{steps}"


SAME = Deviation(relative=0.0, apart=0.0, worst=0.0, index=(), both=None, ulp=0.0)


class Deviations:
    """Measures, and remembers what it read."""

    def __init__(self) -> None:
        self._rows: OrderedDict[tuple[object, ...], torch.Tensor] = OrderedDict()
        self._known: dict[tuple[object, ...], Deviation] = {}

    def between(self, a: Value, b: Value) -> Deviation | None:
        """None where they have not as many elements. Raises ValueError for memory that is missing or broken."""
        if a.numel != b.numel or (a.short == "") != (b.short == ""):
            return None
        key = (*_identity(a), "", *_identity(b))
        if _identity(a)[1:] == _identity(b)[1:] or not a.numel:
            return SAME
        if key not in self._known:
            self._known[key] = self._whole(a, b) if a.is_whole and b.is_whole else self._sketched(a, b)
        return self._known[key]

    def norm(self, value: Value) -> float:
        """The 2-norm of the finite elements; about that where they were not kept."""
        row = self._row(value) if value.is_whole else self._sums(value)[0][: self._height(value)]
        return float(_finite(row).norm())

    @staticmethod
    def _height(value: Value) -> int:
        numel = value.numel * (2 if value.dtype.startswith("complex") else 1)
        return math.ceil(numel / columns_of(numel))

    def _whole(self, a: Value, b: Value) -> Deviation:
        x, y = self._row(a), self._row(b)
        same = (x == y) | (x.isnan() & y.isnan())
        apart = torch.where(same, 0.0, (x - y).abs()).nan_to_num(nan=math.inf)
        worst, where = apart.max(0)
        place = _index(int(where), a)
        return Deviation(
            relative=_relative(float(apart.norm()), float(_finite(x).norm()), float(_finite(y).norm())),
            apart=float(apart.norm()),
            worst=float(worst),
            index=place,
            both=(float(x[where]), float(y[where])),
            ulp=_steps(float(worst), float(_finite(x).abs().max()), a),
        )

    def _sketched(self, a: Value, b: Value) -> Deviation:
        """Estimates: the place is that of the worst element where it stands out."""
        (x, told), (y, other) = self._sums(a), self._sums(b)
        numel = a.numel * (2 if a.dtype.startswith("complex") else 1)
        width = columns_of(numel)
        height = self._height(a)
        apart = (x - y).abs()
        rows, columns = apart[:height], apart[height:]
        where = min(int(rows.argmax()) * width + int(columns.argmax()), numel - 1)
        odd = (told["nan"], told["inf"]) != (other["nan"], other["inf"])
        worst = math.inf if odd else min(float(rows.max()), float(columns.max()))
        norms = (float(x[:height].norm()), float(y[:height].norm()))
        return Deviation(
            relative=math.inf if odd else _relative(float(rows.norm()), *norms),
            apart=math.inf if odd else float(rows.norm()),
            worst=worst,
            index=_index(where, a),
            both=None,
            ulp=_steps(worst, float(told["largest"]), a),
        )

    def _sums(self, value: Value) -> tuple[torch.Tensor, Record]:
        if value.is_whole:
            row = value.elements()
            return sketch(row), statistics(row)
        return Value(value.root, value.record["sketch"]).elements(), value.record

    def _row(self, value: Value) -> torch.Tensor:
        key = _identity(value)
        if key not in self._rows:
            self._rows[key] = value.elements().double()
            if len(self._rows) > _KEPT:
                self._rows.popitem(last=False)
        return self._rows[key]


def _identity(value: Value) -> tuple[object, ...]:
    record = value.record if value.is_whole else value.record["sketch"]
    return (
        str(value.root),
        record["tensor"],
        *record["shape"],
        "",
        *record["stride"],
        record["storage_offset"],
        value.dtype,
        value.record.get("nan"),
        value.record.get("inf"),
    )


def _finite(row: torch.Tensor) -> torch.Tensor:
    return row.nan_to_num(0.0, 0.0, 0.0)


def _relative(apart: float, *norms: float) -> float:
    largest = max(norms)
    if apart == 0 or largest == 0:
        return apart and math.inf
    return apart / largest


def _steps(worst: float, largest: float, value: Value) -> float | None:
    if not value.short:
        return None
    unit = float(ulp(torch.tensor(largest).double().numpy(), value.short))
    return worst / unit if unit else math.inf


def _index(flat: int, value: Value) -> tuple[int, ...]:
    if value.dtype.startswith("complex"):
        flat //= 2
    place = []
    for size in reversed(value.shape):
        flat, position = divmod(flat, size)
        place.append(position)
    return tuple(reversed(place))

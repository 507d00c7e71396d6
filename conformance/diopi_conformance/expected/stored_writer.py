"""Writes expected results for machines without PyTorch; stored_reader.py reads them."""

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diopi_conformance.cases.plan import Case, CasePlan
from diopi_conformance.expected.expectations import SCRATCH, Expectations, Expected
from diopi_conformance.expected.stored_reader import DATA_VERSION, INDEX, DataError, planes, sums
from diopi_conformance.judgement.tolerance import Terms, tolerance
from diopi_conformance.prepare import Prepared, live, prepare
from diopi_conformance.running.forks import ForkDied, Forks, Message, Work
from diopi_conformance.values.elements import rounded
from diopi_conformance.values.inputs import UnfitCase, UnsoundCase, Values
from diopigen.atomic import whole_folder, write_bytes, write_text
from diopigen.vocabulary.checks import CHECK
from diopigen.vocabulary.loaded import DTYPE

LARGEST = 8192  # elements
_SHARD = 256  # cases
_DIGITS = 36  # bits of a result's significand that are kept where an output of fewer is judged by it
_DROPPED = 53 - _DIGITS


def store(
    plan: CasePlan, cases: Sequence[Case], folder: Path, jobs: int, tell: Callable[[int], None], largest: int = LARGEST
) -> tuple[int, int]:
    """Writes results into `folder` in one stroke, in place of results that are there; gives how many, and its bytes.

    Cases with a tensor of more than `largest` elements are left out; the folder knows that. `tell` hears of each shard
    how many cases it has. Raises DataError where the folder holds anything else, or no case is left; Unwritable.
    """
    seed, cases = cases[0].seed, [case for case in cases if case.largest <= largest]
    if not cases:
        raise DataError(f"each of the cases has a tensor of more than {largest} elements; let --largest be more")
    if folder.exists() and not (folder / INDEX).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder} holds something else than results; choose another folder")
    with whole_folder(folder) as partial:
        shards = _shards(plan, cases, partial, jobs, tell)
        index = {
            "version": DATA_VERSION,
            "vendor": plan.vendor,
            "plan": plan.digest,
            "seed": seed,
            "largest": largest,
            "versions": _versions(),
            "shards": shards,
        }
        write_text(partial / INDEX, json.dumps(index, indent=1) + "\n")
    return len(cases), sum(path.stat().st_size for path in folder.iterdir())


def _shards(
    plan: CasePlan, cases: Sequence[Case], folder: Path, jobs: int, tell: Callable[[int], None]
) -> list[dict[str, Any]]:
    def work(number: int) -> Iterator[Message]:
        chosen = cases[number * _SHARD : (number + 1) * _SHARD]
        content = _packed(plan, chosen)
        file = f"results-{number:04d}.npz"
        write_bytes(folder / file, content)
        digest = hashlib.sha256(content).hexdigest()
        yield {"number": number, "file": file, "sha256": digest, "cases": [case.id for case in chosen]}

    def start() -> tuple[Work, Callable[[], Iterator[Message]]]:
        return work, lambda: iter(())

    live()  # imported once, not in every copy
    found: dict[int, Message] = {}
    try:
        for message in Forks(jobs, -(-len(cases) // _SHARD), start).messages():
            found[message.pop("number")] = message
            tell(len(message["cases"]))
    except ForkDied as death:
        raise DataError(f"{death}; write the data again") from None
    return [found[number] for number in sorted(found)]


def _packed(plan: CasePlan, cases: Sequence[Case]) -> bytes:
    """A shard's bytes; the same for the same results."""
    arrays = _Arrays()
    entries = {case.id: _recorded(plan, case, arrays) for case in cases}
    text = np.frombuffer(json.dumps(entries).encode(), np.uint8)
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, entries=text, **arrays.joined())
    return stream.getvalue()


def _recorded(plan: CasePlan, case: Case, arrays: "_Arrays") -> dict[str, Any]:
    recording = _Recording(live(), arrays)
    try:
        prepared = prepare(plan, case, recording)
        if _measured(prepared):
            prepared.terms()
    except (UnfitCase, UnsoundCase):
        return recording.entry  # what of it comes from PyTorch is in the entry; the rest shows again when it is read
    return recording.entry


def _measured(prepared: Prepared) -> bool:
    """Whether a judgement of the case may ask what its outputs are sums of."""
    function, case = prepared.function, prepared.case
    if CHECK[function.check].random:
        return False
    return any(tolerance(function, case, case.dtypes[p.name]).measured for p in function.written if p.is_tensor)


class _Recording:
    """Expectations that keep what they are asked for."""

    def __init__(self, source: Expectations, arrays: "_Arrays") -> None:
        self._source = source
        self._arrays = arrays
        self.entry: dict[str, Any] = {}

    def forward(self, plan: CasePlan, case: Case, values: Values) -> Values:
        with _Refusal(self.entry, "forward"):
            found = self._source.forward(plan, case, values)
        kept = {name: _of_type(value, case.forward[name]) for name, value in found.items() if name in case.forward}
        self.entry["forward"] = {"drawn": sums(values), "values": self._arrays.kept_all(kept)}
        return found

    def outputs(self, plan: CasePlan, case: Case, values: Values, forward: Values | None) -> Expected:
        with _Refusal(self.entry, "outputs"):
            found = self._source.outputs(plan, case, values, forward)
        exact = CHECK[plan.functions[case.function].check].exact
        kept = found.values if exact else {n: _shortened(v, case.dtypes.get(n, "")) for n, v in found.values.items()}
        self.entry["outputs"] = {
            "drawn": sums(values),
            "values": self._arrays.kept_all(kept),
            "strides": found.strides,
        }
        return found

    def terms(self, plan: CasePlan, case: Case, values: Values, forward: Values | None) -> dict[str, Terms]:
        found = self._source.terms(plan, case, values, forward)
        self.entry["terms"] = {
            label: {"magnitude": self._arrays.kept(terms.magnitude), "length": terms.length}
            for label, terms in found.items()
        }
        return found


def _of_type(value: Any, dtype: str) -> Any:
    """What a backward function is given of its forward's output: no more than its type holds."""
    if isinstance(value, list):
        return [_of_type(entry, dtype) for entry in value]
    return rounded(value, dtype) if isinstance(value, np.ndarray) else value


def _shortened(value: Any, dtype: str) -> Any:
    """A result without those bits of its significand that no output of `dtype` is judged by: zeros take no room."""
    if isinstance(value, list):
        return [_shortened(entry, dtype) for entry in value]
    if (
        not dtype
        or not 0 < DTYPE[dtype].digits < _DIGITS
        or not isinstance(value, np.ndarray)
        or value.dtype != np.float64
    ):
        return value
    bits = np.array(value, order="C").view(np.int64)
    short = ((bits + (1 << (_DROPPED - 1))) & -(1 << _DROPPED)).view(np.float64)
    return np.where(np.isfinite(value) & np.isfinite(short), short, value)


class _Refusal:
    """Keeps in an entry that, and why, there is no result."""

    def __init__(self, entry: dict[str, Any], which: str) -> None:
        self._entry = entry
        self._which = which

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, UnsoundCase):
            self._entry[self._which] = {"unsound": str(error)}


class _Arrays:
    """All arrays of a shard, one behind the other by number type."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Any]] = {}
        self._counts: dict[str, int] = {}

    def kept_all(self, values: Values) -> dict[str, Any]:
        return {name: self.kept(value) for name, value in values.items()}

    def kept(self, value: Any) -> Any:
        """Where the value is, as JSON."""
        if value is None:
            return None
        if value is SCRATCH:
            return {"scratch": True}
        if isinstance(value, list):
            return {"list": [self.kept(entry) for entry in value]}
        if not isinstance(value, np.ndarray):
            return {"number": value}
        kind = value.dtype.str.lstrip("<>|=")  # e.g. "f8"
        at = self._counts.get(kind, 0)
        self._parts.setdefault(kind, []).append(np.ascontiguousarray(value).reshape(-1))
        self._counts[kind] = at + value.size
        return {"kind": kind, "at": at, "shape": list(value.shape)}

    def joined(self) -> dict[str, Any]:
        return {kind: planes(np.concatenate(parts)) for kind, parts in sorted(self._parts.items())}


def _versions() -> dict[str, str]:
    import torch

    return {"numpy": np.__version__, "torch": torch.__version__}

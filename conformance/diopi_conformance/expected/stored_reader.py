"""Expected results that were stored on another machine: a folder of an index and shards of arrays.

A shard is an .npz of one array for each number type and of `entries`, JSON in bytes: for each case what PyTorch gave,
where in the arrays it lies, and sums of what was drawn, by which a machine that draws other numbers is found out. The
bytes of the numbers lie in planes, all first bytes before all second ones, since those of a kind compress better.
"""

import hashlib
import io
import json
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from diopi_conformance.cases.plan import Case, CasePlan
from diopi_conformance.expected.expectations import SCRATCH, Expected
from diopi_conformance.judgement.tolerance import Terms
from diopi_conformance.values.elements import Array
from diopi_conformance.values.inputs import UnfitCase, UnsoundCase, Values
from diopigen.atomic import MALFORMED

DATA_VERSION = 2
INDEX = "index.json"


class DataError(Exception):
    """Stored results cannot be used; the text says why and what to do."""


class Stored:
    """Expectations from a folder that stored_writer.py wrote."""

    def __init__(self, folder: Path, plan: CasePlan, seed: int) -> None:
        """Raises DataError where the folder holds no results, or those of another plan or seed."""
        self._folder = folder
        self._index = _index(folder)
        again = f"write it again with 'diopi-conformance data --vendor {plan.vendor} --out {folder}'"
        if self._index["plan"] != plan.digest:
            raise DataError(f"{folder} was written for another plan than this one; {again}")
        if self._index["seed"] != seed:
            raise DataError(f"{folder} holds results for seed {self._index['seed']}; {again} --seed {seed}")
        self._shards = {name: number for number, shard in enumerate(self._index["shards"]) for name in shard["cases"]}
        self._shard = lru_cache(maxsize=4)(self._read)

    def lacking(self, cases: Iterable[Case]) -> tuple[str, ...]:
        """The ids of those cases whose results should be here and are not: large ones are left out on purpose."""
        small = (case for case in cases if case.largest <= self._index["largest"])
        return tuple(case.id for case in small if case.id not in self._shards)

    def forward(self, plan: CasePlan, case: Case, values: Values) -> Values:
        """See Expectations. Raises DataError."""
        found, arrays = self._entry(case, "forward", values)
        return {name: _value(kept, arrays) for name, kept in found["values"].items()}

    def outputs(self, plan: CasePlan, case: Case, values: Values, forward: Values | None) -> Expected:
        """See Expectations. Raises DataError."""
        found, arrays = self._entry(case, "outputs", values)
        return Expected(
            values={name: _value(kept, arrays) for name, kept in found["values"].items()},
            strides={name: tuple(strides) for name, strides in found["strides"].items()},
        )

    def terms(self, plan: CasePlan, case: Case, values: Values, forward: Values | None) -> dict[str, Terms]:
        """See Expectations. Raises DataError."""
        entries, arrays = self._of(case)
        return {
            label: Terms(magnitude=_value(kept["magnitude"], arrays), length=kept["length"])
            for label, kept in entries[case.id].get("terms", {}).items()
        }

    def _entry(self, case: Case, which: str, values: Values) -> tuple[dict[str, Any], Mapping[str, Any]]:
        entries, arrays = self._of(case)
        found = entries[case.id][which]
        if "unsound" in found:
            raise UnsoundCase(found["unsound"])
        for name, total in sums(values).items():
            if not math.isclose(total, found["drawn"].get(name, math.nan), rel_tol=1e-6, abs_tol=1e-9):
                versions = f"numpy {self._index['versions']['numpy']} there, {np.__version__} here"
                raise DataError(
                    f"'{name}' of '{case.id}' is drawn otherwise here than where {self._folder} was written "
                    f"({versions}); install that numpy, or write the data with this one"
                )
        return found, arrays

    def _of(self, case: Case) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """The shard that the case is in."""
        if case.largest > (limit := self._index["largest"]):
            raise UnfitCase(
                f"results of tensors with more than {limit} elements are not stored, and it has one of {case.largest}; "
                "run it where PyTorch is, or store more with 'data --largest'"
            )
        if case.id not in self._shards:
            raise DataError(f"{self._folder} has no results for '{case.id}'")
        return self._shard(self._shards[case.id])

    def _read(self, number: int) -> tuple[dict[str, Any], Mapping[str, Any]]:
        facts = self._index["shards"][number]
        path = self._folder / facts["file"]
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}; copy the whole folder again") from None
        if hashlib.sha256(content).hexdigest() != facts["sha256"]:
            raise DataError(f"{path} is damaged: its checksum is not the index's; copy the folder again")
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                entries = json.loads(archive["entries"].tobytes())
                arrays = {kind: _numbers(archive[kind], kind) for kind in archive.files if kind != "entries"}
        except (*MALFORMED, BadZipFile) as error:
            raise DataError(f"{path} is no shard of results: {error}") from None
        return entries, arrays


def planes(numbers: Array) -> Array:
    """A flat array as its bytes, (bytes of a number, numbers)."""
    return np.ascontiguousarray(numbers.view(np.uint8).reshape(numbers.size, -1).T)


def _numbers(found: Array, kind: str) -> Array:
    """What planes() was given."""
    return np.ascontiguousarray(found.T).reshape(-1).view(np.dtype(kind))


def sums(values: Values) -> dict[str, float]:
    """For each drawn tensor the sum of its finite magnitudes; e.g. {"input": 33.4, "tensors[1]": 5.0}."""
    found: dict[str, float] = {}
    for name, value in values.items():
        for label, array in (
            ((f"{name}[{i}]", v) for i, v in enumerate(value)) if isinstance(value, list) else ((name, value),)
        ):
            if isinstance(array, np.ndarray):
                sizes = np.abs(np.where(np.isfinite(array), array, 0)).astype(np.float64)
                with np.errstate(over="ignore"):  # of the largest numbers it is infinity there and here
                    found[label] = float(sizes.sum())
    return found


def _index(folder: Path) -> dict[str, Any]:
    path = folder / INDEX
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"there are no results in {folder}; write them with 'diopi-conformance data'") from None
    except (OSError, *MALFORMED) as error:
        raise DataError(f"{path} is damaged: {error}; copy the folder again") from None
    if not isinstance(document, dict) or document.get("version") != DATA_VERSION:
        raise DataError(f"{path} is no index of results of this version; write them again")
    lacking = {"largest", "plan", "seed", "versions", "shards"} - document.keys()
    if lacking:
        raise DataError(f"{path} lacks '{min(lacking)}'; copy the folder again")
    return document


def _value(kept: Any, arrays: Mapping[str, Any]) -> Any:
    match kept:
        case None:
            return None
        case {"scratch": True}:
            return SCRATCH
        case {"number": number}:
            return number
        case {"list": entries}:
            return [_value(entry, arrays) for entry in entries]
        case _:
            size = math.prod(kept["shape"])
            return arrays[kept["kind"]][kept["at"] : kept["at"] + size].reshape(kept["shape"])

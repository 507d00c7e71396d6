"""Runs every operator on the CPU, too, and says where a device gives something else."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch

from op_tools.calls import OperatorCall, location
from op_tools.clean_state import clean_state
from op_tools.contract import entry_of
from op_tools.describe import short, with_strides
from op_tools.devices import device_of
from op_tools.interception import Proceed
from op_tools.judgement import DTYPES, Difference, difference, tolerance_for
from op_tools.overloads import Overload
from op_tools.reference import NoReference, Reference, outputs_of
from op_tools.result_dtypes import result_dtypes
from op_tools.results import Table, table_in
from op_tools.store.writer import CaptureWriter
from op_tools.tool import OpTool
from op_tools.values import tensors_in

COLUMNS = (
    "forward_id",
    "name",
    "allclose",
    "cosine_similarity",
    "max_abs_diff",
    "max_relative_diff",
    "atol",
    "rtol",
    "error_info",
    "operator",  # this and what follows the established tables do not have
    "max_ulp",
)


class OpMismatch(RuntimeError):
    """A result is not what the CPU gives, and `stop_on_mismatch` was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A call with a result that is wrong, or with an argument that it should have left alone."""

    number: int
    function: str  # e.g. "torch.nn.functional.linear"; empty in backward
    operator: str  # e.g. "aten.addmm.default"
    symbols: tuple[str, ...]  # of the contract, e.g. ("diopiAddmm",)
    phase: str
    node: str  # in backward, e.g. "AddmmBackward0"
    location: str
    given: str  # arguments as people read them
    arguments: tuple[
        tuple[str, str], ...
    ]  # the tensors, each with all strides, e.g. ("self", "float32[2] strides [1]")
    differences: tuple[Difference, ...]  # of all results
    harmed: tuple[str, ...]  # arguments that were changed though they are only read

    @property
    def text(self) -> str:
        wrong = [d.message for d in self.differences if not d.good] + [changed(name) for name in self.harmed]
        name = (
            f"{self.function} ({self.operator}, {self.phase})" if self.function else f"{self.operator} ({self.phase})"
        )
        where = f" at {self.location}" if self.location else ""
        return f"call {self.number}, {name}: {'; '.join(wrong)}; {self.given}{where}"


def changed(name: str) -> str:
    """What is said of an argument that an operator should have left alone."""
    return f"'{name}' was changed, though it is only read"


class OpAutoCompare(OpTool):
    """Compares what every operator gives and writes with the CPU, forward, backward and optimizer alike.

    `mismatches` holds the calls that are wrong, `compared` counts the others by overload, `skipped` what was not
    compared, with the reason: random operators, and what the CPU cannot compute. Each mismatch is printed (`write`
    gets the line instead), with `stop_on_mismatch` raised as OpMismatch, and with `dump` kept as a capture in that
    folder, which `op-tools replay` reads (`dumped_per_operator` of each overload at most). A row for each result goes
    to a CSV file. See OpTool for the rest.
    """

    variable: ClassVar[str] = "AUTOCOMPARE"
    layer: ClassVar[int] = 3

    def __init__(
        self,
        ops: Any = None,
        *,
        stop_on_mismatch: bool = False,
        dump: str | Path | None = None,
        dumped_per_operator: int | None = None,
        table: bool = True,
        write: Callable[[str], Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(ops, **options)
        self._stop, self._keeps_table, self._write = stop_on_mismatch, table, write or print
        self._dump = None if dump is None else CaptureWriter(Path(dump), per_operator=dumped_per_operator)
        self._table: Table | None = None
        self.mismatches: list[Mismatch] = []
        self.compared: Counter[str] = Counter()
        self.skipped: Counter[tuple[str, str]] = Counter()

    def serves(self, overload: Overload) -> bool:
        return overload.repeatable

    def begin(self) -> None:
        if self._keeps_table and self._table is None:
            self._table = table_in("op_autocompare_result", "op_autocompare_info", COLUMNS)

    def finish(self) -> None:
        if self._table is not None:
            self._table.write()

    def apply(self, call: OperatorCall, proceed: Proceed) -> Any:
        entry = entry_of(call.overload)
        if call.overload.random or (entry is not None and entry.random):
            return self._skip(call, "random", proceed)
        if device_of(call) is None:
            return self._skip(call, "between devices", proceed)
        try:
            reference = Reference(call)
        except NoReference as reason:
            return self._skip(call, str(reason), proceed)
        results = proceed(call)
        harmed = tuple(reference.harmed())
        try:
            reference.run()
        except NoReference as reason:
            self.skipped[call.overload.name, str(reason)] += 1
            return results
        self._judge(call, results, reference, harmed)
        return results

    def _skip(self, call: OperatorCall, reason: str, proceed: Proceed) -> Any:
        self.skipped[call.overload.name, reason] += 1
        return proceed(call)

    def _judge(self, call: OperatorCall, results: Any, reference: Reference, harmed: tuple[str, ...]) -> None:
        with clean_state():
            found = tuple(differences(call, results, reference))
        if self._table is not None:
            self._table.add(_row(call, d) for d in found)
        if all(d.good for d in found) and not harmed:
            self.compared[call.overload.name] += 1
            return
        entry = entry_of(call.overload)
        mismatch = Mismatch(
            number=call.number,
            function=call.function,
            operator=call.overload.name,
            symbols=() if entry is None else entry.symbols,
            phase=call.phase,
            node=call.node[0],
            location=location(),
            given=", ".join(f"{name}={short(value)}" for name, value in call.given.items()),
            arguments=tuple((name, with_strides(tensor)) for name, tensor in tensors_in(call.given)),
            differences=found,
            harmed=harmed,
        )
        self.mismatches.append(mismatch)
        self._write(mismatch.text)
        if self._dump is not None and self._dump.has_room(call):
            with clean_state():
                self._dump.write(
                    reference.before, outputs_of(call, results), device=str(device_of(call)), mismatch=mismatch
                )
        if self._stop:
            raise OpMismatch(mismatch.text)


def differences(call: OperatorCall, results: Any, reference: Reference) -> list[Difference]:
    """Each result of a call that ran beside the reference's; positions, of which others may be right, are left out."""
    entry = entry_of(call.overload)
    actual = outputs_of(call, results)
    dtypes = result_dtypes(call) or ()
    read = {t.dtype for _, t in tensors_in(reference.before.given) if t.dtype in DTYPES}
    inputs = reference.inputs
    found = []
    for place, exact in reference.outputs.items():
        tensor = actual.get(place)
        if tensor is None or (entry is not None and entry.positions and tensor.dtype in (torch.int64, torch.int32)):
            continue
        bound = tolerance_for(call.overload, call.function, tensor.dtype, read)
        found.append(difference(place, tensor, exact, bound, reference.measure(place), inputs))
    for number, dtype in enumerate(dtypes):
        place = "result" if len(dtypes) == 1 and not isinstance(results, list | tuple) else f"result[{number}]"
        tensor = actual.get(place)
        if tensor is not None and dtype is not None and tensor.dtype is not dtype:
            found = [_other_dtype(d, tensor.dtype, dtype, reference) if d.place == place else d for d in found]
    return found


def _other_dtype(found: Difference, actual: torch.dtype, expected: torch.dtype, reference: Reference) -> Difference:
    """Wrong, unless the CPU gives that dtype, too: torch's rules leave some results to the device."""
    if reference.dtypes().get(found.place) is actual:
        return found
    return replace(found, good=False, message=f"{found.place} is of {actual}, expected {expected}")


def _row(call: OperatorCall, found: Difference) -> tuple[Any, ...]:
    name = f"{call.title} {found.place}"
    absolute, relative = found.allowed or ("", "")
    return (
        call.number,
        name,
        found.good,
        found.cosine,
        found.absolute,
        found.relative,
        absolute,
        relative,
        found.message,
        call.overload.name,
        "" if found.ulp is None else found.ulp,
    )

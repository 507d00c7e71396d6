"""What the schemas say of torch's operators: the functions of the contract behind them, and how results are compared.

The schemas are read once, when a tool first asks: a second or two. They are those of the package diopigen.
"""

from dataclasses import dataclass
from functools import cache

from diopigen.vocabulary.checks import CHECK
from op_tools.names import NameList
from op_tools.overloads import Overload


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the schemas say of one overload."""

    op: str  # e.g. "add", the entry of schemas/ops
    symbols: tuple[str, ...]  # e.g. ("diopiAdd", "diopiAddScalar")
    exact: bool  # results are copied or counted, not computed
    positions: bool  # results are positions, of which others may be right, too
    random: bool
    elementwise: bool
    tolerance: dict[str, tuple[float, float]]  # dtype, e.g. "f32": relative, absolute


def entry_of(overload: Overload) -> Entry | None:
    """The schemas' entry for an overload; None where the contract has nothing for it."""
    if not overload.name.startswith("aten."):
        return None
    return _entries().get(overload.name.removeprefix("aten.").removesuffix(".default"))


def symbols_of(overload: Overload, *lists: NameList) -> tuple[str, ...]:
    """The contract's names of an overload, if one of `lists` may ask for them."""
    if not any("diopi" in name for names in lists for name in names.names):
        return ()
    entry = entry_of(overload)
    return () if entry is None else entry.symbols


@cache
def _entries() -> dict[str, Entry]:
    """By overload as the schemas write it, e.g. "add.Tensor", "relu"."""
    from diopigen import pipeline
    from diopigen.diagnostics import Diagnostics
    from diopigen.project import contract

    project, diagnostics = contract(), Diagnostics()
    program = pipeline.run(project, diagnostics, pipeline.Stage.ATEN)
    if program is None:
        return {}
    functions = {function.symbol: function for function in program.functions}
    found = {}
    for binding in program.bindings:
        op = program.op(binding.op)
        assert op is not None
        served = [functions[symbol] for symbol in binding.symbols if symbol in functions]
        backward = any(function.form.value == "backward" for function in served)
        found[binding.overload.name] = Entry(
            op=op.name,
            symbols=binding.symbols,
            exact=CHECK[op.check].exact and not backward,
            positions=CHECK[op.check].positions,
            random=CHECK[op.check].random,
            elementwise=bool(served) and all(function.kernel is not None for function in served),
            tolerance={dtype: (relative, absolute) for dtype, relative, absolute in op.tolerance},
        )
    return found

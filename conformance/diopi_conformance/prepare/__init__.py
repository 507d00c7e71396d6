"""From a case to one call: inputs drawn, outputs expected, storages laid out and poisoned."""

from functools import cache, partial
from typing import Any
from zlib import crc32

from diopi_conformance.cases.plan import Case, CasePlan, Function
from diopi_conformance.expected.expectations import Expectations
from diopi_conformance.prepare.call import Buffer, Prepared, Slot
from diopi_conformance.prepare.inputs import as_vendor_computes, given_values
from diopi_conformance.prepare.storages import argument, facts
from diopigen.vocabulary.checks import CHECK

__all__ = ["Buffer", "Prepared", "Slot", "live", "prepare"]

# Each byte of fresh memory in the second call: huge in most types, of either sign, so that a minimum or maximum shows
# it; or zero, which is false too. In the first call it is NaN, which sums show.
_OTHER_FRESH = (0x7E, 0xFE, 0x00)
_SAMPLE = 16384  # numbers that tell a distribution from others


def prepare(plan: CasePlan, case: Case, expectations: Expectations | None = None) -> Prepared:
    """The case's call, with results from `expectations`, by default from PyTorch.

    Raises UnsoundCase where the case cannot be run, UnfitCase where the vendor has no dtype for its values.
    """
    source = expectations if expectations is not None else live()
    function = plan.functions[case.function]
    values, forward = given_values(plan, function, case, source)
    found = source.outputs(plan, case, values, forward)
    expected = {name: as_vendor_computes(function, case, name, value) for name, value in found.values.items()}
    buffers: list[Buffer] = []
    args = [argument(function, param, case, values, expected, buffers) for param in function.params]
    return Prepared(
        case=case,
        function=function,
        values=values,
        forward=forward,
        expected=expected,
        buffers=buffers,
        request={
            "id": case.id,
            "symbol": function.symbol,
            "args": args,
            "tensors": [facts(plan, buffer) for buffer in buffers],
            "fresh": _OTHER_FRESH[crc32(case.id.encode()) % len(_OTHER_FRESH)],
            "unwritten": [i for i, buffer in enumerate(buffers) if buffer.unwritten],
            **_draws(function, buffers),
        },
        strides=found.strides if any("channels_last" in p.enumerators for p in function.params) else {},
        terms=partial(source.terms, plan, case, values, forward),
    )


def _draws(function: Function, buffers: list[Buffer]) -> dict[str, Any]:
    """Of a random function: which calls are to be made again, more of them where one draw tells little."""
    if not CHECK[function.check].random:
        return {}
    written = [i for i, b in enumerate(buffers) if b.expected is not None]
    size = max((buffers[i].layout.positions().size for i in written), default=0)
    return {"draws": {"next": min(16, max(2, _SAMPLE // max(1, size))), "written": written}}


@cache
def live() -> Expectations:
    """PyTorch; imported here and not above, since what was stored serves without it."""
    from diopi_conformance.expected.live import Live

    return Live()

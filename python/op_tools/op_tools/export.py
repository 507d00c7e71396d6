"""Captured calls as calls of the contract's functions, from which the conformance suite makes cases.

Which function serves a call, and what its arguments get, is conformance's to say; here a capture becomes the record of
a call that conformance's own recorder would have made.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from diopi_conformance.capture.context import CaptureContext
from diopi_conformance.capture.listed_values import MOST
from diopi_conformance.capture.recorder import AtenCall, Tensor, arguments, described, overload_name
from diopi_conformance.capture.session import Session, Tally, is_silent
from diopi_conformance.capture.store import Store
from op_tools.store.reader import Capture
from op_tools.values import mapped, tensors_in

NOTHING = "computes nothing"


@dataclass(slots=True, kw_only=True)
class Exported:
    """What became of captured calls; each is counted once."""

    captures: int = 0
    cases: int = 0  # that were not in the store before
    alike: int = 0  # calls that repeat a case of another call
    tally: Tally = field(default_factory=Tally)  # of calls as a device is asked for them, with reasons


def export(captures: Iterable[Capture], here: CaptureContext, store: Store, name: str) -> Exported:
    """Adds the calls to `store` as cases of the model `name`; what no case is made of is counted with the reason.

    Of calls that differ in the elements of their tensors alone, one becomes a case; a call that was found wrong goes
    before others. Raises BadCapture for files that are damaged.
    """
    session, found = Session(here.program), Exported()
    ordered = sorted(captures, key=lambda capture: "mismatch" not in capture.result)
    for capture in ordered:
        found.captures += 1
        reason = _unheard(capture)
        if reason:
            session.tally.calls += 1
            session.tally.unmapped[capture.operator.removeprefix("aten.").removesuffix(".default"), reason] += 1
        else:
            session.hear(aten_call(capture))
    cases = here.sound(session.cases.values())
    found.cases = store.add(name, cases)
    found.alike = session.tally.mapped - len(session.cases)
    found.tally = session.tally
    return found


def aten_call(capture: Capture) -> AtenCall:
    """The call as conformance records it: tensors by how they look, small ones of integers with their elements.

    All small tensors have their elements where the capture was found wrong. Raises BadCapture.
    """
    call, outputs = capture.call("cpu"), capture.outputs()
    schema = call.overload.function._schema
    wrong = "mismatch" in capture.result
    looks = {id(t): _look(t, wrong) for _, t in tensors_in((call.args, call.kwargs))}
    args, kwargs = (mapped(value, lambda leaf: looks.get(id(leaf), leaf)) for value in (call.args, call.kwargs))
    return AtenCall(
        overload=overload_name(call.overload.function),
        args=arguments(schema, args, kwargs),
        results=_results(schema, outputs),
        exact=wrong,
    )


def _unheard(capture: Capture) -> str:
    """Why conformance is not asked for it; empty where it is. Raises BadCapture where torch has no such operator."""
    if not capture.operator.startswith("aten."):
        return "no operator of torch's own"
    return NOTHING if is_silent(overload_name(capture.overload().function)) else ""


def _look(tensor: torch.Tensor, wrong: bool) -> Tensor:
    look: Tensor = described(tensor)
    kept = wrong or not (tensor.is_floating_point() or tensor.is_complex())
    if kept and not tensor.is_complex() and tensor.numel() <= MOST:
        look = replace(look, elements=tuple(tensor.flatten().tolist()))
    return look


def _results(schema: Any, outputs: dict[str, torch.Tensor]) -> tuple[Any, ...]:
    """What the call returned, in order; results that are arguments it wrote are kept by the arguments' names."""
    if len(schema.returns) == 1 and "[]" in str(schema.returns[0].type):
        return tuple(_at(outputs, "result") or ())
    written = {
        name: arg.name
        for arg in schema.arguments
        if arg.alias_info is not None and arg.alias_info.is_write
        for name in arg.alias_info.after_set
    }
    places = []
    for number, result in enumerate(schema.returns):
        names = result.alias_info.after_set if result.alias_info is not None else ()
        argument = next((written[name] for name in names if name in written), None)
        places.append(argument or ("result" if len(schema.returns) == 1 else f"result[{number}]"))
    return tuple(_at(outputs, place) for place in places)


def _at(outputs: dict[str, torch.Tensor], place: str) -> Any:
    """What lies at a place: a tensor, a list of those below it, or None."""
    if place in outputs:
        return described(outputs[place])
    below: list[Any] = []
    while f"{place}[{len(below)}]" in outputs:
        below.append(described(outputs[f"{place}[{len(below)}]"]))
    return below or None

"""A report with an outcome of every kind, for tests of what is told of it."""

import math
from typing import Any

from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.report import Axes, Report


def outcome(case_id: str, verdict: Verdict = Verdict.PASS, **facts: Any) -> Outcome:
    """e.g. outcome("add/f32/0"): of the function diopiadd."""
    op = case_id.split("/")[0]
    return Outcome(id=case_id, function=f"diopi{op}", op=op, verdict=verdict, **facts)


OUTCOMES = (
    outcome("add/f32/0", error=1e-7, ulp=1.0, seconds=0.25),
    outcome("add/f16/strided/0", error=1e-3, ulp=0.5),
    outcome("relu/f32/0", Verdict.FAIL, message="out[3] is 1.0, expected 0.0", output="out", index=(3,), error=1.0),
    outcome("relu/f16/zero/1", Verdict.FAIL, message="out[12] is 2.5, expected 0.0", output="out", error=2.5),
    outcome("relu/f64/0", Verdict.CRASH, message="killed by SIGSEGV"),
    outcome("conv/f32/0", Verdict.NOT_IMPLEMENTED, message="the library has no such function"),
    outcome("conv/f32/1", Verdict.FAIL, message="out[0] is nan", error=math.inf, ulp=math.inf, known="bug 12"),
)
AXES = {
    "add/f32/0": Axes(family="arithmetic", elements="f32", view="contiguous"),
    "add/f16/strided/0": Axes(family="arithmetic", elements="f16", view="strided"),
    "relu/f32/0": Axes(family="activation", elements="f32", view="contiguous"),
    "relu/f16/zero/1": Axes(family="activation", elements="f16", view="contiguous", change="zero"),
    "relu/f64/0": Axes(family="activation", elements="f64", view="contiguous"),
    "conv/f32/0": Axes(family="convolution", elements="f32", view="contiguous", models=("resnet18", "unet")),
    "conv/f32/1": Axes(family="convolution", elements="f32", layout="nhwc", view="strided"),
}
REPORT = Report(vendor="chip", planned=8, outcomes=OUTCOMES, axes=AXES, seconds=1.5)

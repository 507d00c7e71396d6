"""What every form of a report says alike of an outcome."""

import shlex

from diopi_conformance.outcome import Outcome
from diopi_conformance.report.model import Report


def reason(outcome: Outcome) -> str:
    """What is wrong, with the worst error."""
    parts = [outcome.message] if outcome.message else []
    if outcome.error is not None:
        parts.append(f"max error {outcome.error:.3g}")
    if outcome.ulp is not None and not outcome.message:  # a message about values tells it
        parts.append(f"{ulp_text(outcome.ulp)} ULP")
    return ", ".join(parts)


def ulp_text(ulp: float) -> str:
    """e.g. "0.5", "12.3", "1024", "1.2e+09"."""
    return f"{ulp:.0f}" if 100 <= ulp < 1e6 else f"{ulp:.3g}"


def repro_command(case_id: str, report: Report) -> str:
    """What shows the case again, e.g. "diopi-conformance repro add/f32/0 --vendor droplet --seed 1"."""
    return shlex.join(("diopi-conformance", "repro", case_id, "--vendor", report.vendor, *report.variant.options))

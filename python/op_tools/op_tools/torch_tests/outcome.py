"""What one test came to."""

from dataclasses import dataclass, field
from typing import Any

OUTCOMES = ("passed", "failed", "crashed", "timed out", "skipped", "listed", "never tested")
BAD = ("failed", "crashed", "timed out", "never tested")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of one test, or of a suite whose tests could not be listed (`test` is "" then)."""

    suite: str  # e.g. "test_view_ops", "opinfo"
    test: str  # e.g. "TestViewOpsDIPU.test_T_dipu", "trunc.float32"
    outcome: str  # one of OUTCOMES
    reason: str = ""
    trace: str = ""
    seconds: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)  # plain data, of torch's samples

    @property
    def id(self) -> str:
        return f"{self.suite}.{self.test}"

"""What became of a case."""

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

NOT_IMPLEMENTED = (13, 1000)  # diopiNoImplement, diopiDtypeNotSupported


class Verdict(Enum):
    PASS = "pass"
    FAIL = "fail"
    NOT_IMPLEMENTED = "not-implemented"
    CRASH = "crash"
    TIMEOUT = "timeout"
    LEAK = "leak"  # the call leaves tensors, streams, events or memory behind
    SKIPPED = "skipped"  # no call, for the reason in the message: e.g. no dtype of the vendor can hold the values
    UNSOUND = "unsound"  # the case itself is wrong: its row, or a reference that is missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The verdict on one case and, where it is a bad one, why."""

    id: str
    function: str
    op: str
    verdict: Verdict
    trivial: bool = False  # a library that does nothing passes too
    message: str = ""  # e.g. "out[3, 0] is 0.5, expected 0.25"
    output: str = ""  # e.g. "grad_input": where the worst error is
    index: tuple[int, ...] = ()
    error: float | None = None  # the largest absolute error of a value comparison
    ulp: float | None = None  # the largest error in units in the last place of the output, where that means something
    known: str = ""  # why the vendor expects this failure: the reason in its known_failures.yaml
    memory: int = 0  # bytes by which the worker grew during the call
    seconds: float = 0.0  # of the call alone

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "verdict": self.verdict.value, "index": list(self.index)}

"""What became of a model: the comparison of its runs, or the error that it ended with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One model."""

    model: str
    error: str = ""  # one line, e.g. "ended by signal 11"; empty where there is a result
    result: dict[str, Any] = field(default_factory=dict)  # what tools.hf_models.child prints

    @property
    def agrees(self) -> bool:
        """Whether dipu trained the model as the CPU did."""
        return bool(self.result) and agrees(self.result)


def agrees(result: Mapping[str, Any]) -> bool:
    """Whether losses, gradients and weights agree, and tied weights are still tied."""
    return result["still_tied"] and not any(result[f"{kind}_differences"] for kind in ("loss", "gradient", "weight"))

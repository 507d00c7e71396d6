"""One call of a function as references see it, and the types in which they compute."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from diopi_conformance.cases.plan import Case, CasePlan, Function
from diopi_conformance.values.inputs import Values
from diopigen.vocabulary.torch_dtypes import TORCH_DTYPES, wide_dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceCall:
    """One call as references see it: every value upcast, by parameter."""

    plan: CasePlan
    function: Function
    case: Case
    dtypes: Mapping[str, str]
    values: Values
    forward: Values | None = None  # of a backward function: what its forward was given

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str, default: Any = None) -> Any:
        value = self.values.get(name)
        return default if value is None else value

    def output_dtype(self, name: str) -> torch.dtype:
        """The type in which the reference computes an output."""
        return compute_dtype(self.dtypes[name])


def compute_dtype(name: str) -> torch.dtype:
    """e.g. float64 for "bf16"."""
    return wide_dtype(TORCH_DTYPES[name])

"""What calls should give: from PyTorch here and now (live.py) or from stored results (stored_reader.py).

Everything that a verdict takes from PyTorch passes through here, so that a machine without it can judge the same.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

from diopi_conformance.cases.plan import Case, CasePlan
from diopi_conformance.judgement.tolerance import Terms
from diopi_conformance.values.inputs import Values
from diopi_conformance.values.views import Sizes

FILES = "DIOPI_CONFORMANCE_REFERENCES"  # the variable with the files of `--references`, as of PATH
SCRATCH: Any = object()  # in place of the values of an inout tensor that may hold anything afterwards


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The results of one call, by written parameter: arrays, lists of arrays, numbers, SCRATCH, or None if absent."""

    values: dict[str, Any]
    strides: dict[str, Sizes] = field(default_factory=dict)  # in elements; of the tensors that the function allocates


class Expectations(Protocol):
    """Gives expected results; its methods raise UnsoundCase where there can be none."""

    def forward(self, plan: CasePlan, case: Case, values: Values) -> Values:
        """What the plain form of a backward case gives for the `values` of its forward, by output, not rounded."""

    def outputs(self, plan: CasePlan, case: Case, values: Values, forward: Values | None) -> Expected:
        """What the case's function gives for `values`; `forward` is what the forward of a backward function read."""

    def terms(self, plan: CasePlan, case: Case, values: Values, forward: Values | None) -> dict[str, Terms]:
        """What the elements of each output are sums of, by label, e.g. "tensors[2]"; asked for where one needs it.

        An output that is left out is judged by the size of its largest element.
        """

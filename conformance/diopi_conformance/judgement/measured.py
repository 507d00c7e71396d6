"""The terms of a case's outputs, measured once and only if a judgement asks for them."""

import numpy as np

from diopi_conformance.judgement.closeness import Output
from diopi_conformance.judgement.tolerance import Measure, Terms
from diopi_conformance.prepare import Prepared
from diopi_conformance.values.elements import Array


def magnitude(values: Array) -> float:
    """The largest finite element, or 1: what sums of large values may lose grows with them."""
    finite = np.abs(np.where(np.isfinite(values), values, 0.0))
    return max(1.0, float(finite.max(initial=0.0)))


class Measured:
    """The terms of a case's outputs, measured at the first question."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._terms: dict[str, Terms] | None = None

    def of(self, output: Output) -> Measure:
        """Gives the terms of one output; where nobody knows them, its largest element stands for all."""

        def measure() -> Terms:
            if self._terms is None:
                self._terms = self._prepared.terms()
            return self._terms.get(output.label) or self._coarse(output.exact)

        return measure

    def _coarse(self, values: Array) -> Terms:
        length = max((b.layout.positions().size for b in self._prepared.buffers), default=1)
        return Terms(magnitude=np.full(values.shape, magnitude(values)), length=length)

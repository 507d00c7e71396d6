"""What of a kernel with folds is one value for each row, and in which order it is computed."""

from collections.abc import Sequence

from dicp.program import Dim, Index, Kernel, Step, View


class Levels:
    """The steps of a kernel, those that have one value for each row apart."""

    def __init__(self, kernel: Kernel) -> None:
        self.full: dict[int, bool] = {}  # by step: it has a value for each column
        self._phases: dict[int, int] = {}
        steps = kernel.steps
        for step in steps:
            inner = [o for o in step.operands if isinstance(o, Step)]
            full = any(isinstance(o, Index) or (isinstance(o, View) and is_full(o)) for o in step.operands)
            self.full[id(step)] = not step.fold and (full or any(self.full[id(o)] for o in inner))
            self._phases[id(step)] = max((self._phases[id(o)] + (1 if o.fold else 0) for o in inner), default=0)
        # A fold of one phase may need rows of the same, but no fold of it.
        self.in_order = sorted(steps, key=lambda step: (self._phases[id(step)], step.fold))

    def behind(self, values: Sequence[View | Step]) -> tuple[list[View], list[Step]]:
        """The views and steps with a value for each column that `values` are made of, operands first."""
        views: dict[int, View] = {}
        steps: dict[int, Step] = {}
        self._collect(values, views, steps)
        return list(views.values()), list(steps.values())

    def _collect(self, values: Sequence[object], views: dict[int, View], steps: dict[int, Step]) -> None:
        for value in values:
            if isinstance(value, View) and is_full(value):
                views[id(value)] = value
            elif isinstance(value, Step) and self.full[id(value)] and id(value) not in steps:
                self._collect(value.operands, views, steps)
                steps[id(value)] = value


def is_zero(stride: Dim) -> bool:
    return isinstance(stride, int) and stride == 0


def is_full(view: View) -> bool:
    """It has an element for each column."""
    return bool(view.strides) and not is_zero(view.strides[-1])

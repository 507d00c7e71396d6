"""What is known of one of two runs, as far as it was walked."""

from op_tools.runs.difference import Value
from op_tools.runs.steps import Source, Step, sources_of


class RunState:
    """The calls of one run, what they made, and which of them have counterparts."""

    def __init__(self) -> None:
        self.values: dict[int, list[Value]] = {}  # by number of elements
        self.made: dict[Source, Step] = {}
        self.paired: set[int] = set()
        self.drifts: dict[Source, float] = {}
        self.named: dict[str, tuple[Step, Value]] = {}  # what the program calls so, as it was seen last
        self.fresh: dict[str, None] = {}  # names written since they were compared

    def add(self, steps: list[Step]) -> None:
        """Goes on with these calls."""
        for step in steps:
            arguments = step.arguments_by_place
            for value in arguments.values():
                if name := value.record.get("name"):
                    self.named[name] = (step, value)
            for place, value in step.outputs.items():
                self.values.setdefault(value.numel, []).append(value)
                self.made[step.number, place] = step
                name = arguments[place].record.get("name") if place in arguments else None
                if name:
                    self.named[name] = (step, _made(value, step, place))
                    self.fresh[name] = None

    def ancestors(self, value: Value) -> list[Step]:
        """The calls without counterparts from which the value comes, in order."""
        found: dict[int, Step] = {}
        waiting = [value]
        while waiting:
            for source in sources_of(waiting.pop()):
                step = self.made.get(source)
                if step is not None and id(step) not in self.paired and id(step) not in found:
                    found[id(step)] = step
                    waiting += step.inputs.values()
        return sorted(found.values(), key=lambda step: step.number)


def _made(value: Value, step: Step, place: str) -> Value:
    """A result, with the call that made it noted."""
    return Value(value.root, {**value.record, "from": [(step.number, place)]})

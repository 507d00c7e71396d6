"""Two runs that were recorded module by module: where they first part.

A module computes what no table tells, so that its rounding is judged by size: what it gives may differ by some
roundings, and by more where its inputs and weights differ already. The same holds backward, for the gradients of what
it was given against those of what it gave, and for the gradients of its weights. Lines are looked at in the order in
which the first run wrote them, inner modules before those around them: the first that parts is the innermost.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch

from op_tools.modules.record import GRADIENT, INITIAL
from op_tools.runs.comparison import CannotCompare, processes
from op_tools.runs.difference import SAME, Deviation, Deviations, Value
from op_tools.store.memory import Record
from op_tools.store.recording import GRADIENTS, MODULE, WEIGHTS, BadRecording, Recording, recordings

_ROUNDINGS = 64.0  # that a module may make of inputs that are the same
_MOST = 0.05  # relative, of coarse dtypes
_AMPLIFIED = 64.0  # by how much a difference of the inputs may grow

Key = tuple[str, str, int, str]  # a line's kind, its module or weight, which run or step, a place or what is told


@dataclass(slots=True, kw_only=True)
class ModuleRun:
    """One run of one module: how far what it was given and gave is apart, by place."""

    module: str  # empty for the outermost
    type: str  # e.g. "Linear"
    number: int
    inputs: dict[str, Deviation | None]  # None where the shapes or kinds differ
    outputs: dict[str, Deviation | None]
    gradients: dict[str, Deviation | None] = field(default_factory=dict)  # by place, of results and of arguments
    norms: dict[str, float] = field(default_factory=dict)  # of the gradients


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """The first line at which two runs part."""

    kind: str  # weights, forward, random, input, backward, loss, gradient, optimizer
    module: str
    type: str
    number: int
    reason: str  # for people
    gap: Deviation | None
    line: int  # of the first run's file, counted from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ModulesCompared:
    """One process of A and one of B."""

    a: Recording
    b: Recording
    runs: tuple[ModuleRun, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]  # module runs that the other has not, e.g. "layers.0 (run 2)"
    parting: Parting | None


def are_modules(a: Path, b: Path) -> bool:
    """Whether both runs recorded modules in place of calls. Raises BadRecording, and CannotCompare where one did."""
    kinds = [bool(recording.of(MODULE)) for place in (a, b) for recording in recordings(place)]
    if any(kinds) and not all(kinds):
        raise CannotCompare(f"only one of {a} and {b} is of modules; record both with --modules, or both without")
    return all(kinds)


def modules_compared(a: Path, b: Path) -> list[ModulesCompared]:
    """The modules of each rank of two runs. Raises BadRecording and CannotCompare."""
    try:
        return [_compared(one, two) for one, two in processes(a, b)]
    except CannotCompare:
        raise
    except ValueError as error:
        raise BadRecording(str(error)) from None


def _compared(a: Recording, b: Recording) -> ModulesCompared:
    walk = _Walk(a, b)
    parting = next(walk.partings(), None)
    for _ in walk.partings() if parting is not None else ():
        continue  # the table has every module, also those after the first that parts
    if not walk.runs:
        raise CannotCompare(f"{a.path} and {b.path} have no module in common: are they runs of one program?")
    return ModulesCompared(a=a, b=b, runs=tuple(walk.runs.values()), only=walk.only, parting=parting)


class _Walk:
    def __init__(self, a: Recording, b: Recording) -> None:
        self._a, self._b = a, b
        self._gaps = Deviations()
        self._lines = enumerate(a.lines, 2)  # after the header
        self._other = {_key(line): line for line in b.lines}
        self.runs: dict[tuple[str, int], ModuleRun] = {}
        self._weights: dict[str, float] = {}  # by name, how far the values are apart
        self._alike: dict[str, torch.Tensor] = {}  # by name, the elements whose gradients were alike in every step
        self._gradients: dict[tuple[str, int], tuple[Value, Value]] = {}  # of weights, by step
        own, others = ({_key(line) for line in run.of(MODULE)} for run in (a, b))
        self.only = (_named(own - others), _named(others - own))

    def partings(self) -> Iterator[Parting]:
        """Each line at which the runs part, in order; goes on where it was left."""
        for number, line in self._lines:
            other = self._other.get(_key(line))
            if other is None:
                continue
            told = {MODULE: self._forward, GRADIENTS: self._backward, WEIGHTS: self._weight}[line["kind"]](line, other)
            if told is not None:
                kind, module, reason, gap = told
                run = int(line["number"] if "number" in line else line["step"])
                own = self.runs.get((module, run if "number" in line else 0))
                yield Parting(
                    kind=kind,
                    module=module,
                    type="" if own is None else own.type,
                    number=run,
                    reason=reason,
                    gap=gap,
                    line=number,
                )

    def _forward(self, line: Record, other: Record) -> "_Told":
        module, number = line["module"], line["number"]
        inputs, outputs = self._between(line["inputs"], other["inputs"]), self._between(
            line["outputs"], other["outputs"]
        )
        self.runs[module, number] = ModuleRun(
            module=module, type=line["class"], number=number, inputs=inputs, outputs=outputs
        )
        if not module and number == 0:
            for place, gap in inputs.items():
                value = Value(self._a.root, line["inputs"][place])
                if gap is None or gap.relative > _ROUNDINGS * value.unit:
                    return "input", module, f"the model is given another {place}: {_text(gap)}", gap
        drift = max(_worst(inputs), self._weights_below(module))
        for place, gap in outputs.items():
            value = Value(self._a.root, line["outputs"][place])
            if gap is not None and gap.relative <= _allowed(value, drift):
                continue
            if line["random"] or other["random"]:
                return "random", module, f"{place} {_text(gap)}: it draws random numbers, and they are others", gap
            return "forward", module, f"{place} {_text(gap)}, though its inputs and weights agree", gap
        return None

    def _backward(self, line: Record, other: Record) -> "_Told":
        module, place = line["module"], line["place"]
        run = self.runs.get((module, line["number"]))
        value, theirs = Value(self._a.root, line["gradient"]), Value(self._b.root, other["gradient"])
        gap = self._gaps.between(value, theirs)
        if run is None:
            return None
        before = self._gradient_drift()
        run.gradients[place], run.norms[place] = gap, self._gaps.norm(value)
        forward = max(_worst(run.inputs), _worst(run.outputs), self._weights_below(module))
        if place.startswith("result"):
            if gap is not None and gap.relative <= _allowed(value, max(before, forward)):
                return None
            if not module:
                return "loss", module, f"the gradient of what the model gives {_text(gap)}: the loss is another", gap
            parent = module.rpartition(".")[0]
            return (
                "backward",
                parent,
                f"the gradient that reaches {module} {_text(gap)}; it comes of what {_title(parent)} does itself",
                gap,
            )
        results = {name: one for name, one in run.gradients.items() if name.startswith("result")}
        drift = max(forward, _worst(results) if results else before)
        if gap is not None and self._relative(gap, value, run) <= _allowed(value, drift):
            return None
        agree = "that of its results agrees" if results else "what came before agrees; its results are written in place"
        return "backward", module, f"the gradient of {place} {_text(gap)}, though {agree}", gap

    def _weight(self, line: Record, other: Record) -> "_Told":
        name, what = line["name"], line["what"]
        value, theirs = Value(self._a.root, line["tensor"]), Value(self._b.root, other["tensor"])
        gap = self._gaps.between(value, theirs)
        module = name.rpartition(".")[0]
        apart = math.inf if gap is None else gap.relative
        if what == INITIAL:
            self._weights[name] = apart
            far = apart > _ROUNDINGS * value.unit
            return ("weights", module, f"{name} {_text(gap)} before the first step", gap) if far else None
        if what == GRADIENT:
            self._gradients[name, line["step"]] = value, theirs
            return self._weight_gradient(name, value, gap)
        before, self._weights[name] = self._weights.get(name, 0.0), apart
        gradient = self._gradients.get((name, line["step"]))
        if gap is None or gradient is None or self._updated_alike(name, value, theirs, gradient, before):
            return None
        return "optimizer", module, f"{name} {_text(gap)} after the step, though its gradient agrees", gap

    def _updated_alike(self, name: str, a: Value, b: Value, gradients: tuple[Value, Value], before: float) -> bool:
        """By the elements whose gradients are the same but for rounding: optimizers that divide by the size of a
        gradient make steps of any sign out of one that is rounding alone. Where these cannot be told, nothing can."""
        if self._gaps.between(*gradients) == SAME and name not in self._alike:
            gap = self._gaps.between(a, b)
            return gap is None or gap.relative <= _allowed(a, before)
        if not all(one.is_whole for one in (a, b, *gradients)):
            return True
        x, y, own, others = (one.elements().double() for one in (a, b, *gradients))
        near = _ROUNDINGS * a.unit
        alike = (own - others).abs() <= near * torch.maximum(own.abs(), others.abs())
        known = self._alike[name] = alike & self._alike.get(name, torch.tensor(True))  # what it knows of earlier steps
        apart, size = float((x - y)[known].norm()), float(x[known].norm())
        return apart <= _allowed(a, max(before, near)) * size

    def _weight_gradient(self, name: str, value: Value, gap: Deviation | None) -> "_Told":
        """Gradients of weights are sums over the gradients of results, and may cancel: these say their scale."""
        module = name.rpartition(".")[0]
        owners = self._owners(module)
        drift = max((self._drift_of(run) for run in owners), default=self._gradient_drift())
        scale = math.hypot(self._gaps.norm(value), *(norm for run in owners for norm in run.norms.values()))
        if gap is not None and gap.apart <= _allowed(value, drift) * scale:
            return None
        return "gradient", module, f"the gradient of {name} {_text(gap)}, though those of its results agree", gap

    def _owners(self, module: str) -> list[ModuleRun]:
        """The runs that use its weights: its own; of one that never runs itself, those of the module around it."""
        found = [run for run in self.runs.values() if run.module == module]
        return found if found or not module else self._owners(module.rpartition(".")[0])

    def _drift_of(self, run: ModuleRun) -> float:
        return max(_worst(run.inputs), _worst(run.gradients), self._weights_below(run.module))

    def _between(self, own: Record, others: Record) -> dict[str, Deviation | None]:
        found: dict[str, Deviation | None] = {}
        for place, record in own.items():
            theirs = others.get(place)
            if theirs is None or record["shape"] != theirs["shape"]:
                found[place] = None
            else:
                found[place] = self._gaps.between(Value(self._a.root, record), Value(self._b.root, theirs))
        return found

    def _relative(self, gap: Deviation, value: Value, run: ModuleRun) -> float:
        """By the gradients of results, too, where those of arguments cancel."""
        largest = max(self._gaps.norm(value), *run.norms.values())
        return gap.apart / largest if largest else gap.relative

    def _gradient_drift(self) -> float:
        return max((_worst(run.gradients) for run in self.runs.values()), default=0.0)

    def _weights_below(self, module: str) -> float:
        inner = (apart for name, apart in self._weights.items() if not module or name.startswith(f"{module}."))
        return max(inner, default=0.0)


_Told = tuple[str, str, str, Deviation | None] | None  # kind, module, reason, gap


def _key(line: Record) -> Key:
    if line["kind"] == WEIGHTS:
        return WEIGHTS, line["name"], line["step"], line["what"]
    return line["kind"], line.get("module", ""), line.get("number", 0), line.get("place", "")


def _named(keys: set[Key]) -> tuple[str, ...]:
    return tuple(f"{_title(module)} (run {number + 1})" for _, module, number, _ in sorted(keys))


def _title(module: str) -> str:
    return module or "the model"


def _allowed(value: Value, drift: float) -> float:
    """The relative difference that rounding explains. Integers are equal, where what they are made of is."""
    if not value.short:
        return math.inf if drift else 0.0
    return min(_ROUNDINGS * value.unit, _MOST) + _AMPLIFIED * drift


def _worst(gaps: dict[str, Deviation | None]) -> float:
    """The largest relative difference; integers that differ count as a whole one."""
    return max((math.inf if gap is None else gap.relative for gap in gaps.values()), default=0.0)


def _text(gap: Deviation | None) -> str:
    return "has another shape or kind" if gap is None else gap.text

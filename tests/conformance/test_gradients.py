"""The references' gradients are the slopes of the references' functions: by differences, along random directions."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from diopi_conformance.cases.plan import CasePlan, read_plan
from diopi_conformance.prepare import prepare
from tests.conformance.finite_differences import Slope, directions, slope
from tests.conformance.forwards import Gradient, of_relation, of_schema, usual_cases
from tests.conformance.relations import RELATIONS

PLAN = Path(__file__).resolve().parents[2] / "generated" / "droplet" / "conformance" / "plan.json"

pytestmark = pytest.mark.skipif(not PLAN.exists(), reason="there is no plan of droplet: make build IMPL=droplet")


@dataclass(frozen=True, slots=True)
class Checked:
    """A gradient and the slopes that it was held against."""

    gradient: Gradient
    slopes: list[Slope]

    @property
    def smooth(self) -> list[Slope]:
        return [s for s in self.slopes if not s.kink(self.gradient.value)]


@pytest.fixture(scope="module")
def plan() -> CasePlan:
    return read_plan(PLAN)


@pytest.fixture(scope="module")
def checked(plan: CasePlan) -> list[Checked]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [Checked(gradient, _slopes(gradient)) for gradient in _gradients(plan)]
    finally:
        torch.set_num_threads(threads)


def _gradients(plan: CasePlan) -> Iterator[Gradient]:
    for function in plan.functions.values():
        if function.form == "backward":
            for case in usual_cases(plan, function.symbol):
                yield from of_schema(plan, case)
    for relation in RELATIONS:
        for case in usual_cases(plan, relation.forward[-1]):
            yield from of_relation(plan, relation, case)


def _slopes(gradient: Gradient) -> list[Slope]:
    found = []
    for direction in directions(gradient.at.shape, torch.Generator().manual_seed(0)):
        if gradient.symmetric:
            direction = (direction + direction.mT) / 2
        if gradient.columns:
            direction[..., : gradient.columns] = 0
        found.append(slope(gradient.compute, gradient.at, direction))
    return found


def test_gradients_are_slopes(checked: list[Checked]) -> None:
    wrong = [c.gradient.label for c in checked if not all(s.agrees(c.gradient.value) for s in c.smooth)]
    assert wrong == []


def test_few_directions_meet_kinks(checked: list[Checked]) -> None:
    kinked = [c.gradient.label for c in checked if len(c.smooth) < 2]
    assert kinked == []
    assert sum(len(c.slopes) - len(c.smooth) for c in checked) < 0.02 * sum(len(c.slopes) for c in checked)


def test_a_small_fault_in_a_gradient_is_noticed(checked: list[Checked]) -> None:
    """Its greatest element too large by a thousandth."""
    unnoticed, unmoved = [], []
    for c in checked:
        wrong = c.gradient.value.clone(memory_format=torch.contiguous_format)
        greatest = wrong.abs().argmax()
        wrong.view(-1)[greatest] *= 1.001
        if not any(s.direction.reshape(-1)[greatest] for s in c.smooth):
            unmoved.append(c.gradient.label)
        elif wrong.any() and all(s.agrees(wrong) for s in c.smooth):
            unnoticed.append(c.gradient.label)
    assert unnoticed == []
    assert len(unmoved) <= 0.01 * len(checked)


def test_every_backward_function_is_checked(plan: CasePlan, checked: list[Checked]) -> None:
    """Those of the form, and those that the schemas list as operators: none is left out."""
    named = {s for s, f in plan.functions.items() if f.form == "backward" or "backward" in s.lower()}
    held = {c.gradient.function for c in checked} | {s for r in RELATIONS for s in r.backward}
    assert named - held == set()
    assert len(named) >= 106


def test_all_gradients_of_a_function_are_checked(plan: CasePlan, checked: list[Checked]) -> None:
    """By the schemas' facts; each in some case."""
    held = defaultdict(set)
    for c in checked:
        held[c.gradient.function].add(c.gradient.label.rpartition(": ")[2])
    backward = [f for f in plan.functions.values() if f.form == "backward"]
    assert {f.symbol: set(f.backward.grads) - held[f.symbol] for f in backward} == {f.symbol: set() for f in backward}
    assert len(checked) >= 480


def test_a_kink_is_told_from_a_bend() -> None:
    def relu(at: torch.Tensor) -> tuple[float, float]:
        terms = at.clamp(min=0)
        return terms.sum().item(), terms.abs().sum().item()

    def cube(at: torch.Tensor) -> tuple[float, float]:
        return (at**3).sum().item(), (at**3).abs().sum().item()

    direction, at = torch.ones(3, dtype=torch.float64), torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64)
    halves = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)
    assert slope(relu, at, direction).kink(halves)
    assert not slope(relu, at, torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)).kink(halves)
    assert not slope(cube, at, direction).kink(3 * at**2)
    assert slope(cube, at, direction).agrees(3 * at**2)
    assert not slope(cube, at, direction).agrees(3.001 * at**2)


def test_what_stems_from_nothing_has_no_gradient(plan: CasePlan) -> None:
    """With this seed each group of frames moves beyond its clip, so that the output is zeros whatever the input."""
    case = next(case for case in plan.cases if case.id == "tin_shift_backward_mmcv/f32/overlapping/1")
    assert not prepare(plan, replace(case, seed=13)).expected["grad_input"].any()

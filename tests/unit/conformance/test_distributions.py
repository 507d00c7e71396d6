"""Random numbers by their distribution, their independence and the states of their generators."""

from collections.abc import Callable
from math import comb
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from diopi_conformance.cases.plan import Param
from diopi_conformance.judgement import statistics
from diopi_conformance.judgement.distributions import Draws, distribution_check
from diopi_conformance.values.elements import rounded

Source = Callable[[np.random.Generator], Any]
Given = tuple[str, dict[str, Any]]


def prepared(symbol: str, values: dict[str, Any], dtype: str = "f32") -> Any:
    """What a judgement reads of a case."""
    dtypes = {"out": dtype, "input": dtype, "mask": "bool"}
    function = SimpleNamespace(symbol=symbol, params=(Param(name="input", passing="tensor"),))
    return SimpleNamespace(function=function, values=values, case=SimpleNamespace(dtypes=dtypes))


def draws(source: Source, seed: int, count: int = 4) -> Draws:
    """Independent ones, as a right generator gives them."""
    rng = np.random.default_rng(seed)

    def made() -> dict[str, Any]:
        found = source(rng)
        return found if isinstance(found, dict) else {"out": found}

    independent = [made() for _ in range(count)]
    return Draws(independent, same=independent[0], other=made())


UNIFORM: Given = ("diopiUniformInp", {"from": 2.0, "to": 4.0})
NORMAL: Given = ("diopiNormalInp", {"mean": 1.0, "std": 2.0})
BERNOULLI: Given = ("diopiBernoulliScalar", {"p": 0.3})
RARE: Given = ("diopiBernoulliScalar", {"p": 1e-3})  # a single coincidence of two draws is a high correlation
RANDOM: Given = ("diopiRandomInp", {"from": -5, "to": 5})
WIDE: Given = ("diopiRandomInp", {"from": 0, "to": 1000})
PERMUTED: Given = ("diopiRandperm", {"n": 100})
WEIGHTS = np.array([[0.1, 0.2, 0.3, 0.4]])
DRAWN: Given = ("diopiMultinomial", {"input": WEIGHTS, "replacement": True})
CHANCES = np.repeat([0.1, 0.9, 0.3, 0.6], 2500)
BY_TENSOR: Given = ("diopiBernoulli", {"input": CHANCES})


def half_shuffled(rng: np.random.Generator, count: int) -> np.ndarray:
    """A shuffle whose numbers are swapped with the first half of what is left only."""
    found = np.arange(count)
    for i in range(count - 1, 0, -1):
        j = rng.integers(0, i // 2 + 1)
        found[[i, j]] = found[[j, i]]
    return found


RIGHT: list[tuple[Given, Source]] = [
    (UNIFORM, lambda g: g.uniform(2, 4, 5000)),
    (NORMAL, lambda g: g.normal(1, 2, 5000)),
    (BERNOULLI, lambda g: (g.random(5000) < 0.3) * 1.0),
    (RARE, lambda g: (g.random(2000) < 1e-3) * 1.0),
    (BY_TENSOR, lambda g: (g.random(10_000) < CHANCES) * 1.0),
    (RANDOM, lambda g: g.integers(-5, 5, 5000)),
    (WIDE, lambda g: g.integers(0, 1000, 5000)),
    (PERMUTED, lambda g: g.permutation(100)),
    (DRAWN, lambda g: g.choice(4, p=WEIGHTS[0], size=(1, 4000))),
]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("given", "source"), RIGHT)
def test_right_numbers_pass(given: Given, source: Source, seed: int) -> None:
    assert distribution_check(prepared(*given), draws(source, seed)) == ""


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize(("given", "source"), RIGHT[:2])
def test_rounding_to_half_is_no_other_distribution(given: Given, source: Source, dtype: str) -> None:
    assert distribution_check(prepared(*given, dtype), draws(lambda g: rounded(source(g), dtype), 1)) == ""


WRONG: list[tuple[Given, Source, str]] = [
    (UNIFORM, lambda g: g.uniform(2, 4.1, 5000), "the numbers leave [2.0, 4.0)"),
    (UNIFORM, lambda g: g.uniform(2.2, 4, 5000), "the mean is"),
    (UNIFORM, lambda g: np.full(5000, 3.0), "the standard deviation is"),
    (UNIFORM, lambda g: np.where(g.random(5000) < 0.5, 2.5, 3.5 + g.uniform(-0.5, 0.5, 5000)), "the "),
    (UNIFORM, lambda g: np.repeat(g.uniform(2, 4, 2500), 2), "numbers 1 apart are correlated by 0.5"),
    (UNIFORM, lambda g: np.tile(g.uniform(2, 4, 256), 20), "apart are correlated by"),
    (NORMAL, lambda g: g.normal(1.3, 2, 5000), "the mean is"),
    (NORMAL, lambda g: g.normal(1, 2.3, 5000), "the standard deviation is"),
    (NORMAL, lambda g: 1 + g.uniform(-1, 1, 5000) * 2 * np.sqrt(3), "the distribution is"),
    (NORMAL, lambda g: np.where(g.random(5000) < 1e-2, np.nan, g.normal(1, 2, 5000)), "not all finite"),
    (BERNOULLI, lambda g: (g.random(5000) < 0.35) * 1.0, "of 20000 draws are 1, expected 0.3"),
    (BERNOULLI, lambda g: (g.random(5000) < 0.3) * 2.0, "numbers other than 0 and 1"),
    (BY_TENSOR, lambda g: (g.random(10_000) < CHANCES.mean()) * 1.0, "draws are 1, expected 0.1"),
    (RANDOM, lambda g: g.integers(-5, 6, 5000), "the numbers leave [-5, 5)"),
    (RANDOM, lambda g: g.integers(-5, 4, 5000), "of 20000 draws are 1, expected 0.1"),
    (RANDOM, lambda g: g.integers(-5, 4, 5000) + 0.5, "no integers"),
    (WIDE, lambda g: g.integers(0, 900, 5000), "the distribution is"),
    (PERMUTED, lambda g: g.integers(0, 100, 100), "the numbers are no permutation"),
    (PERMUTED, lambda g: np.arange(100), "stay in their places"),
    (PERMUTED, lambda g: half_shuffled(g, 100), "that hold numbers from"),
    (DRAWN, lambda g: g.integers(0, 4, (1, 4000)), "do not follow the weights: 0 has 0.1"),
]


@pytest.mark.parametrize(("given", "source", "message"), WRONG)
def test_wrong_numbers_are_seen(given: Given, source: Source, message: str) -> None:
    found = distribution_check(prepared(*given), draws(source, 3))
    assert found and message in found


def numbers(seed: int) -> dict[str, Any]:
    return {"out": np.random.default_rng(seed).uniform(2, 4, 500)}


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (Draws([numbers(1), numbers(2), numbers(3)], numbers(1), numbers(4)), ""),
        (
            Draws([numbers(1), numbers(2)], numbers(5), numbers(4)),
            "the same state of the generator gives other numbers",
        ),
        (
            Draws([numbers(1), numbers(1)], numbers(1), numbers(4)),
            "two draws in a row are the same: the generator's state does not go on",
        ),
        (Draws([numbers(1), numbers(2)], numbers(1), numbers(1)), "another seed gives the same numbers"),
    ],
)
def test_generators_go_on_and_can_be_set_back(made: Draws, message: str) -> None:
    assert distribution_check(prepared(*UNIFORM), made) == message


def test_draws_that_are_alike_by_chance_are_right() -> None:
    one = {"out": np.array([1.0, 0.0, 1.0])}
    assert distribution_check(prepared(*BERNOULLI), Draws([one, one], one, one)) == ""


SOURCE = np.random.default_rng(3).standard_normal(20_000)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda out, mask: (out, mask), ""),
        (lambda out, mask: (out / 2, mask), "not the input where the mask is set"),
        (lambda out, mask: (out, ~mask), "not the input where the mask is set"),
        (lambda out, mask: (out * 0, mask & False), "0 of 40000 draws are 1, expected 0.7"),
    ],
)
def test_dropout_by_its_mask(change: Any, fault: str) -> None:
    def source(rng: np.random.Generator) -> dict[str, Any]:
        mask = rng.random(20_000) < 0.7
        out, kept = change(np.where(mask, SOURCE / 0.7, 0.0), mask)
        return {"out": out, "mask": kept}

    case = prepared("diopiDropout", {"input": SOURCE, "p": 0.3, "train": True})
    message = distribution_check(case, draws(source, 5, count=2))
    assert fault in message and bool(fault) == bool(message)


def test_dropout_outside_of_training_is_the_same_each_time() -> None:
    case = prepared("diopiDropout", {"input": SOURCE, "p": 0.3, "train": False})
    made = {"out": SOURCE, "mask": np.ones(SOURCE.shape, dtype=bool)}
    assert distribution_check(case, Draws([made, made], made, made)) == ""
    scaled = Draws([{**made, "out": SOURCE / 0.7}])
    assert distribution_check(case, scaled) == "the input is changed outside of training"


def test_a_function_without_a_judgement_is_told() -> None:
    message = distribution_check(prepared("diopiCauchy", {}), Draws([numbers(1)]))
    assert message == "there is no judgement for the random function 'diopiCauchy'"


def test_frequencies_err_as_seldom_as_they_say() -> None:
    """By the exact binomial distribution: the first count that is refused is rarer than that, and not much rarer."""

    def tail(ones: int) -> float:
        return sum(comb(1000, k) for k in range(ones, 1001)) / 2**1000

    def refused(ones: int) -> bool:
        return bool(statistics.frequency((np.arange(1000) < ones) * 1.0, np.full(1000, 0.5)))

    limit = next(n for n in range(500, 1001) if refused(n))
    assert tail(limit) < statistics.ERROR / 2 < tail(limit - 20)

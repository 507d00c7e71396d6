"""Shrinking: which smaller case is found, and what it is never traded for."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from diopi_conformance.cases.plan import Case, CasePlan, Function, Param
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.repro.shrink import Limits, Shrinker, described, kind

MATMUL = Function(
    symbol="diopiMatmul",
    word="matmul",
    op="matmul",
    topic="matmul",
    form="out",
    params=(
        Param(name="out", passing="tensor", role="out"),
        Param(name="input", passing="tensor", arg="input"),
        Param(name="other", passing="tensor", arg="other"),
        Param(name="scale", passing="int64", arg="scale"),
    ),
    check="close",
    tolerance={},
    data={},
    references=(),
)
CAT = replace(MATMUL, symbol="diopiCat", word="cat", params=(Param(name="tensors", passing="tensors", arg="tensors"),))


def dtypes(name: str) -> dict[str, str]:
    return {"out": name, "input": name, "other": name}


def matmul(**facts: object) -> Case:
    case = Case(
        id="matmul/f16/nhwc/strided/special/0",
        function="diopiMatmul",
        dtypes=dtypes("f16"),
        values={"input": [5, 7], "other": [7, 9], "scale": 7},
        layout="nhwc",
        view="strided",
        fill="special",
    )
    return replace(case, **facts)  # type: ignore[arg-type]


PLAN = CasePlan(
    vendor="chip",
    dtypes={},
    functions={"diopiMatmul": MATMUL, "diopiCat": CAT},
    cases=(matmul(), matmul(id="matmul/f32/0", dtypes=dtypes("f32")), matmul(id="matmul/i8/0", dtypes=dtypes("i8"))),
)


def outcome(case: Case, verdict: Verdict, message: str = "", output: str = "") -> Outcome:
    return Outcome(id=case.id, function=case.function, op="matmul", verdict=verdict, message=message, output=output)


def product(wrong: Callable[[Case], bool]) -> Callable[[Case], Outcome]:
    """A product that refuses what does not fit together and fails where `wrong` says so."""

    def attempt(case: Case) -> Outcome:
        first, second = case.values["input"], case.values["other"]
        if len(first) != 2 or len(second) != 2 or first[1] != second[0]:
            return outcome(case, Verdict.UNSOUND, "the reference refuses the case")
        return (
            outcome(case, Verdict.FAIL, "out[1, 2] is 3, expected 4", "out")
            if wrong(case)
            else outcome(case, Verdict.PASS)
        )

    return attempt


def smallest(case: Case, attempt: Callable[[Case], Outcome], **limits: int) -> tuple[Case, Shrinker, list[str]]:
    told: list[str] = []
    shrinker = Shrinker(plan=PLAN, attempt=attempt, tell=told.append, limits=Limits(**limits))
    found, after = shrinker.smallest(case, attempt(case))
    assert kind(after) == kind(attempt(case))
    return found, shrinker, told


@pytest.mark.parametrize(
    ("wrong", "shapes"),
    [
        (lambda case: True, ([1, 1], [1, 1])),
        (lambda case: case.values["other"][1] >= 3, ([1, 1], [1, 3])),
        (lambda case: case.values["input"][1] >= 5, ([1, 5], [5, 1])),
        (lambda case: case.values["input"][1] in (7, 4), ([1, 7], [7, 1])),
    ],
)
def test_sizes_that_belong_together_shrink_together(
    wrong: Callable[[Case], bool], shapes: tuple[list[int], list[int]]
) -> None:
    found, _, _ = smallest(matmul(), product(wrong))
    assert (found.values["input"], found.values["other"]) == shapes


def test_a_fault_of_many_elements_is_found_where_there_are_just_enough() -> None:
    found, _, _ = smallest(matmul(), product(lambda case: case.values["input"][0] * case.values["other"][1] > 5))
    assert found.values["input"][0] * found.values["other"][1] == 6


def test_axes_and_types_become_the_usual_ones() -> None:
    found, _, told = smallest(matmul(), product(lambda case: True))
    assert (found.fill, found.view, found.layout, found.dtypes["out"]) == ("", "contiguous", "", "f32")
    assert told[0] == "to f16 nhwc strided, input 5x7, other 7x9, scale 7"
    assert described(found) == "f32, input 1x1, other 1x1, scale 1"


@pytest.mark.parametrize(
    ("wrong", "kept"),
    [
        (lambda case: case.view == "strided", {"view": "strided", "fill": "", "layout": ""}),
        (lambda case: case.fill == "special", {"view": "contiguous", "fill": "special", "layout": ""}),
        (lambda case: case.layout == "nhwc", {"view": "contiguous", "fill": "", "layout": "nhwc"}),
        (lambda case: case.dtypes["out"] == "f16", {"dtypes": dtypes("f16")}),
    ],
)
def test_what_the_failure_needs_is_kept(wrong: Callable[[Case], bool], kept: dict[str, object]) -> None:
    found, _, _ = smallest(matmul(), product(wrong))
    assert {name: getattr(found, name) for name in kept} == kept
    assert found.values["input"] == [1, 1]


@pytest.mark.parametrize(
    ("verdict", "message", "output"),
    [
        (Verdict.CRASH, "out[1, 2] is 3, expected 4", "out"),
        (Verdict.FAIL, "'out' was written outside of its view", "out"),
        (Verdict.FAIL, "out[1, 2] is 3, expected 4", "other"),
    ],
)
def test_another_failure_is_not_followed(verdict: Verdict, message: str, output: str) -> None:
    def attempt(case: Case) -> Outcome:
        if case.values["input"][0] < 5:
            return outcome(case, verdict, message, output)
        return product(lambda _: True)(case)

    assert smallest(matmul(), attempt)[0].values["input"][0] == 5


def test_lists_of_tensors_get_shorter() -> None:
    case = Case(
        id="cat/f32/0", function="diopiCat", dtypes={"tensors": "f32"}, values={"tensors": [[4, 2], [3, 2], [1, 2]]}
    )

    def attempt(found: Case) -> Outcome:
        wrong = any(shape[0] == 3 for shape in found.values["tensors"] if shape)
        return outcome(found, Verdict.FAIL if wrong else Verdict.PASS, "wrong", f"out[{len(found.values['tensors'])}]")

    assert smallest(case, attempt)[0].values["tensors"] == [[3]]


def test_the_limit_holds() -> None:
    found, shrinker, told = smallest(matmul(), product(lambda case: True), attempts=3)
    assert len(shrinker.tried) == 5 and told[-1] == "the limit is reached; there may be a smaller one"
    assert (found.fill, found.view, found.layout, found.values) == ("", "contiguous", "", matmul().values)


def test_nothing_is_tried_twice() -> None:
    seen: list[str] = []

    def attempt(case: Case) -> Outcome:
        seen.append(described(case) + str(case.forward))
        return product(lambda c: c.values["other"][1] >= 3)(case)

    shrinker = Shrinker(plan=PLAN, attempt=attempt, tell=lambda _: None)
    shrinker.smallest(matmul(), outcome(matmul(), Verdict.FAIL, "out[1, 2] is 3, expected 4", "out"))
    assert len(seen) == len(set(seen)) > 10

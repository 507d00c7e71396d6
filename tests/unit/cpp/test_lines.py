"""Lines of C++ that fit the page."""

import pytest

from diopigen.targets.cpp.lines import WIDTH, folded

_PARAMS = ", ".join(f"const at::Tensor& argument_{index}" for index in range(6))


def test_what_fits_stays_on_one_line() -> None:
    assert folded("f(a, b);") == ("f(a, b);",)
    assert folded("x" * 100 + ", y", indent=16, after=1) == ("x" * 100 + ", y",)
    assert folded("x" * 100 + ", y", indent=16, after=2) == ("x" * 100 + ",", "    y")


def test_a_line_begins_under_the_bracket_that_it_continues() -> None:
    assert folded(f"bool call({_PARAMS})", after=2) == (
        "bool call(const at::Tensor& argument_0, const at::Tensor& argument_1, const at::Tensor& argument_2,",
        "          const at::Tensor& argument_3, const at::Tensor& argument_4, const at::Tensor& argument_5)",
    )


def test_a_line_begins_further_left_where_it_would_not_fit_under_the_bracket() -> None:
    lines = folded(f"std::tuple<at::Tensor, at::Tensor> {'long_' * 14}({_PARAMS})")
    assert max(map(len, lines)) <= WIDTH and lines[0].endswith("long_(")
    assert folded(f'constinit Control {"name_" * 20}{{"{"name_" * 4}"}};') == (
        f"constinit Control {'name_' * 20}{{",
        f'    "{"name_" * 4}"}};',
    )


def test_conditions_are_broken_before_the_calls_in_them() -> None:
    calls = [f"fit({'abcdefghij, ' * 5}{letter})" for letter in "xyz"]
    assert folded(" && ".join(calls), indent=8, hang=0) == (f"{calls[0]} &&", f"{calls[1]} &&", calls[2])


def test_an_assignment_is_broken_in_its_call_and_never_in_a_type_or_a_text() -> None:
    text = ", ".join(["word"] * 15)
    lines = folded(f'const std::tuple<at::Tensor, at::Tensor> result = f("{text}", {_PARAMS});')
    assert lines[0] == "const std::tuple<at::Tensor, at::Tensor> result =" and lines[1].startswith(f'    f("{text}",')


@pytest.mark.parametrize("word", ["x" * 130, '"' + "a, " * 50 + '"'])
def test_what_cannot_be_broken_stays(word: str) -> None:
    assert folded(word) == (word,)

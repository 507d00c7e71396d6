"""Lines of C++ that fit the page."""

from diopigen.targets.aten.text import chained, cpp_type, folded


def test_what_fits_stays_on_one_line() -> None:
    assert folded("f(", ["a", "b"], ");") == ("f(a, b);",)


def test_what_does_not_fit_goes_below_as_many_as_fit() -> None:
    items = [f"argument_{index:02}" for index in range(20)]
    lines = folded("f(", items, ");", indent=8)
    assert lines[0] == "f(" and lines[-1].endswith("argument_19);")
    assert all(len(line) <= 112 for line in lines) and len(lines) == 4
    assert " ".join(line.strip() for line in lines[1:]) == ", ".join(items) + ");"


def test_conditions_follow_the_call() -> None:
    assert chained(("return f(a)",), ["b", "c"]) == ("return f(a) && b && c;",)
    lines = chained(("return f(a)",), ["condition_" + "x" * 60, "condition_" + "y" * 60])
    assert lines == ("return f(a) && condition_" + "x" * 60, "    && condition_" + "y" * 60 + ";")


def test_types_are_spelled_as_ours() -> None:
    assert cpp_type("const ::std::optional<at::Tensor> &") == "const std::optional<at::Tensor>&"

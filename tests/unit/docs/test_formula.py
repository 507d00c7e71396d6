"""Formulas of schemas and kernels as MathML."""

import re

import pytest

from diopigen.diagnostics import Diagnostics, Span
from diopigen.source.schema.exprs import parse_expr
from diopigen.source.yaml.nodes import Leaf
from diopigen.targets.docs.formula import BadFormula, mathml
from diopigen.targets.docs.kernel_math import kernel_tex


def inner(tex: str) -> str:
    """The markup without what every formula has."""
    match = re.fullmatch(r"<math [^>]*><mrow>(.*)</mrow></math>", mathml(tex, "math"))
    assert match is not None
    return match[1]


@pytest.mark.parametrize(
    ("tex", "markup"),
    [
        ("out", "<mtext>out</mtext>"),
        (r"grad\_input", "<mtext>grad_input</mtext>"),
        (r"\mathrm{round}", "<mtext>round</mtext>"),
        ("x_i", "<msub><mi>x</mi><mi>i</mi></msub>"),
        (r"\frac{input}{2}", "<mfrac><mrow><mtext>input</mtext></mrow><mrow><mn>2</mn></mrow></mfrac>"),
        (r"\max(x", '<mo>max</mo><mo stretchy="false">&#x00028;</mo><mi>x</mi>'),
    ],
)
def test_words_are_words(tex: str, markup: str) -> None:
    assert inner(tex) == markup


@pytest.mark.parametrize(
    ("tex", "why"),
    [
        (r"\frac{x}", "an argument is missing"),
        (r"\frac{x}{y", "its braces are not closed"),
        ("x}", "it closes too many braces"),
        (r"\foo x", r"there is no '\foo'"),
        ("a & b", "it has a '&' outside of a table"),
        ("x^", "missing super script or subscript"),
        (r"\left( x", "extra left or missing right"),
        ("", "no available tokens"),
    ],
)
def test_a_bad_formula_says_why(tex: str, why: str) -> None:
    with pytest.raises(BadFormula, match=re.escape(f"this formula cannot be read: {why}")) as caught:
        mathml(tex, "backward.math")
    assert caught.value.path == "backward.math"


def test_escaped_braces_are_no_groups() -> None:
    assert "&#x0007B;" in inner(r"\{ x \}")


def tex_of(kernel: str) -> str:
    diagnostics = Diagnostics()
    expr = parse_expr(Leaf(text=kernel, quoted=False, span=Span(path="k.yaml", line=1, column=1)), diagnostics)
    assert expr is not None and not diagnostics.found
    return kernel_tex("out", expr).removeprefix(r"\text{out} = ")


@pytest.mark.parametrize(
    ("kernel", "tex"),
    [
        ("input + alpha * 2", r"\text{input} + \text{alpha} \times 2"),
        ("(input + 1) * 2", r"\left( \text{input} + 1 \right) \times 2"),
        ("input - (1 - x)", r"\text{input} - \left( 1 - \text{x} \right)"),
        ("-(a + b)", r"-\left( \text{a} + \text{b} \right)"),
        ("1 / (1 + exp(-input))", r"\frac{1}{1 + e^{-\text{input}}}"),
        ("pow(a + b, 2)", r"\left( \text{a} + \text{b} \right)^{2}"),
        ("1e-3", r"1 \times 10^{-3}"),
        ("inf", r"\infty"),
        ("grad_output", r"\text{grad\_output}"),
        ("where(x > 0, x, inf)", r"\begin{cases} \text{x} & \text{x} > 0 \\ \infty & \text{otherwise} \end{cases}"),
        ("erf(x)", r"\text{erf} \left( \text{x} \right)"),
        ("floor(x)", r"\lfloor \text{x} \rfloor"),
    ],
)
def test_kernels_as_formulas(kernel: str, tex: str) -> None:
    assert tex_of(kernel) == tex
    assert mathml(tex_of(kernel), "kernel")

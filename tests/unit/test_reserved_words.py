"""The table of reserved words has all that the compilers of this machine refuse, and nothing that the contract uses."""

import re
import shutil

import pytest

from diopigen import pipeline
from diopigen.c_spelling import c_args
from diopigen.diagnostics import Diagnostics
from diopigen.model.reserved import free_name, reserved, taken_by_languages
from diopigen.project import Project
from tools import reserved_words

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")


NEWEST = (("c", "c11"), ("c", "gnu2x"), ("c++", "gnu++2b"), ("c++", "c++2c"))


def test_every_keyword_is_there() -> None:
    words = sorted(reserved_words.known_words(ends=False))
    assert {"while", "restrict", "template", "constinit"} <= set(words)
    for language, standard in NEWEST:
        refused = set(reserved_words.refused(words, language, standard))
        assert {"while", "double"} <= refused
        assert {word for word in refused if reserved(word) is None} == set(), standard


def test_every_macro_of_what_is_included_is_there() -> None:
    macros = reserved_words.macros()
    assert macros["NULL"] == "stddef.h" and macros["linux"] == "gcc" and macros["INFINITY"] == "math.h"
    assert {name for name in macros if reserved(name) is None} == set()


def test_everything_that_is_included_declares_is_there() -> None:
    declared = reserved_words.declarations()
    assert (declared["close"], declared["tanh"], declared["size_t"]) == ("unistd.h", "mathcalls.h", "stddef.h")
    newer = {"strlcat", "strlcpy", "wcslcat", "wcslcpy"}  # in C libraries since the table was made
    assert {name for name in declared if taken_by_languages(name, at_file_scope=True) is None} <= newer


@pytest.mark.parametrize("name", ["close", "tanh", "index", "at", "std", "stdout", "size_t"])
def test_an_argument_can_be_called_as_what_a_header_declares(name: str) -> None:
    assert (taken_by_languages(name, at_file_scope=True) or "").startswith("declared by ")
    assert (reserved(name) or "").startswith("kept for types" if name == "size_t" else "")


@pytest.mark.parametrize(
    "name, reason",
    [
        ("register", "a keyword of C89"),
        ("new", "a keyword of C++98"),
        ("restrict", "a keyword of C99"),
        ("requires", "a keyword of C++20"),
        ("char8_t", "a keyword of C++20"),
        ("typeof_unqual", "a keyword of C23"),
        ("linux", "a macro of gcc"),
        ("true", "a macro of stdbool.h"),
        ("ctx", "a name in the generated functions"),
        ("C", "a name in the generated kernels"),
        ("_Complex", "kept for compilers and their headers"),
        ("int64_t", "kept for types"),
        ("DIOPI_API", "kept for the contract's own names"),
    ],
)
def test_the_reason_is_told(name: str, reason: str) -> None:
    assert (reserved(name) or "").startswith(reason)
    assert reserved(free_name(name)) is None


@pytest.mark.parametrize("name", ["input", "weight", "final", "steps", "call", "self", "_inverse", "num_", "K"])
def test_other_names_are_free(name: str) -> None:
    assert reserved(name) is None and free_name(name) == name


def test_a_free_name_is_none_that_is_taken() -> None:
    assert free_name("steps", {"steps"}) == "steps_"
    assert free_name("steps", {"steps", "steps_"}) == "steps_2"
    assert free_name("mode_is_a b", ()) == "mode_is_a_b"
    assert free_name("x__", {"x", "x_"}) == "x_2"


def test_the_contract_keeps_to_it(checkout: Project) -> None:
    program = pipeline.run(checkout, Diagnostics())
    assert program is not None
    names = {arg.name for f in program.functions for arg in c_args(f) if arg.name != "ctx"}
    assert {name for name in names if reserved(name) is not None} == set()


def test_a_kernels_operands_are_as_many_as_a_launch_takes(checkout: Project) -> None:
    from diopigen.passes.contract.verify_kernels import MOST_OPERANDS

    text = (checkout.runtime / "kernels" / "elementwise" / "pointwise.h").read_text(encoding="utf-8")
    match = re.search(r"constexpr int kMaxInputs = (\d+);", text)
    assert match is not None and int(match[1]) == MOST_OPERANDS

"""clang's own front end, as a library, reads each header under every standard without a word, comments included."""

from pathlib import Path

import pytest

from diopigen.project import Project
from diopigen.source.cpp.clang import remarks
from tests.compile.test_headers import STANDARDS
from tests.contract.header_facts import HEADERS

STRICTLY = ("-Wall", "-Wextra", "-Wpedantic", "-Wstrict-prototypes", "-Wdocumentation", "-Wdocumentation-pedantic")


def said(text: str, include: Path, language: str, standard: str, *flags: str) -> tuple[str, ...]:
    """Each warning and error of clang for a source of that text."""
    return remarks(text, ["-x", language, f"-std={standard}", f"-I{include}", *STRICTLY, *flags])


@pytest.mark.parametrize("language, standard", STANDARDS)
@pytest.mark.parametrize("name", HEADERS)
def test_a_header_alone(name: str, language: str, standard: str, checkout: Project) -> None:
    text = f"#include <diopi/{name}.h>\n#include <diopi/{name}.h>\n"
    # clang asks for the attribute wherever a comment says @deprecated
    assert said(text, checkout.generated / "include", language, standard, "-DDIOPI_WARN_DEPRECATED") == ()


def test_a_comment_that_names_what_is_not_there_would_be_noticed(checkout: Project) -> None:
    text = "#include <diopi/diopirt.h>\n/** @param[in] other a number */\nDIOPI_API void diopiOf(int number);\n"
    (found,) = said(text, checkout.generated / "include", "c", "c11")
    assert "parameter 'other' not found in the function declaration" in found

"""A vendor's definitions of years ago, spelled as the contract has always spelled them, compile against our headers."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.emit.staged import staged_headers
from diopigen.project import Project

FACTS = json.loads((Path(__file__).parents[1] / "contract" / "functions.json").read_text(encoding="utf-8"))["functions"]
OPERATORS = [fact for fact in FACTS if fact["linkage"] == "DIOPI_API"]


@pytest.fixture
def include(checkout: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The headers of the present schemas, apart from any that another run writes."""
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(tmp_path))
    program = pipeline.run(checkout, Diagnostics())
    assert program is not None
    return staged_headers(program, checkout)


def definitions(operators: list[dict[str, object]]) -> Iterator[str]:
    """A source that defines every operator, in C or C++, without a warning of its own."""
    for header in dict.fromkeys(str(fact["header"]) for fact in operators):
        yield f"#include <diopi/{header}>"
    yield "#if defined(__cplusplus)"
    yield 'extern "C" {'
    yield "#endif"
    for fact in operators:
        params = fact["params"]
        assert isinstance(params, list)
        yield f"diopiError_t {fact['name']}({', '.join(f'{type_} {name}' for type_, name in params)}) {{"
        yield from (f"    (void){name};" for _, name in params)
        yield "    return diopiNoImplement;"
        yield "}"
    yield "#if defined(__cplusplus)"
    yield "}"
    yield "#endif"


def complaints(text: str, include: Path, language: str, standard: str) -> str:
    command = ["gcc", "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{include}"]
    done = subprocess.run([*command, "-fsyntax-only", "-"], input=text, capture_output=True, text=True, check=False)
    return done.stderr


@pytest.mark.parametrize("language, standard", [("c", "c11"), ("c", "c17"), ("c++", "c++11"), ("c++", "c++20")])
def test_every_operator_can_be_defined(language: str, standard: str, include: Path) -> None:
    assert len(OPERATORS) == 538
    assert complaints("\n".join(definitions(OPERATORS)), include, language, standard) == ""


def test_a_definition_with_another_parameter_is_refused(include: Path) -> None:
    text = "\n".join(definitions(OPERATORS))
    other = text.replace("diopiRelu(diopiContextHandle_t ctx,", "diopiRelu(const void* ctx,")
    assert other != text
    assert "diopiRelu" in complaints(other, include, "c++", "c++17")

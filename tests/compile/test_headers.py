"""Each header compiles alone under every standard that it promises, and a program can call all that it declares."""

import itertools
import shutil
import subprocess
from pathlib import Path

import pytest

from diopigen.project import Project
from tests.compile.callers import addresses_of, calls_of
from tests.contract.header_facts import HEADERS, declared

# A standard of C++ is named after the compiler's language, as gcc's -x says it.
STANDARDS = (("c", "c11"), ("c", "c17"), ("c++", "c++11"), ("c++", "c++14"), ("c++", "c++17"), ("c++", "c++20"))
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name) is not None]
STRICTLY = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wstrict-prototypes")

pytestmark = pytest.mark.skipif(not COMPILERS, reason="there is neither gcc nor clang")


def complaints(compiler: str, language: str, standard: str, source: Path, include: Path, *more: str) -> str:
    """What the compiler says to the source; empty if it is content."""
    strictly = STRICTLY if language == "c" else STRICTLY[:-1]
    command = [compiler, "-x", language, f"-std={standard}", *strictly, f"-I{include}", *more, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", HEADERS)
def test_a_header_alone(name: str, compiler: str, checkout: Project, tmp_path: Path) -> None:
    for language, standard in STANDARDS:
        source = tmp_path / "alone"
        source.write_text(f"#include <diopi/{name}.h>\n#include <diopi/{name}.h>\n", encoding="utf-8")
        found = complaints(compiler, language, standard, source, checkout.generated / "include", "-fsyntax-only")
        assert found == "", f"{standard}: {found}"


@pytest.mark.parametrize("language, standard", STANDARDS)
def test_every_function_can_be_called_and_named(
    language: str, standard: str, checkout: Project, tmp_path: Path
) -> None:
    functions = tuple(itertools.chain.from_iterable(declared(checkout, name) for name in HEADERS))
    assert len(functions) > 150
    for name, text in (("calls", calls_of(functions, HEADERS)), ("addresses", addresses_of(functions, HEADERS))):
        source = tmp_path / name
        source.write_text(text, encoding="utf-8")
        include = checkout.generated / "include"
        assert complaints(COMPILERS[0], language, standard, source, include, "-fsyntax-only") == ""


def test_a_function_that_is_not_there_reads_as_null(checkout: Project, tmp_path: Path) -> None:
    """Operators are weak: a program links and starts without them, and sees which are missing."""
    functions = tuple(f for name in HEADERS for f in declared(checkout, name) if f.weak)
    source, program = tmp_path / "addresses.c", tmp_path / "addresses"
    source.write_text(addresses_of(functions, HEADERS), encoding="utf-8")
    include = checkout.generated / "include"
    assert complaints(COMPILERS[0], "c", "c11", source, include, "-o", str(program)) == ""
    assert subprocess.run([str(program)], check=False).returncode == 0


def test_another_parameter_would_be_noticed(checkout: Project, tmp_path: Path) -> None:
    functions = declared(checkout, "functions")
    text = calls_of(functions, HEADERS).replace("diopiRelu(a0, ", "diopiRelu(a0, a0, ")
    source = tmp_path / "calls"
    source.write_text(text, encoding="utf-8")
    assert "diopiRelu" in complaints("gcc", "c", "c11", source, checkout.generated / "include", "-fsyntax-only")

"""A deprecated operator warns those who ask for it, and nobody else: a vendor's definitions compile as before."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.emit.staged import staged_headers
from diopigen.project import Project

ENTRY = """\
shrink:
  doc: Moves the elements of `input` towards zero */ by a /* step.
  deprecated: diopiThreshold, which says "how far", or \\ nothing
  args:
    input: Tensor<T>
  out: Tensor<T> like input
  where: {T: float}
  variants: [out, inplace]
"""
CALL = """\
#include <diopi/functions.h>
int main(void) { return (int)diopiShrink(0, 0, 0); }
"""
DEFINITION = """\
#include <diopi/functions.h>
diopiError_t diopiShrinkInp(diopiContextHandle_t ctx, diopiTensorHandle_t input) {
    return ctx == 0 && input == 0 ? diopiSuccess : diopiErrorOccurred;
}
"""
LANGUAGES = (("c", "c11"), ("c++", "c++11"), ("c++", "c++20"))


@pytest.fixture
def include(miniature: Callable[..., Project], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(tmp_path / "cache"))
    project = miniature({"ops.yaml": ENTRY})
    diagnostics = Diagnostics()
    program = pipeline.run(project, diagnostics)
    assert program is not None and not diagnostics.found
    return staged_headers(program, project)


def complaints(text: str, include: Path, language: str, standard: str, *flags: str) -> str:
    command = ["gcc", "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{include}"]
    done = subprocess.run([*command, *flags, "-fsyntax-only", "-"], input=text, capture_output=True, text=True)
    return done.stderr


@pytest.mark.parametrize("language, standard", LANGUAGES)
def test_only_callers_who_ask_are_warned(language: str, standard: str, include: Path) -> None:
    assert complaints(CALL, include, language, standard) == ""
    warned = complaints(CALL, include, language, standard, "-DDIOPI_WARN_DEPRECATED")
    assert 'is deprecated: use diopiThreshold, which says "how far", or \\ nothing' in warned.replace(
        '\\"', '"'
    ).replace("\\\\", "\\")


@pytest.mark.parametrize("language, standard", LANGUAGES)
@pytest.mark.parametrize("flags", [(), ("-DDIOPI_WARN_DEPRECATED",)])
def test_definitions_compile_as_before(language: str, standard: str, flags: tuple[str, ...], include: Path) -> None:
    assert complaints(DEFINITION, include, language, standard, *flags) == ""


def test_the_comment_says_so(include: Path) -> None:
    text = (include / "diopi" / "functions.h").read_text(encoding="utf-8")
    assert text.count(" * Moves the elements of `input` towards zero * / by a / * step.") == 2
    assert text.count(' * @deprecated Use diopiThreshold, which says "how far", or \\ nothing.\n') == 2
    assert text.count("\n */ DIOPI_DEPRECATED(") == 2

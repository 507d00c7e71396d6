"""An entry has a diagnostic, or compilers take all that is generated from it."""

import re
import shutil
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from diopigen.model.reserved import reserved
from diopigen.project import Project
from tests.property.compiling import complaints, read, sources
from tests.property.drawn_entries import entries

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")

COUNT = 60  # of entries that are compiled together, for headers cost more than what follows from an entry
SETTINGS = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


@st.composite
def batches(draw: st.DrawFn) -> dict[str, str]:
    return {f"drawn{at}": draw(entries(f"drawn_{at:03}")) for at in range(COUNT)}


@pytest.fixture
def project(miniature: Callable[..., Project], checkout: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(checkout.cache))
    return miniature({})


def compiles(project: Project, checkout: Project, drawn: dict[str, str]) -> None:
    batch = read(project, drawn, checkout)
    assert complaints(batch, project, checkout) == ""


def test_an_entry_compiles_or_has_a_diagnostic(project: Project, checkout: Project) -> None:
    given(batches())(settings(SETTINGS, max_examples=4)(lambda drawn: compiles(project, checkout, drawn)))()


@pytest.mark.deep("fuzz", "the same of a few entries")
def test_many_entries_compile_or_have_a_diagnostic(project: Project, checkout: Project) -> None:
    given(batches())(settings(SETTINGS, max_examples=60)(lambda drawn: compiles(project, checkout, drawn)))()


NAMED = """\
{op}:
  doc: An op with an argument, an output, a count or a temporary of that name.
  args:
    input: Tensor<T>
    {first}: Tensor<T> | Scalar
    mode: str(none, tanh) = "tanh"
    list: Tensor<T>[{count}]
  out:
    {out}: Tensor<T> like input
  where: {{T: float}}
  variants: [out, inplace]
  kernel: where(mode == "tanh", input * {first}, exp(input) + 0.5)
  compose:
  - {temporary}: Tensor<T> like broadcast(input, {first})
  - mul({temporary}, input, {first})
  - add({out}, {temporary}, abs(2))
  cases:
  - {{input: [2], {first}: [2], list: [[2]]}}
"""


def named(op: str, place: str, word: str) -> str:
    """An entry with `word` in one place."""
    places = {"first": "other", "count": "num", "out": "result", "temporary": "product"}
    return NAMED.format(op=op, **{**places, place: word})


def test_every_word_of_generated_sources_is_a_name_or_reserved(project: Project, checkout: Project) -> None:
    texts = [
        output.text for output in sources(read(project, {"plain": named("plain", "out", "out")}, checkout), project)
    ]
    code = re.sub(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"', "", "\n".join(texts), flags=re.DOTALL)
    words = sorted(set(re.findall(r"[A-Za-z_]\w*", code)))
    assert {"steps", "call", "elementwise", "apply", "kRule1", "std"} <= set(words)
    free = [word for word in words if reserved(word) is None]
    places = ("first", "temporary", "count", "out")  # each word in one of them
    drawn = {f"word{at}": named(f"word_{at:03}", places[at % 4], word) for at, word in enumerate(free)}
    compiles(project, checkout, drawn)

"""An entry has a diagnostic, or compilers take all that is generated from it."""

import shutil
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from diopigen.project import Project
from tests.property.compiling import complaints, read
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

"""Any one wrong token in a good file gives a diagnostic with a place, never a traceback."""

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project

GOOD = (Path(__file__).parent / "good.yaml").read_text(encoding="utf-8")
COUNT = 2000
SHARDS = 10

# Free text, new names and numbers can be anything, so a change of them is no mistake.
_FREE = re.compile(r"^\s*(doc|math):.*$|^[a-z_]+:$|^ *#.*$", re.MULTILINE)
_TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|==|[<>\[\]{}():|=?,]")
_NUMBER_LIKE = re.compile(r"e|inf|nan")


def tokens(text: str) -> list[tuple[int, int]]:
    """Where the tokens stand that a mutation may hit."""
    free = [match.span() for match in _FREE.finditer(text)]
    return [
        match.span()
        for match in _TOKEN.finditer(text)
        if not any(start <= match.start() < end for start, end in free) and not _NUMBER_LIKE.fullmatch(match[0])
    ]


def mutations(shard: int) -> Iterator[tuple[str, str]]:
    """Bad files, each with what was done; deterministic."""
    rng = random.Random(shard)
    places = tokens(GOOD)
    for _ in range(COUNT // SHARDS):
        start, end = rng.choice(places)
        token = GOOD[start:end]
        if token[0].isalpha() or token[0] == "_":
            at = rng.randrange(len(token) + 1)
            changed = rng.choice(
                [token[:at] + rng.choice("qxzQ") + token[at:], token + "_" + token, rng.choice(["zzz", "Qq", "@", "%"])]
            )
        else:
            changed = rng.choice(["@", "%", "!", token + "@", "\t@"])
        line = GOOD.count("\n", 0, start) + 1
        yield f"line {line}: {token!r} -> {changed!r}", GOOD[:start] + changed + GOOD[end:]


def found(project: Project, text: str) -> Diagnostics:
    (project.schemas / "ops" / "good.yaml").write_text(text, encoding="utf-8")
    diagnostics = Diagnostics()
    pipeline.run(project, diagnostics, pipeline.Stage.ATEN, pipeline.Stage.CASES)
    return diagnostics


@pytest.fixture
def project(miniature: Callable[..., Project], checkout: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(checkout.cache))
    return miniature({})


def test_the_good_file_is_good(project: Project) -> None:
    assert not found(project, GOOD).found


MORE = pytest.mark.deep("fuzz", "the first of the shards, which has mutations of each kind")


@pytest.mark.parametrize("shard", [pytest.param(shard, marks=MORE if shard else ()) for shard in range(SHARDS)])
def test_every_mutation_is_found(project: Project, shard: int) -> None:
    for what, text in mutations(shard):
        diagnostics = found(project, text)
        assert diagnostics.found, what
        lines = text.count("\n") + 2
        for finding in diagnostics.found:
            assert finding.span.path == "schemas/ops/good.yaml", what
            assert 1 <= finding.span.line <= lines and finding.span.column >= 1, what

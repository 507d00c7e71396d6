"""Every diagnostic of an op schema: a bad file, and the exact text that somebody reads."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics, render_github, render_human, render_json
from diopigen.project import Project

HERE = Path(__file__).parent
BAD = sorted((HERE / "ops").glob("*.yaml"))


def findings(project: Project) -> Diagnostics:
    diagnostics = Diagnostics()
    pipeline.run(project, diagnostics)
    return diagnostics


@pytest.mark.parametrize("bad", BAD, ids=lambda path: path.stem)
def test_text(bad: Path, miniature: Callable[..., Project], golden: Callable[[Path, str], None]) -> None:
    project = miniature({})
    shutil.copy(bad, project.schemas / "ops" / bad.name)
    if bad.stem == "duplicate-op":
        shutil.copy(bad, project.schemas / "ops" / "again.yaml")
    diagnostics = findings(project)
    assert bad.stem in {d.code for d in diagnostics.found}
    golden(bad.with_suffix(".txt"), "\n".join(render_human(diagnostics, project.root)) + "\n")


def test_programs_get_the_same_facts(miniature: Callable[..., Project]) -> None:
    project = miniature({"a.yaml": (HERE / "ops" / "unknown-key.yaml").read_text(encoding="utf-8")})
    diagnostics = findings(project)
    assert list(render_json(diagnostics)) == [
        '{"severity": "error", "code": "unknown-key", "message": "\'add\' has no property \'varients\'", '
        '"path": "schemas/ops/a.yaml", "line": 6, "column": 3, "length": 8, "hint": "did you mean \'variants\'?", '
        '"related": []}'
    ]
    assert list(render_github(diagnostics)) == [
        "::error file=schemas/ops/a.yaml,line=6,col=3,title=unknown-key::'add' has no property 'varients'; "
        "did you mean 'variants'?"
    ]


def test_every_code_has_a_text(checkout: Project) -> None:
    """No diagnostic can be added without a golden or a test that shows its text."""
    sources = (checkout.root / "generators" / "diopigen").rglob("*.py")
    pattern = re.compile(r'(?:\.(?:error|warning|note)\(\s*|code=|_Bad\(\s*)"([a-z0-9-]+)"')
    codes = {code for source in sources for code in pattern.findall(source.read_text(encoding="utf-8"))}
    tests = [p for p in (checkout.root / "tests").rglob("*") if p.suffix in (".txt", ".py") and p != Path(__file__)]
    shown = "\n".join(p.read_text(encoding="utf-8") for p in tests)
    assert not {code for code in codes if code not in shown}


def test_a_file_whose_outputs_would_be_parts_of_another_s(miniature: Callable[..., Project]) -> None:
    project = miniature({"loss.yaml": "# none\n", "loss_2.yaml": "# none\n", "loss_x.yaml": "", "gain_1.yaml": ""})
    (found,) = (d for d in findings(project).found if d.code == "bad-name")
    assert found.span.path == "schemas/ops/loss_2.yaml" and found.hint == "rename the file"
    assert found.message == "the outputs of 'loss_2.yaml' have the names of part 2 of 'loss.yaml'"

"""What `diopigen explain` says of functions of the miniature; `make golden` writes it to explanations/."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopigen.cli import cli
from diopigen.project import Project
from tests.golden.conftest import lay_out

EXPLANATIONS = Path(__file__).parent / "explanations"

# Each with the reason why somebody reads its golden.
FUNCTIONS = {
    ("chip", "diopiAvgPool2dBackward"): "three levels, orders by argument, a rule that overrides another",
    ("chip", "diopiAdd"): "a generated kernel, casts of several tensors",
    ("chip", "diopiSum"): "contiguous tensors",
    ("chip", "diopiMaskedSelect"): "an output that the function allocates, a tensor that no cast touches",
    ("chip", "diopiCopyInp"): "what conversions are made of",
    ("card", "diopiAdd"): "no rules at all",
    ("card", "diopiSub"): "a function composed of others",
    ("mirror", "diopiTanh"): "an implementation before another",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return lay_out(tmp_path_factory.mktemp("explained") / "project")


@pytest.mark.parametrize(("vendor", "function"), FUNCTIONS)
def test_explanations_are_their_goldens(
    vendor: str, function: str, project: Project, golden: Callable[[Path, str], None]
) -> None:
    result = CliRunner().invoke(cli, ["--project", str(project.root), "explain", function, "--vendor", vendor])
    assert result.exit_code == 0, result.output
    golden(EXPLANATIONS / f"{vendor}-{function}.txt", result.stdout)

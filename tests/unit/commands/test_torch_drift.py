"""What changed in the bound operators between two releases of torch."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from diopigen.aten import records
from diopigen.cli import cli

ROOT = Path(__file__).resolve().parents[3]


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, ["--project", str(ROOT), "compat", *map(str, words)])


@pytest.fixture(scope="module")
def installed() -> records.Schemas:
    pytest.importorskip("torchgen")
    return records.installed()


def test_a_record_reads_as_it_was_written(installed: records.Schemas, tmp_path: Path) -> None:
    path = tmp_path / "torch.txt"
    assert run("--save-torch", path).exit_code == 0
    assert records.read(str(path), tmp_path) == installed
    assert installed["relu"] == "relu(Tensor self) -> Tensor"
    assert len(installed) > 2500


def test_releases_that_agree(tmp_path: Path, installed: records.Schemas) -> None:
    path = tmp_path / "torch.txt"
    path.write_text(records.text(installed))
    done = run("--torch", path, records.installed_minor())
    assert done.exit_code == 0 and done.stdout == ""
    assert "bound overloads, 0 differ between torch" in done.stderr


def test_what_changed_and_what_is_gone_stand_with_their_places(tmp_path: Path, installed: records.Schemas) -> None:
    path = tmp_path / "torch.txt"
    older = {**installed, "gelu": "gelu(Tensor self) -> Tensor"}
    del older["sort"]
    path.write_text(records.text(older))
    done = run("--torch", path, records.installed_minor())
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert len(lines) == 6
    assert lines[0].startswith("schemas/ops/activation.yaml:") and lines[0].endswith(": gelu of 'gelu'")
    assert lines[1] == f"  torch {path}: gelu(Tensor self) -> Tensor"
    assert lines[2].endswith("gelu(Tensor self, *, str approximate='none') -> Tensor")
    assert lines[3].endswith(": sort of 'sort'")
    assert lines[4] == f"  torch {path}: has no such overload"


def test_a_release_without_a_record() -> None:
    done = run("--torch", "1.4", "2.11")
    assert done.exit_code == 2
    assert "there is no record of torch 1.4; there are records of 2.11, 2.12, 2.13" in done.stderr

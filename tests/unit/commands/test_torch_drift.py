"""What changed in the bound operators between two releases of torch."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from diopigen.aten import interface, records
from diopigen.aten.uses import Uses, uses
from diopigen.cli import cli
from diopigen.diagnostics import Span

ROOT = Path(__file__).resolve().parents[3]


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, ["--project", str(ROOT), "compat", *map(str, words)])


@pytest.fixture(scope="module")
def installed() -> records.Schemas:
    pytest.importorskip("torchgen")
    return records.installed()


def test_a_record_reads_as_it_was_written(installed: records.Schemas, tmp_path: Path) -> None:
    path = tmp_path / "torch.txt"
    done, used = run("--save-torch", path), uses(ROOT)
    assert done.exit_code == 0
    assert done.stderr == f"looking at {len(used.names)} names and {len(used.headers)} headers of torch\n"
    assert records.read(str(path), tmp_path) == installed
    observed = interface.of_release(str(path), tmp_path, used)
    assert observed.names["torch.autograd.grad"] == (
        "(outputs, inputs, grad_outputs=, retain_graph=, create_graph=, only_inputs=, allow_unused=, "
        "is_grads_batched=, materialize_grads=)"
    )
    assert observed.headers["ATen/ops/softplus_ops.h"] == "has it"
    assert "allocate(size_t) = 0" in observed.virtuals["c10::DeviceAllocator"]
    assert installed["relu"] == "relu(Tensor self) -> Tensor"
    assert len(installed) > 2500


def test_releases_that_agree(tmp_path: Path, installed: records.Schemas) -> None:
    path = tmp_path / "torch.txt"
    path.write_text(records.text(installed))
    done = run("--torch", path, records.installed_minor())
    assert done.exit_code == 0 and done.stdout == ""
    assert "bound overloads and hand-written ones, 0 differ between torch" in done.stderr
    assert f"only operators are compared: there is no record of the names and headers of torch {path}" in done.stderr


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
    assert lines[4] == f"  torch {path}: has none"


def test_a_release_without_a_record() -> None:
    done = run("--torch", "1.4", "2.11")
    assert done.exit_code == 2
    assert "there is no record of torch 1.4; there are records of 2.11, 2.12, 2.13, 2.14, 2.15" in done.stderr


def test_hand_written_code_and_what_else_is_used_of_torch_is_compared() -> None:
    done = run("--torch", "2.13", "2.15")
    assert done.exit_code == 1
    cholesky = "cholesky(Tensor self, bool upper=False) -> Tensor"
    lines = done.stdout.splitlines()
    place = next(i for i, line in enumerate(lines) if line.endswith(": cholesky of hand-written C++"))
    assert lines[place].startswith("runtime_cpp/torch/derived/linear_algebra.cpp:")
    assert lines[place + 1 : place + 3] == [
        f"  torch 2.13: {cholesky}",
        f"  torch 2.15: left out: torch 2.15 has no such operator; torch 2.13 has {cholesky}",
    ]
    assert "  torch 2.15: philox_state(uint64_t, at::Tensor &, at::Tensor &, at::Tensor &)" in lines
    assert any(line.endswith(": ATen/ops/cholesky_ops.h") for line in lines)
    assert any(line.endswith(": torch.compile") for line in lines)


def test_what_breaks_is_what_went_and_what_has_to_be_written() -> None:
    def differences(before: tuple[str, ...], after: tuple[str, ...]) -> list[tuple[str | None, str | None, bool]]:
        releases = (
            interface.Interface(names={}, headers={}, virtuals={"c10::Allocator": functions})
            for functions in (before, after)
        )
        used = Uses(names={}, headers={}, bases={"c10::Allocator": Span(path="a.h", line=1, column=1)})
        return [(d.old, d.new, d.breaks) for d in interface.differences(used, *releases)]

    assert differences(("f()",), ("f()", "g()")) == [(None, "g()", False)]
    assert differences(("f()",), ("f()", "g() = 0")) == [(None, "g() = 0", True)]
    assert differences(("f()", "g()"), ("f()",)) == [("g()", None, True)]


def test_a_package_that_torchs_own_modules_need_is_not_taken_for_a_name_that_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "expecttest.py").write_text('raise ModuleNotFoundError("No module", name="expecttest")\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = run("--save-torch", tmp_path / "torch.txt")
    assert done.exit_code == 2 and list(tmp_path.glob("torch.*")) == []
    assert re.search(
        r"names of torch cannot be looked up: torch\.testing\.\S+ needs the package 'expecttest'", done.stderr
    )

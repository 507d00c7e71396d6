"""What another release of torch declares otherwise is left out with a warning; all else is built as ever."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.aten import records
from diopigen.aten.catalog import Catalog
from diopigen.aten.releases import Releases, arguments, returns
from diopigen.diagnostics import Diagnostics, Severity, render_human
from diopigen.model.program import Program
from diopigen.project import Project
from diopigen.source.cpp.written_files import written_files
from diopigen.targets.aten import outputs
from diopigen.targets.output import renderer
from tests.unit.aten.conftest import ADD

ROOT = Path(__file__).resolve().parents[3]
MM = """\
mm:
  doc: Multiplies two matrices.
  args: {input: Tensor<T>, mat2: Tensor<T>}
  out: Tensor<T> like matmul(input, mat2)
  where: {T: number}
  aten: mm
"""
SCHEMAS = {
    "mm": "mm(Tensor self, Tensor mat2) -> Tensor",
    "mm.out": "mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)",
}


def installed(catalog: Catalog, lacks: tuple[str, ...] = (), **renamed: tuple[str, str]) -> Catalog:
    """The installed torch as release 2.14, without some operators, or with another name for an argument of `mm`."""
    lines = {name: line for name, line in catalog.lines.items() if name not in lacks}
    for packet, (before, after) in renamed.items():
        for name in (n for n in lines if n.partition(".")[0] == packet):
            record = json.loads(lines[name])
            record["args"] = [[after if a[0] == before else a[0], *a[1:]] for a in record["args"]]
            lines[name] = json.dumps(record)
    return Catalog(torch="2.14.0", lines=lines)


class Built:
    """A made-up project under a made-up torch, with records of the releases 2.12 and 2.13."""

    def __init__(self, project: Project, catalog: Catalog, schemas: dict[str, str], patch: pytest.MonkeyPatch) -> None:
        folder = project.schemas / "aten"
        folder.mkdir()
        for release in ("2.12", "2.13"):
            (folder / f"{release}.txt").write_text(records.text(schemas))
        self.diagnostics = Diagnostics()
        program = pipeline.run(project, self.diagnostics)
        assert program is not None
        patch.setattr(pipeline, "load", lambda cache, found: catalog)
        self.program: Program = pipeline.run(project, self.diagnostics, pipeline.Stage.ATEN, program=program)
        self.text = "\n".join(render_human(self.diagnostics, project.root))

    @property
    def overloads(self) -> set[str]:
        return {b.overload.name for b in self.program.bindings}


Build = Callable[..., Built]


@pytest.fixture
def build(miniature: Callable[..., Project], monkeypatch: pytest.MonkeyPatch) -> Build:
    def make(catalog: Catalog, mm: str = MM, schemas: dict[str, str] | None = None) -> Built:
        return Built(miniature({"a.yaml": ADD + "\n" + mm}), catalog, schemas or SCHEMAS, monkeypatch)

    return make


def test_every_schema_is_read_as_torchgen_reads_it(catalog: Catalog) -> None:
    schemas = records.installed()
    for name in schemas:
        overload = catalog.overload(name)
        assert overload is not None and arguments(schemas[name]) == overload.args
        found = [(r.type, r.alias) for r in returns(schemas[name])]
        assert found == [(r.type, r.alias) for r in overload.returns]


def test_releases_stand_by_their_numbers(tmp_path: Path) -> None:
    for release in ("2.9", "2.10", "2.11"):
        (tmp_path / f"{release}.txt").write_text("add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)\n")
    releases = Releases(folder=tmp_path)
    assert [d.release for d in releases.declared("add_.Tensor")] == ["2.11", "2.10", "2.9"]
    assert [d.overload for d in releases.spelled("add__Tensor")] == ["add_.Tensor"] * 3
    assert [d.overload for d in releases.declared("add")] == ["add_.Tensor"] * 3
    assert releases.declared("mul") == releases.spelled("mul") == ()


def test_an_operator_that_is_gone_is_left_out_and_the_others_are_built(build: Build, catalog: Catalog) -> None:
    built = build(installed(catalog, lacks=("mm", "mm.out")))
    assert not built.diagnostics.failed
    assert built.text == (
        "schemas/ops/a.yaml:15:9: warning[aten-drifted]: 'mm' is left out: torch 2.14 has no such operator; "
        "torch 2.12 and 2.13 have mm(Tensor self, Tensor mat2) -> Tensor\n"
        "    15 |   aten: mm\n"
        "       |         ^^ the others are not affected\n"
        "schemas/ops/a.yaml:15:9: warning[aten-drifted]: 'mm.out' is left out: torch 2.14 has no such operator; "
        "torch 2.12 and 2.13 have mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)\n"
        "    15 |   aten: mm\n"
        "       |         ^^ the others are not affected"
    )
    assert "add.Tensor" in built.overloads and "mm" not in built.overloads
    assert [d.overload for d in built.program.drifted] == ["mm", "mm.out"]


def test_an_operator_that_changed_is_left_out(build: Build, catalog: Catalog) -> None:
    built = build(installed(catalog, mm=("mat2", "other")))
    assert not built.diagnostics.failed
    assert (
        "'mm' is left out: torch 2.14 declares it differently from torch 2.12 and 2.13: "
        "mm(Tensor self, Tensor mat2) -> Tensor" in built.text
    )
    assert "add.Tensor" in built.overloads and "mm" not in built.overloads


def test_what_fits_is_bound_although_it_changed(build: Build, catalog: Catalog) -> None:
    renamed = MM.replace("aten: mm", "aten: {forward: mm, rename: {mat2: other}}")
    built = build(installed(catalog, mm=("mat2", "other")), mm=renamed)
    assert {"mm", "mm.out"} <= built.overloads and not built.diagnostics.found


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ("{forward: mm, rename: {mat2: third}}", "aten-argument"),
        ("{forward: mm, function: diopiMn}", "aten-function"),
        ("{backward: mm}", "aten-form"),
    ],
)
def test_what_fits_no_release_is_an_error(build: Build, catalog: Catalog, clause: str, code: str) -> None:
    built = build(installed(catalog, mm=("mat2", "other")), mm=MM.replace("aten: mm", f"aten: {clause}"))
    assert code in {d.code for d in built.diagnostics.found if d.severity is Severity.ERROR}


def test_a_clause_may_name_an_argument_that_another_release_has(build: Build, catalog: Catalog) -> None:
    clause = "aten: {forward: mm, rename: {mat2: mat2}}"
    built = build(installed(catalog, mm=("mat2", "other")), mm=MM.replace("aten: mm", clause))
    assert not built.diagnostics.failed and [d.overload for d in built.program.drifted] == ["mm.out", "mm"]


def test_a_misspelled_operator_is_an_error(build: Build, catalog: Catalog) -> None:
    built = build(installed(catalog), mm=MM.replace("aten: mm", "aten: mm.outt"))
    assert "error[aten-unknown]: this torch has no operator 'mm.outt'" in built.text
    assert "did you mean 'mm.out'?" in built.text


def test_the_backend_lists_what_is_left_out(build: Build, catalog: Catalog) -> None:
    program = build(installed(catalog, lacks=("mm", "mm.out"))).program
    texts = {o.path: o.text for o in outputs(program, renderer(ROOT / "templates"))}
    line = '{"mm", "torch 2.14 has no such operator; torch 2.12 and 2.13 have mm(Tensor self, Tensor mat2) -> Tensor"},'
    assert line in texts["aten/registration.cpp"]


TRUNC = {"trunc_": "trunc_(Tensor(a!) self) -> Tensor(a!)", "floor": "floor(Tensor self) -> Tensor"}


def test_a_file_of_derived_operators_is_left_out_with_what_it_names(build: Build, catalog: Catalog) -> None:
    built = build(installed(catalog, lacks=("trunc_",)), schemas={**SCHEMAS, **TRUNC})
    path = "runtime_cpp/torch/derived/rounding.cpp"
    assert not built.diagnostics.failed
    assert f"warning[aten-file-drifted]: '{path}' is left out: torch 2.14 has no such operator; " in built.text
    assert built.program.left_out == (path,)
    assert "rounding" not in built.program.derivations and "padding" in built.program.derivations
    reasons = {d.overload: d.reason for d in built.program.drifted}
    assert "trunc" in reasons and "fmod.Tensor" in reasons and "add.Tensor" not in reasons


def test_a_file_stays_where_one_release_agrees(build: Build, catalog: Catalog) -> None:
    assert not build(installed(catalog), schemas={**SCHEMAS, **TRUNC}).program.left_out


def test_a_file_whose_operator_no_release_declares_so_is_left_out(build: Build, catalog: Catalog) -> None:
    built = build(installed(catalog, fmod=("other", "divisor")), schemas=records.installed())
    assert built.program.left_out == ("runtime_cpp/torch/derived/rounding.cpp",)
    assert "declares it differently from torch 2.12 and 2.13: fmod.Tensor(" in built.text


def test_a_hand_written_wrapper_goes_with_its_bindings(build: Build, catalog: Catalog) -> None:
    losses = ADD.replace("add:", "losses:").replace("aten: add", "aten: {forward: _ctc_loss, wrapper: ctc_loss}")
    gone = ("_ctc_loss_backward.Tensor",)
    built = build(
        installed(catalog, lacks=gone),
        mm=losses.partition("kernel")[0] + losses[losses.index("aten") :],
        schemas=records.installed(),
    )
    assert built.program.left_out == ("runtime_cpp/torch/ops/ctc_loss.cpp",)
    assert not [b for b in built.program.bindings if b.wrapper == "ctc_loss"]
    assert {"_ctc_loss", "_ctc_loss.Tensor"} <= {d.overload for d in built.program.drifted}


def test_derivations_register_in_the_order_of_their_header() -> None:
    files = written_files(ROOT / "runtime_cpp" / "torch", "runtime_cpp/torch")
    derived = [file.stem for file in files if file.derives]
    assert derived[:2] == ["rounding", "pointwise"] and len(derived) == len(set(derived)) >= 12
    assert {file.stem for file in files if not file.derives} >= {"ctc_loss", "optimizer"}
    assert "trunc_out" in next(file for file in files if file.stem == "rounding").registers


def test_the_supported_releases_leave_nothing_out(checkout: Project) -> None:
    diagnostics = Diagnostics()
    bound = pipeline.run(checkout, diagnostics, pipeline.Stage.ATEN)
    assert bound is not None
    assert not bound.drifted and not bound.left_out and not diagnostics.failed
    kept = {path.stem for path in (checkout.schemas / "aten").glob("*.txt")}
    assert {"2.11", "2.12", "2.13"} <= kept

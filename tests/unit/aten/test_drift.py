"""What another release of torch declares otherwise is left out with a warning; all else is built as ever."""

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.aten import records
from diopigen.aten.catalog import Catalog
from diopigen.aten.releases import Recorded, Releases, arguments, returns
from diopigen.diagnostics import Diagnostics, Severity, render_human
from diopigen.model.aten import Drifted
from diopigen.model.program import Program
from diopigen.passes.aten.drift import Drift
from diopigen.passes.aten.leave_out import lost_overloads
from diopigen.project import Project
from diopigen.source.cpp.items import code_of
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


def installed(
    catalog: Catalog,
    lacks: tuple[str, ...] = (),
    retyped: dict[str, tuple[str, str]] | None = None,
    **renamed: tuple[str, str],
) -> Catalog:
    """The installed torch as release 2.14, without some operators, or with another name or type for an argument."""
    lines = {name: line for name, line in catalog.lines.items() if name not in lacks}
    for changed, at in ((renamed, 0), (retyped or {}, 1)):
        for packet, (argument, after) in changed.items():
            for name in (n for n in lines if n.partition(".")[0].rstrip("_") == packet):
                record = json.loads(lines[name])
                for found in (a for a in record["args"] if a[0] == argument):
                    found[at] = after
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
        patch.setattr(pipeline, "loading", lambda cache, found: lambda: catalog)
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
    assert built.text.endswith(
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
    assert {d.overload for d in built.program.drifted} == {"mm", "mm.out", "dot", "vdot", "matmul_backward"}


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
    assert not built.diagnostics.failed and [d.overload for d in built.program.drifted][:2] == ["mm.out", "mm"]


def test_a_condition_of_graphs_may_name_an_argument_that_another_release_has(build: Build, catalog: Catalog) -> None:
    clause = 'aten: {compiled: {forward: mm, when: ["size(mat2, 0) == 2"]}}'
    built = build(installed(catalog, mm=("mat2", "other")), mm=MM.replace("aten: mm", clause))
    assert not built.diagnostics.failed and not built.program.compiled
    assert "'mm' is left out: torch 2.14 declares it differently from torch 2.12 and 2.13: " in built.text


def test_a_packet_of_which_only_composites_stay_is_left_out(build: Build, catalog: Catalog) -> None:
    """native_batch_norm_backward.out, which torch composes of the form that is gone."""
    norm = ADD.replace("add:", "norm:").replace(
        "aten: add", "aten: {forward: native_batch_norm_backward, wrapper: batch_norm}"
    )
    built = build(
        installed(catalog, lacks=("native_batch_norm_backward",)),
        mm=norm.partition("kernel")[0] + norm[norm.index("aten") :],
        schemas=records.installed(),
    )
    assert not built.diagnostics.failed
    assert "'native_batch_norm_backward' is left out: torch 2.14 has no such operator; " in built.text
    drifted = {d.overload: d.reason for d in built.program.drifted}
    assert "native_batch_norm_backward.out" not in drifted
    texts = {o.path: o.text for o in outputs(built.program, renderer(ROOT / "templates"))}
    [entry] = re.findall(r'^ +\{"native_batch_norm_backward",\n(.*?)\},$', texts["aten/registration.cpp"], re.M | re.S)
    parts = [line.strip() for line in entry.splitlines()]
    assert "".join(json.loads(part) for part in parts) == drifted["native_batch_norm_backward"]
    assert len(parts) > 2 and max(map(len, texts["aten/registration.cpp"].splitlines())) <= 120


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


def written(built: Built, path: str) -> str:
    """The copy of a hand-written file, as it is generated."""
    return next(o.text for o in outputs(built.program, renderer(ROOT / "templates")) if o.path == path)


def test_of_a_derived_operator_only_the_form_that_is_gone_is_left_out(build: Build, catalog: Catalog) -> None:
    built = build(installed(catalog, lacks=("trunc_",)), schemas={**SCHEMAS, **TRUNC})
    assert not built.diagnostics.failed
    assert built.text == (
        "runtime_cpp/torch/derived/rounding.cpp:75:45: warning[aten-drifted]: 'trunc_' is left out: "
        "torch 2.14 has no such operator; torch 2.12 and 2.13 have trunc_(Tensor(a!) self) -> Tensor(a!)\n"
        "    75 |     d.add<&derived::trunc, ops::trunc, ops::trunc_, ops::trunc_out>();\n"
        "       |                                             ^^^^^^ the others are not affected"
    )
    assert [file.path for file in built.program.rewritten] == ["runtime_cpp/torch/derived/rounding.cpp"]
    assert "rounding" in built.program.derivations
    assert {d.overload for d in built.program.drifted} == {"trunc_"}
    text = written(built, "aten/derived/rounding.cpp")
    assert text.startswith("// runtime_cpp/torch/derived/rounding.cpp without what torch 2.14 lacks.")
    assert "    d.add<&derived::trunc, ops::trunc, ops::trunc_out>();\n" in text
    assert "#include <ATen/ops/trunc_ops.h>\n" in text


def test_what_calls_an_operator_that_is_gone_goes_with_it_and_its_reason_names_that(
    build: Build, catalog: Catalog
) -> None:
    gone = ("addr", "addr_", "addr.out", "triangular_solve", "triangular_solve.X")
    built = build(installed(catalog, lacks=gone), schemas=records.installed())
    reasons = {d.overload: d.reason for d in built.program.drifted}
    assert set(reasons) == {
        *("addr", "addr_", "addr.out", "linalg_solve_triangular", "linalg_solve_triangular.out"),
        *("_cholesky_solve_helper", "cholesky_inverse", "cholesky_inverse.out"),
    }
    assert reasons["addr"].startswith("torch 2.14 has no such operator; torch 2.12 and 2.13 have addr(")
    assert reasons["cholesky_inverse"].startswith("it needs 'triangular_solve': torch 2.14 has no such operator; ")
    text = written(built, "aten/derived/linear_algebra.cpp")
    assert not [word for word in ("addr_ops.h", "triangular_solve.h", "solve_triangular(") if word in text]
    assert ".add<&derived::dot, ops::dot>().add<&derived::vdot, ops::vdot>();" in text


def test_a_call_with_arguments_that_are_taken_no_longer_goes(build: Build, catalog: Catalog) -> None:
    """`addr` calls at::addmm with five arguments, and addbmm the method with four beside the tensor."""
    built = build(installed(catalog, retyped={"addmm": ("mat1", "float")}), schemas=records.installed())
    reasons = {d.overload: d.reason for d in built.program.drifted}
    assert {"addr", "addr_", "addr.out", "addbmm", "addmv"} <= set(reasons) and "dot" not in reasons
    assert reasons["addr"].startswith("it needs 'addmm': torch 2.14 declares it differently from torch 2.12 and 2.13: ")


def test_a_member_of_tensors_need_be_no_operator(build: Build, catalog: Catalog) -> None:
    """torch 2.11 has numel() and dim() in C++ alone."""
    built = build(installed(catalog, lacks=("numel", "dim")), schemas=records.installed())
    assert not built.program.rewritten and not built.program.drifted


def test_an_argument_that_is_called_otherwise_changes_no_type(build: Build, catalog: Catalog) -> None:
    built = build(installed(catalog, fmod=("other", "divisor")), schemas=records.installed())
    assert not built.program.rewritten and not built.program.drifted


def test_a_file_stays_where_one_release_agrees(build: Build, catalog: Catalog) -> None:
    assert not build(installed(catalog), schemas={**SCHEMAS, **TRUNC}).program.rewritten


def test_an_operator_whose_types_no_release_has_is_left_out(build: Build, catalog: Catalog) -> None:
    built = build(installed(catalog, retyped={"fmod": ("other", "Scalar")}), schemas=records.installed())
    assert {d.overload for d in built.program.drifted} == {"fmod.Tensor", "fmod_.Tensor", "fmod.Tensor_out"}
    assert "'fmod.Tensor' is left out: torch 2.14 declares it differently from torch 2.12 and 2.13: " in built.text


def test_of_a_hand_written_wrapper_the_others_stay(build: Build, catalog: Catalog) -> None:
    losses = ADD.replace("add:", "losses:").replace(
        "aten: add", "aten: {forward: [_ctc_loss, _ctc_loss.Tensor], wrapper: ctc_loss}"
    )
    gone = ("_ctc_loss_backward.Tensor", "_ctc_loss.Tensor")
    built = build(
        installed(catalog, lacks=gone),
        mm=losses.partition("kernel")[0] + losses[losses.index("aten") :],
        schemas=records.installed(),
    )
    assert {b.overload.name for b in built.program.bindings if b.wrapper == "ctc_loss"} == {"_ctc_loss"}
    assert {d.overload for d in built.program.drifted} == {*gone, "_ctc_loss.Tensor_out"}
    text = written(built, "aten/ops/ctc_loss.cpp")
    assert "registrar.add(_ctc_loss_control, &_ctc_loss, {&vendor::diopiCTCLoss});" in text
    assert "&_ctc_loss_Tensor" not in text and "Losses _ctc_loss_Tensor(" not in text


def test_a_wrapper_of_which_nothing_stays_is_not_built(build: Build, catalog: Catalog) -> None:
    gone = tuple(
        name
        for name in catalog.names()
        if name.partition(".")[0].rstrip("_") in ("_fused_sgd", "_fused_adam", "_fused_adamw")
    )
    assert "_fused_sgd_" in gone and "_fused_adamw_" in gone
    sgd = ADD.replace("add:", "sgd:").replace("aten: add", "aten: {forward: _fused_sgd_, wrapper: optimizer}")
    built = build(
        installed(catalog, lacks=gone),
        mm=sgd.partition("kernel")[0] + sgd[sgd.index("aten") :],
        schemas=records.installed(),
    )
    assert [(file.path, file.text) for file in built.program.rewritten] == [("runtime_cpp/torch/ops/optimizer.cpp", "")]


@dataclass(frozen=True, kw_only=True)
class MadeUp:
    """A release with ten operators less, ten with an argument renamed and ten with one added."""

    catalog: Catalog
    gone: frozenset[str]
    renamed: frozenset[str]
    extended: frozenset[str]

    @property
    def touched(self) -> frozenset[str]:
        return self.gone | self.renamed | self.extended

    def with_again(self, names: set[str], today: Catalog) -> Catalog:
        """The release, if it declared these as torch does today."""
        return Catalog(torch=self.catalog.torch, lines={**self.catalog.lines, **{n: today.lines[n] for n in names}})


def _made_up(catalog: Catalog, bound: set[str], seed: int) -> MadeUp:
    """Of each kind of change half are of operators that hand-written code names in any way, half of bound ones."""
    draw = random.Random(seed)
    files = written_files(ROOT / "runtime_cpp" / "torch", "runtime_cpp/torch")
    parts = [part for file in files for part in (*file.items, *file.registrations)]
    words = {m.name for part in parts for m in part.mentions}
    words |= {m.name for file in files for r in file.registrations for m, _ in r.overloads}
    named = sorted(n for n in catalog.names() if {n, n.replace(".", "_"), n.partition(".")[0]} & words)
    written = draw.sample(named, 15)
    generated = draw.sample(sorted(bound - {*written}), 15)
    gone, renamed, extended = (frozenset(written[i::3] + generated[i::3]) for i in range(3))
    lines = {name: line for name, line in catalog.lines.items() if name not in gone}
    for name in sorted(renamed | extended):
        record = json.loads(lines[name])
        place = draw.randrange(len(record["args"]) + (name in extended))
        if name in renamed:
            record["args"][place][0] += "_renamed"
        else:
            record["args"].insert(place, ["added", "Tensor", None, False, False, False])
        lines[name] = json.dumps(record)
    made_up = Catalog(torch="2.16.0", lines=lines)
    return MadeUp(catalog=made_up, gone=gone, renamed=renamed, extended=extended)


def _bound_to(catalog: Catalog, checkout: Project, patch: pytest.MonkeyPatch) -> Program:
    patch.setattr(pipeline, "loading", lambda cache, found: lambda: catalog)
    diagnostics = Diagnostics()
    program = pipeline.run(checkout, diagnostics, pipeline.Stage.ATEN)
    assert program is not None and not diagnostics.failed
    return program


def _culprit(drifted: Drifted) -> str:
    """The operator whose declaration the reason quotes."""
    return re.split(r" has | have |: ", drifted.reason)[-1].partition("(")[0]


@pytest.fixture(scope="module")
def today(checkout: Project) -> Program:
    program = pipeline.run(checkout, Diagnostics(), pipeline.Stage.ATEN)
    assert program is not None
    return program


@pytest.mark.parametrize("seed", range(12))
def test_of_a_made_up_release_what_is_touched_is_left_out_and_nothing_else(
    checkout: Project, catalog: Catalog, today: Program, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    before = {b.overload.name for b in today.bindings}
    made_up = _made_up(catalog, before, seed)
    assert len(made_up.touched) == 30
    program = _bound_to(made_up.catalog, checkout, monkeypatch)
    after = {b.overload.name for b in program.bindings}
    known = {d.overload for d in today.drifted}  # under the installed torch itself
    left_out = {d.overload: d for d in program.drifted if d.overload not in known}
    # Whatever was served is served, or is listed, and nothing is both.
    assert after | ({*left_out} & before) == before and not after & {*left_out}
    # What is gone or takes another argument is not served, and its reason is its own.
    assert before & (made_up.gone | made_up.extended) <= {*left_out}
    for name in {*left_out} & (made_up.gone | made_up.extended):
        own = "has no such operator; " if name in made_up.gone else "declares it differently from "
        assert left_out[name].reason.startswith(f"torch 2.16 {own}"), left_out[name]
    # Each other one needs operators that are touched: with the one that it quotes as it was, it needs another or none.
    culprits = {name: _culprit(left_out[name]) for name in left_out}
    assert {*culprits.values()} <= made_up.touched
    others = {name: culprit for name, culprit in culprits.items() if culprit != name}
    assert all(left_out[name].reason.startswith("it needs '") for name in others)
    as_they_were = {*others.values()}
    restored = _bound_to(made_up.with_again(as_they_were, catalog), checkout, monkeypatch)
    still = {d.overload: _culprit(d) for d in restored.drifted if d.overload in others}
    assert {*still.values()} <= made_up.touched - as_they_were
    _rewritten_as_told(program, made_up.gone | made_up.extended)


def _rewritten_as_told(program: Program, changed: frozenset[str]) -> None:
    """What is compiled names nothing that changed, what stays is as it was; only what is touched is written anew."""
    structs = {name.replace(".", "_") for name in changed}
    for file in program.rewritten:
        original = (ROOT / file.path).read_text()
        assert not {m[1] for m in re.finditer(r"\b_?ops::(\w+)", file.text)} & structs, file.path
        other = (line for line in file.text.splitlines()[4:] if line not in original)
        assert [line for line in other if not re.search(r"add<|needs\(|ops::", line)] == []
        code = code_of(file.text)
        assert all(code.count(first) == code.count(last) for first, last in ("()", "{}", "[]"))
    anew = {file.path for file in program.rewritten}
    for file in written_files(ROOT / "runtime_cpp" / "torch", "runtime_cpp/torch"):
        if not structs & set(re.findall(r"\w+", file.text)) and file.path in anew:
            called = {name.partition(".")[0] for name in changed} | {d.overload for d in program.drifted}
            assert any(re.search(rf"\b{re.escape(name)}\b", file.text) for name in called), file.path


def test_derivations_register_in_the_order_of_their_header() -> None:
    files = written_files(ROOT / "runtime_cpp" / "torch", "runtime_cpp/torch")
    derived = [file.stem for file in files if file.derives]
    assert derived[:2] == ["rounding", "pointwise"] and len(derived) == len(set(derived)) >= 12
    assert {file.stem for file in files if not file.derives} >= {"ctc_loss", "optimizer"}
    rounding = next(file for file in files if file.stem == "rounding").registrations
    assert "trunc_out" in {mention.name for each in rounding for mention, _ in each.overloads}


def test_under_a_supported_release_nothing_drifts_but_what_torch_removed(checkout: Project) -> None:
    diagnostics = Diagnostics()
    bound = pipeline.run(checkout, diagnostics, pipeline.Stage.ATEN)
    assert bound is not None and not diagnostics.failed
    gone = {"cholesky", "cholesky.out"}  # which torch removed in 2.14
    assert {d.overload for d in bound.drifted} == (set() if "cholesky" in records.installed() else gone)
    kept = {path.stem for path in (checkout.schemas / "aten").glob("*.txt")}
    assert {"2.11", "2.12", "2.13"} <= kept


@pytest.mark.parametrize("release", ["2.11", "2.12", "2.13", "2.14", "2.15"])
def test_of_hand_written_code_each_supported_release_serves_all_but_what_it_removed(
    checkout: Project, release: str
) -> None:
    folder = checkout.schemas / "aten"
    schemas = records.read(release, folder)
    drift = Drift(release=release, releases=Releases(folder=folder), diagnostics=Diagnostics())
    files = written_files(ROOT / "runtime_cpp" / "torch", "runtime_cpp/torch")
    lost = {name for name, _, _ in lost_overloads(files, Recorded(schemas=schemas), drift)}
    assert lost == (set() if "cholesky" in schemas else {"cholesky", "cholesky.out"})

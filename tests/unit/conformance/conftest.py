"""Small libraries to judge, and plans to judge them by."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from diopi_conformance.cases.plan import CasePlan, read_plan
from diopi_conformance.cases.selection import Selection
from diopi_conformance.outcome import Outcome
from diopi_conformance.process.worker_pool import Libraries
from diopi_conformance.running.engine import Engine, RunRequest
from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.project import Project
from diopigen.targets import conformance
from tests.built import compiled

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent

UNARY = """\
neg:
  doc: Negates `input`.
  args: {input: Tensor<T>}
  out: Tensor<T> like input
  where: {T: float}
  kernel: -input
  aten: neg
  cases:
    - {input: [6, 7]}
    - {input: [3, 4, 5]}
exp:
  doc: Raises e to `input`.
  args: {input: Tensor<T>}
  out: Tensor<T> like input
  where: {T: float}
  kernel: exp(input)
  aten: exp
  cases:
    - {input: [6, 7]}
sin:
  doc: The sine of `input`; no library here has it.
  args: {input: Tensor<T>}
  out: Tensor<T> like input
  where: {T: float}
  kernel: sin(input)
  aten: sin
  cases:
    - {input: [6, 7]}
"""


@pytest.fixture(autouse=True)
def no_models(monkeypatch, tmp_path_factory):
    """Small plans have functions that models call, too; only the cases of their own rows are wanted here."""
    monkeypatch.setenv("DIOPI_MODEL_CASES", str(tmp_path_factory.mktemp("no_models")))


MakeProgram = Callable[..., tuple[Program, Diagnostics]]
MakePlan = Callable[..., str]
Judge = Callable[..., dict[str, Outcome]]


@pytest.fixture
def program(miniature: Callable[..., Project]) -> MakeProgram:
    """The program of one schema file up to its cases, with bindings if asked for, and what was found wrong."""

    def make(text: str, aten: bool = False) -> tuple[Program, Diagnostics]:
        diagnostics = Diagnostics()
        project = miniature({"topic.yaml": text})
        found = pipeline.run(project, diagnostics)
        assert found is not None, diagnostics.found
        if aten:
            found = pipeline.run(Project(root=ROOT), diagnostics, pipeline.Stage.ATEN, program=found)
        return pipeline.run(project, diagnostics, pipeline.Stage.CASES, program=found), diagnostics

    return make


@pytest.fixture(scope="session")
def plans() -> dict[tuple[str, bool], str]:
    """Texts of plans, by the schema file and whether they have bindings: each is generated once."""
    return {}


@pytest.fixture
def planned(program: MakeProgram, plans: dict[tuple[str, bool], str]) -> MakePlan:
    """The text of the plan of one schema file, with bindings if asked for; nothing is wrong in one that is whole."""

    def make(text: str, aten: bool = False, whole: bool = True) -> str:
        if (text, aten) not in plans:
            found, diagnostics = program(text, aten)
            assert not (whole and diagnostics.failed), diagnostics.found
            (output,) = conformance.outputs(found, lambda name, view: "")
            plans[text, aten] = output.text
        return plans[text, aten]

    return make


@pytest.fixture
def plan_path(planned: MakePlan, tmp_path: Path) -> Path:
    """The plan of three unary functions, as a file."""
    path = tmp_path / "plan.json"
    path.write_text(planned(UNARY, aten=True))
    return path


@pytest.fixture
def plan(plan_path: Path) -> CasePlan:
    """The same as values."""
    return read_plan(plan_path)


def library(name: str, sources: list[Path], *options: str) -> Path:
    """A shared library."""
    includes = [f"-I{ROOT / 'generated' / 'include'}", f"-I{HERE}"]
    flags = ["-std=c++17", "-O1", "-fPIC", "-shared"]
    return compiled(["g++", *flags, *options, *includes, *sources, "-ldl", "-lpthread"], name)


@pytest.fixture(scope="session")
def runtime() -> Path:
    """The test runtime."""
    sources = sorted((ROOT / "runtime_cpp" / "standalone").glob("*.cpp"))
    return library("libdiopirt.so", sources)


@pytest.fixture
def faulty(tmp_path: Path) -> Callable[[str], Path]:
    """Compiles the vendor with one fault, into the test's folder."""

    def make(fault: str) -> Path:
        made = library("libdiopi_impl.so", [HERE / "faulty_vendor.cpp"], f"-DFAULT={fault}")
        return Path(shutil.copy(made, tmp_path))

    return make


@pytest.fixture
def several() -> Callable[[str], Path]:
    """Compiles the vendor of several tensors behind one handle, with one fault."""

    def make(fault: str) -> Path:
        return library("libseveral.so", [HERE / "several_vendor.cpp"], f"-DFAULT={fault}")

    return make


@pytest.fixture
def judged(runtime: Path, plan: CasePlan, faulty: Callable[[str], Path]) -> Judge:
    """Runs the selected cases against the vendor with one fault; outcomes by case."""

    def judge(fault: str, time_limit: float = 30.0, **selection: tuple[str, ...]) -> dict[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        run = RunRequest(
            plan=plan,
            cases=Selection(**selection).of(plan),
            libraries=Libraries(runtime=runtime, vendor=faulty(fault)),
            time_limit=time_limit,
        )
        Engine(run, lambda outcome: outcomes.update({outcome.id: outcome})).execute()
        return outcomes

    return judge

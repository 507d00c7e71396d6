"""libclang reads the emitted headers back as what the model and the contract say: names, types, order, linkage."""

import json
import re
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.c_spelling import c_args
from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.project import Project
from diopigen.source.cpp.c_header import BrokenHeader, HeaderFunction, read_header
from diopigen.targets import header
from diopigen.targets.output import renderer
from tests.contract.added import OPERATORS

FACTS = {
    f["name"]: f
    for f in json.loads((Path(__file__).parent / "functions.json").read_text(encoding="utf-8"))["functions"]
}
# What both sides compare when a library is loaded, the device table, what a framework may offer beside the contract,
# the names and sizes of the element types, and where a library begins and ends.
ADDED = (
    "diopiDescribeTensor",
    "diopiDtypeBytes",
    "diopiDtypeName",
    *OPERATORS,
    "diopiGeneratorReserve",
    "diopiGetAbiRecord",
    "diopiGetCollectivesApi",
    "diopiGetDeviceApi",
    "diopiMayRoundFloat32",
    "diopiReturnTensor",
    "finalizeLibrary",
    "initLibrary",
)
# The nine by which a vendor registers its device stand in a header that the contract does not describe.
REGISTRATION = re.compile(r"diopiRegister\w+Func")
LANGUAGES = ("c", "c++")


@pytest.fixture(scope="module")
def program(checkout: Project) -> Program:
    program = pipeline.run(checkout, Diagnostics())
    assert program is not None
    return program


@pytest.fixture(scope="module")
def emitted(program: Program, checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The headers, freshly emitted."""
    folder = tmp_path_factory.mktemp("emitted")
    for output in header.outputs(program, renderer(checkout.templates)):
        path = folder / output.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(output.text, encoding="utf-8")
    return folder / "include"


def read(emitted: Path, name: str, language: str) -> tuple[HeaderFunction, ...]:
    return read_header(emitted / "diopi" / f"{name}.h", [emitted], language)


def folded(type_: str) -> str:
    return type_.replace(" *", "*")


def spelled(function: HeaderFunction) -> list[tuple[str, str]]:
    return [(folded(type_), name) for type_, name in function.params]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["functions", "functions_ext"])
def test_operators_are_those_of_the_model(name: str, language: str, program: Program, emitted: Path) -> None:
    meant = [f for f in program.functions if f.header == name]
    runtime = {f.name for f in program.runtime.functions if f.header == name}
    found = [f for f in read(emitted, name, language) if f.name not in runtime]
    assert [f.name for f in found] == [f.symbol for f in meant]
    for read_back, function in zip(found, meant, strict=True):
        assert spelled(read_back) == [(folded(a.type), a.name) for a in c_args(function)], function.symbol
        assert (read_back.returns, read_back.weak) == ("diopiError_t", True)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["diopirt", "diopi_register", "functions"])
def test_run_time_functions_are_those_of_the_model(name: str, language: str, program: Program, emitted: Path) -> None:
    meant = {f.name: f for f in program.runtime.functions if f.header == name}
    found = [f for f in read(emitted, name, language) if f.name in meant]
    assert [f.name for f in found] == list(meant)
    for read_back in found:
        function = meant[read_back.name]
        assert spelled(read_back) == [(folded(p.type), p.name) for p in function.params]
        assert folded(read_back.returns) == folded(function.returns)
        assert read_back.linkage == function.linkage


def test_everything_is_in_the_contract(program: Program, emitted: Path) -> None:
    """What is added to the contract is known; all else is equal to it."""
    headers = sorted(path.stem for path in (emitted / "diopi").glob("*.h"))
    functions = {f.name: f for name in headers for f in read(emitted, name, "c")}
    added = tuple(sorted(functions.keys() - FACTS.keys()))
    assert tuple(name for name in added if not REGISTRATION.fullmatch(name)) == ADDED
    shared = [f for f in functions.values() if f.name in FACTS]
    assert len(shared) >= 150
    for function in shared:
        fact = FACTS[function.name]
        assert spelled(function) == [(folded(t), n) for t, n in fact["params"]], function.name
        assert folded(function.returns) == folded(fact["returns"])
        assert function.linkage == fact["linkage"], function.name


def test_a_header_that_is_not_read_whole_is_an_error(emitted: Path, tmp_path: Path) -> None:
    broken = tmp_path / "functions.h"
    text = (emitted / "diopi" / "functions.h").read_text(encoding="utf-8")
    broken.write_text(text.replace("<diopi/diopirt.h>", "<diopi/missing.h>"), encoding="utf-8")
    with pytest.raises(BrokenHeader, match=r"missing\.h"):
        read_header(broken, [emitted])


def test_another_order_of_parameters_is_noticed(emitted: Path, tmp_path: Path) -> None:
    changed = tmp_path / "functions.h"
    text = (emitted / "diopi" / "functions.h").read_text(encoding="utf-8")
    assert "diopiTensorHandle_t out, diopiConstTensorHandle_t input" in text
    swapped = "diopiConstTensorHandle_t input, diopiTensorHandle_t out"
    changed.write_text(
        text.replace("diopiTensorHandle_t out, diopiConstTensorHandle_t input", swapped), encoding="utf-8"
    )
    found = {f.name: f for f in read_header(changed, [emitted])}
    assert spelled(found["diopiRelu"]) != [(folded(t), n) for t, n in FACTS["diopiRelu"]["params"]]

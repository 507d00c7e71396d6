"""Vendors' folders as they are written elsewhere, tests/vendors: built as they are, with every rule observed.

Each is one of the established ways. They define what reached them in `diopiRecord()`.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from diopigen.project import Project
from tests.e2e.page_vendors import LINKED, diopigen
from tests.e2e.vendor_calls import DTYPES

ROOT = Path(__file__).resolve().parents[2]
VENDORS = ("layouts", "linkage", "hooks", "declarations", "duplicates")
FACTS = ROOT / "tests" / "contract" / "functions.json"

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A checkout with these vendors."""
    root = tmp_path_factory.mktemp("established")
    for name in LINKED:
        (root / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "generated" / "include", root / "generated" / "include")
    shutil.copytree(ROOT / "tests" / "vendors", root / "vendors")
    return Project(root=root)


@dataclass(frozen=True, slots=True)
class Built:
    """The libraries of one vendor."""

    folder: Path
    runtime: Path

    @property
    def library(self) -> Path:
        return self.folder / "libdiopi_impl.so"

    def answers(self, *calls: list[Any]) -> list[Any]:
        """What each call gave, see vendor_calls."""
        out = self.folder / "answers.json"
        command = [sys.executable, "-m", "tests.e2e.vendor_calls", self.runtime, self.library, out]
        done = subprocess.run(
            [str(word) for word in command], cwd=ROOT, input=json.dumps(calls), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        answers: list[Any] = json.loads(out.read_text(encoding="utf-8"))
        return answers

    def exported(self) -> set[str]:
        command = ["nm", "--dynamic", "--defined-only", str(self.library)]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        return {line.split()[2] for line in lines}


@pytest.fixture(scope="module")
def built(project: Project) -> dict[str, Built]:
    """Each of them, with the test runtime that the first build makes."""
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if cmake is None:
        pytest.skip("there is no cmake")
    found = {}
    options = [f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_CXX_FLAGS_RELEASE=-O0"]
    runtime = project.root / "build" / VENDORS[0] / "lib" / "libdiopirt.so"
    for name in VENDORS:
        folder = project.root / "build" / name
        configure = [cmake, "-S", str(project.root), "-B", str(folder), f"-DDIOPI_VENDOR={name}", *options]
        targets = ("diopi_impl",) if runtime.is_file() else ("diopi_impl", "diopirt")
        for command in (configure, [cmake, "--build", str(folder), "--parallel", "2", "--target", *targets]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
        found[name] = Built(folder / "lib", runtime)
    return found


@pytest.mark.parametrize("name", ["layouts", "duplicates"])
def test_lint_finds_no_more_than_there_is(project: Project, name: str) -> None:
    done = diopigen(project, "lint", "--vendor", name)
    told = [line for line in (done.stdout + done.stderr).splitlines() if ": warning[" in line or ": error[" in line]
    found = [line for line in told if "[aten-drifted]" not in line]  # of torch, not of the vendor
    later = "vendors/duplicates/convert_config.yaml:1:3: warning[overridden-entry]"
    expected = [f"{later}: 'diopiRelu' has a later entry, which replaces it"] if name == "duplicates" else []
    assert (done.returncode, found) == (0, expected)


def strides_of(sizes: list[int], order: list[int]) -> list[int]:
    """Of a dense tensor; `order` names its dimensions, the slowest first."""
    strides, step = [0] * len(sizes), 1
    for dim in reversed(order):
        strides[dim], step = step, step * sizes[dim]
    return strides


def contiguous(rank: int) -> list[int]:
    return list(range(rank))


def channels_last(rank: int) -> list[int]:
    return [0, *range(2, rank), 1]


def reversed_(rank: int) -> list[int]:
    return list(range(rank))[::-1]


SIZES = [2, 3, 4, 5, 6]


def tensor(rank: int, order: list[int], dtype: str = "float32") -> dict[str, Any]:
    sizes = SIZES[:rank]
    return {"dtype": dtype, "sizes": sizes, "strides": strides_of(sizes, order)}


def line(symbol: str, name: str, given: dict[str, Any], order: list[int] | None = None, dtype: str = "") -> str:
    """What the vendor writes down of a tensor, which has its own order and dtype unless others are said."""
    strides = given["strides"] if order is None else strides_of(given["sizes"], order)
    sizes, steps = (", ".join(map(str, values)) for values in (given["sizes"], strides))
    return f"{symbol} {name}: {DTYPES[dtype or given['dtype']][0]} [{sizes}] ({steps})\n"


def elements(rank: int) -> list[float]:
    count = len(list(itertools.product(*map(range, SIZES[:rank]))))
    return [order * (-1) ** order for order in range(count)]


# What docs/adaptor.md says each layout asks of a rank; None: any order.
RULES: dict[str, dict[int, Callable[[int], list[int]]]] = {
    "diopiRelu": {rank: contiguous for rank in range(1, 6)},
    "diopiReluInp": {rank: contiguous for rank in range(1, 6)},
    "diopiNeg": {rank: channels_last for rank in (3, 4, 5)},
    "diopiAbs": {},
    "diopiAdd": {4: channels_last},
}
VALUES: dict[str, Callable[[float], float]] = {
    "diopiRelu": lambda x: max(x, 0),
    "diopiReluInp": lambda x: max(x, 0),
    "diopiNeg": lambda x: -x,
    "diopiAbs": abs,
    "diopiAdd": lambda x: 2 * x,
}


@pytest.mark.parametrize("symbol", RULES)
def test_layouts_hold_at_every_rank(built: dict[str, Built], symbol: str) -> None:
    orders = (contiguous, channels_last, reversed_)
    given = [(rank, order(rank)) for rank in range(1, 6) for order in orders if rank > 2 or order is not channels_last]
    calls, expected = [], []
    for rank, order in given:
        one = tensor(rank, order)
        rule = RULES[symbol].get(rank)
        wanted = None if rule is None else rule(rank)
        written = ["input"] if symbol.endswith("Inp") else ["out", "input"]
        lines = [line(symbol, name, one, wanted) for name in written]
        if symbol == "diopiAdd":
            calls.append([symbol, one, one, one, 1])
            lines.insert(0, line(symbol, "other", one))
        else:
            calls.append([symbol, *(one for _ in written)])
        expected.append([0, "".join(lines), [VALUES[symbol](x) for x in elements(rank)]])
    assert built["layouts"].answers(*calls) == expected


def test_functions_with_c_linkage_take_tensors_as_they_are(built: dict[str, Built], project: Project) -> None:
    vendor = built["linkage"]
    given = tensor(2, reversed_(2), "float64")
    symbols = ("diopiRelu", "diopiNeg", "diopiAbs")
    answers = vendor.answers(*([symbol, given, given] for symbol in symbols))
    for symbol, (status, record, values) in zip(symbols, answers, strict=True):
        dtype = "float32" if symbol == "diopiAbs" else "float64"
        expected = "".join(line(symbol, name, given, dtype=dtype) for name in ("out", "input"))
        assert (status, record, values) == (0, expected, list(map(VALUES[symbol], elements(2))))
    assert {*symbols, "diopiCastDtype", "diopiCopyInp"} <= vendor.exported()
    done = diopigen(project, "explain", "diopiRelu", "--vendor", "linkage")
    assert "linkage: exported  vendors/linkage/functions/outside.cpp:6:14" in done.stdout


HOOKS = (
    "device_malloc",
    "device_free",
    "device_memcpy_h2d_async",
    "device_memcpy_d2h_async",
    "device_memcpy_d2d_async",
    "device_make_stream",
    "device_destroy_stream",
    "device_synchronize_stream",
    "initLibrary",
    "finalizeLibrary",
    "buildGeneratorState",
)


def test_device_functions_are_found_by_their_names(built: dict[str, Built]) -> None:
    vendor = built["hooks"]
    assert set(HOOKS) <= vendor.exported()
    given = tensor(2, contiguous(2))
    ((status, record, values),) = vendor.answers(["diopiRelu", given, given])
    assert (status, values) == (0, [max(x, 0) for x in elements(2)])
    assert record == line("diopiRelu", "out", given) + line("diopiRelu", "input", given)


@pytest.mark.parametrize("name", ["layouts", "linkage", "declarations", "duplicates"])
def test_nothing_but_the_contract_is_exported(built: dict[str, Built], name: str) -> None:
    others = {symbol for symbol in built[name].exported() if not symbol.startswith("diopi")}
    assert others == {"initLibrary", "finalizeLibrary"}


def test_functions_call_each_other_through_impl_functions(built: dict[str, Built]) -> None:
    given = tensor(2, contiguous(2))
    ((status, record, values),) = built["declarations"].answers(["diopiSubInp", given, given, 3])
    assert (status, values) == (0, [-2 * x for x in elements(2)])
    assert record == line("diopiAddInp", "input", given) + line("diopiAddInp", "other", given)


def test_the_last_of_two_entries_holds(built: dict[str, Built]) -> None:
    """diopiRelu's first entry would give it float32, its second asks for contiguous tensors."""
    given = tensor(3, reversed_(3), "float64")
    relu, neg = built["duplicates"].answers(["diopiRelu", given, given], ["diopiNeg", given, given])
    assert relu[1] == "".join(line("diopiRelu", name, given, contiguous(3)) for name in ("out", "input"))
    assert neg[1] == "".join(line("diopiNeg", name, given, dtype="float32") for name in ("out", "input"))
    assert [relu[0], neg[0]] == [0, 0] and relu[2] == [max(x, 0) for x in elements(3)]


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run time with what every established one has: the functions that are not weak."""
    facts = json.loads(FACTS.read_text(encoding="utf-8"))["functions"]
    strong = [f["name"] for f in facts if f["header"] == "diopirt.h" and f["linkage"] == "extern DIOPI_RT_API"]
    assert "diopiRequireTensor" in strong and "diopiRecordStart" not in strong
    folder = tmp_path_factory.mktemp("standin")
    source = folder / "runtime.c"
    source.write_text("".join(f"int {name}(void) {{ return 1; }}\n" for name in strong), encoding="utf-8")
    library = folder / "libdiopirt.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


LOAD = """
import ctypes, os, sys
ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | ctypes.RTLD_GLOBAL)
library = ctypes.CDLL(sys.argv[2], mode=os.RTLD_NOW)
print(library.initLibrary() if sys.argv[3] == "init" else 0, bool(library.diopiGetAbiRecord))
"""


def loads(standin: Path, library: Path, initialized: bool) -> None:
    command = [sys.executable, "-c", LOAD, str(standin), str(library), "init" if initialized else ""]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["0 True"], done.stderr


@pytest.mark.parametrize("name", VENDORS)
def test_a_library_loads_where_only_established_functions_are(
    built: dict[str, Built], standin: Path, name: str
) -> None:
    """At once, with every symbol bound; one that registers its functions does so in run times that let it."""
    loads(standin, built[name].library, initialized=name == "hooks")


def test_droplet_loads_and_starts_where_only_established_functions_are(standin: Path) -> None:
    library = ROOT / "build" / "droplet" / "lib" / "libdiopi_impl.so"
    if not library.is_file():
        assert "DIOPI_REQUIRE_BUILD" not in os.environ
        pytest.skip("droplet is not built")
    loads(standin, library, initialized=True)

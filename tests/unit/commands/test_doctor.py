"""`diopigen doctor`: what it finds missing, wrong or stale, for which target, and the command that it proposes."""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from diopigen.cli import cli, main
from diopigen.commands.doctor import doctor
from diopigen.doctor import check, checkout, packages, tools
from diopigen.doctor.check import Check, State
from diopigen.project import Project

ENTRY = """\
double:
  doc: Doubles `input`.
  args: {input: Tensor<T>}
  out: Tensor<T> like input
  where: {T: float}
  kernel: input + input
  cases:
    - {input: [8]}
"""
PYPROJECT = """\
[project]
requires-python = ">=3.11"
dependencies = ["click>=8.1", "lark>=99", "there-is-no-such-package>=1"]

[project.optional-dependencies]
chip = ["rich>=13", "numpy<1"]
tests = ["pytest>=999"]
"""
CMAKE = "cmake_minimum_required(VERSION 3.21...4.0)\n"
CHIP_CMAKE = "diopi_require_python_package(absent-sdk absent_sdk)\nenable_language(CUDA)\n"


@pytest.fixture
def project(miniature: Callable[..., Project], checkout: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(checkout.cache))
    vendor = {"vendor.yaml": "doc: A chip.\n", "CMakeLists.txt": CHIP_CMAKE}
    made = miniature({"tests.yaml": ENTRY}, {"chip": vendor, "other": {"vendor.yaml": "doc: Another.\n"}})
    (made.root / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (made.root / "CMakeLists.txt").write_text(CMAKE, encoding="utf-8")
    return made


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Puts a program into the only folder that tools are searched in."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("check", "tools"):
        monkeypatch.setattr(sys.modules[f"diopigen.doctor.{name}"], "search_path", lambda: str(folder))
    for name in ("CXX", "CUDACXX"):
        monkeypatch.delenv(name, raising=False)

    def put(name: str, body: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (folder / name).chmod(0o755)

    monkeypatch.setenv("PATH", str(folder))
    return put


def by_name(checks: Iterator[Check]) -> dict[tuple[str, str], Check]:
    return {(found.target, found.what): found for found in checks}


def run(project: Project, *words: str) -> Result:
    return CliRunner().invoke(cli, ["--project", str(project.root), *words])


def test_packages_that_are_missing_or_too_old(project: Project) -> None:
    found = by_name(packages.package_checks(project, None))
    assert found["generate", "click"].state is State.OK
    lark = found["generate", "lark"]
    assert (lark.state, lark.wanted, lark.failed) == (State.WRONG, ">=99", True)
    assert lark.remedy == f"{sys.executable} -m pip install 'lark>=99'"
    absent = found["generate", "there-is-no-such-package"]
    assert (absent.state, absent.found, absent.failed) == (State.MISSING, "not installed", True)
    assert not found["tests", "pytest"].failed


def test_packages_of_a_vendor_are_needed_for_it_only(project: Project) -> None:
    for vendor, needed in (("chip", True), (None, False)):
        found = by_name(packages.package_checks(project, vendor))
        assert found["vendor chip", "rich"].state is State.OK
        assert found["vendor chip", "numpy"].failed is needed
        assert found["vendor chip", "absent-sdk"].failed is needed  # from its CMakeLists.txt


def test_another_python(project: Project) -> None:
    text = PYPROJECT.replace(">=3.11", ">=3.99")
    (project.root / "pyproject.toml").write_text(text, encoding="utf-8")
    python = by_name(packages.package_checks(project, None))["generate", "python"]
    assert (python.state, python.remedy) == (
        State.WRONG,
        "install Python >=3.99, then: make setup PYTHON=<that python>",
    )


def test_no_tools_at_all(project: Project, programs: Callable[[str, str], None]) -> None:
    found = by_name(tools.tool_checks(project, "chip"))
    assert {
        what: (c.state, c.failed) for (_, what), c in found.items() if what in ("g++", "cmake", "ninja", "nvcc")
    } == {
        "g++": (State.MISSING, True),
        "cmake": (State.MISSING, True),
        "ninja": (State.MISSING, False),  # make does it too
        "nvcc": (State.MISSING, True),
    }
    assert found["build", "cmake"].remedy.endswith("-m pip install 'cmake>=3.21'")
    assert not by_name(tools.tool_checks(project, None))["vendor chip", "nvcc"].failed


def test_old_tools(project: Project, programs: Callable[[str, str], None]) -> None:
    programs("cmake", "echo cmake version 3.9.6")
    programs("g++", 'case "$*" in *-dumpversion*) echo 7.5.0;; *) echo unknown option; exit 1;; esac')
    found = by_name(tools.tool_checks(project, None))
    cmake, compiler = found["build", "cmake"], found["build", "g++"]
    assert (cmake.state, cmake.found, cmake.wanted) == (State.WRONG, "3.9.6", ">=3.21")
    assert (compiler.state, compiler.found) == (State.WRONG, "7.5.0")


def test_tools_that_do(project: Project, programs: Callable[[str, str], None]) -> None:
    programs("cmake", "echo cmake version 3.21")
    programs("g++", "echo 12.2.0")
    programs("ninja", "echo 1.11")
    programs("nvcc", "echo Cuda compilation tools, release 12.4, V12.4.131")
    found = by_name(tools.tool_checks(project, "chip"))
    assert {what: c.found for (_, what), c in found.items() if what in ("g++", "cmake", "ninja", "nvcc")} == {
        "g++": "12.2.0",
        "cmake": "3.21",
        "ninja": "1.11",
        "nvcc": "12.4",
    }
    assert not any(c.failed for c in found.values())


def test_a_full_disk(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type(shutil.disk_usage("/"))(10 << 30, 10 << 30, 5 << 20)
    monkeypatch.setattr(tools.shutil, "disk_usage", lambda path: usage)
    disk = by_name(tools.tool_checks(project, None))["build", "disk"]
    assert (disk.failed, disk.found, disk.remedy) == (True, "0.0 GiB free", "make clean")


def test_headers_that_are_stale(project: Project) -> None:
    headers = by_name(checkout.checkout_checks(project, None))["generate", "headers"]
    assert (headers.state, headers.remedy) == (State.STALE, "diopigen header")
    assert run(project, "header").exit_code == 0
    assert by_name(checkout.checkout_checks(project, None))["generate", "headers"].state is State.OK


def test_schemas_with_mistakes(project: Project) -> None:
    (project.schemas / "ops" / "bad.yaml").write_text("a: [\n", encoding="utf-8")
    found = by_name(checkout.checkout_checks(project, "chip"))
    assert [(key, c.found, c.remedy) for key, c in found.items()] == [
        (("generate", "schemas"), "1 findings", "diopigen lint")
    ]


def test_an_sdk_that_is_not_found(project: Project) -> None:
    source = project.vendors / "chip" / "functions" / "double.cpp"
    source.parent.mkdir()
    source.write_text("#include <diopi/functions.h>\n#include <chip_sdk.h>\n", encoding="utf-8")
    sdk = by_name(checkout.checkout_checks(project, "chip"))["vendor chip", "headers of the SDK"]
    assert (sdk.failed, "chip_sdk.h" in sdk.found) == (True, True)
    assert sdk.remedy == "name the SDK's folder under 'include_dirs' of vendors/chip/vendor.yaml"


def test_libraries_of_a_vendor(project: Project) -> None:
    target = "vendor other"
    found = by_name(checkout.checkout_checks(project, "other"))
    assert (found[target, "libdiopi_impl.so"].found, found[target, "libdiopi_impl.so"].failed) == ("not built", False)
    assert run(project, "all", "--vendor", "other").exit_code == 0
    built = project.root / "build" / "other" / "lib"
    built.mkdir(parents=True)
    (built / "libdiopi_impl.so").write_bytes(b"built long ago")
    stale = by_name(checkout.checkout_checks(project, "other"))[target, "libdiopi_impl.so"]
    assert (stale.state, stale.remedy) == (State.STALE, "make build IMPL=other")
    assert "diopirt.h" in stale.found
    text = "".join(p.read_text(encoding="utf-8") for p in (project.generated / "include" / "diopi").glob("*.h"))
    hashes = [bytes.fromhex(value)[::-1] for value in re.findall(r"_HASH 0x([0-9a-f]{16})ULL", text)]
    assert hashes
    (built / "libdiopi_impl.so").write_bytes(b"\x7fELF" + b"-".join(hashes))
    found = by_name(checkout.checkout_checks(project, "other"))
    assert found[target, "libdiopi_impl.so"].state is State.OK
    assert found[target, "generated files"].state is State.OK
    assert found[target, "libtorch_dipu.so"].found == "not built"


def test_a_device_that_does_not_start(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    told = (
        "x.py:1: RuntimeWarning: the device dipu is not available: it is broken\n  warnings.warn(\nRuntimeError: no\n"
    )
    monkeypatch.setattr(checkout, "answer", lambda *command, environment: (1, told))
    device = checkout._device(project, "chip")
    assert (device.failed, device.found) == (True, "the device dipu is not available: it is broken")
    monkeypatch.setattr(checkout, "answer", lambda *command, environment: (0, "2.0\n"))
    assert checkout._device(project, "chip").state is State.OK


@pytest.mark.parametrize("target", ["generate", "vendor chip"])
def test_the_report(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    module: Any = sys.modules["diopigen.commands.doctor"]
    good = Check(target="build", what="cmake", state=State.OK, found="3.31", wanted=">=3.21", remedy="")
    bad = Check(target=target, what="sdk", state=State.MISSING, found="not found", wanted="", remedy="get it")
    monkeypatch.setattr(module, "package_checks", lambda project, vendor: iter([good, bad]))
    monkeypatch.setattr(module, "tool_checks", lambda project, vendor: iter(()))
    assert doctor(project, None, "table") == 1
    printed = capsys.readouterr().out
    assert "ok  build: cmake 3.31\n" in printed and "failed" in printed
    row = next(line for line in printed.splitlines() if line.startswith(target))
    assert row.split("  ")[0] == target and row.rstrip().endswith("get it")
    assert doctor(project, None, "json") == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts[1] == {
        "target": target,
        "what": "sdk",
        "state": "missing",
        "found": "not found",
        "wanted": "",
        "remedy": "get it",
        "needed": True,
    }
    # Without the packages of the generator, what it would find out is left out.
    assert any(fact["what"] == "headers" for fact in facts) is (target != "generate")


def test_an_answer_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check.answer("/there/is/no/such/program")[0] == 127
    assert check.answer(sys.executable, "-c", "print(1); raise SystemExit(3)") == (3, "1\n")


def test_a_package_that_the_doctor_itself_needs(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("diopigen.commands.doctor")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys, "argv", ["diopigen", "--project", str(project.root), "doctor"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    told = f"the Python module 'rich' is missing: run '{sys.executable} -m pip install -e .'\n"
    assert capsys.readouterr().err == told


def test_this_checkout(checkout: Project) -> None:
    done = CliRunner().invoke(cli, ["--project", str(checkout.root), "doctor", "--format", "json"])
    facts = json.loads(done.output)
    assert {"generate", "build", "run"} <= {fact["target"] for fact in facts}
    assert {"torch", "libclang", "cmake", "python"} <= {fact["what"] for fact in facts}
    assert all(fact["remedy"] for fact in facts if fact["state"] != "ok")

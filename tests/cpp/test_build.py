"""The CMake build: what it says when something is missing, and that it follows the generator's list of sources."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compile.test_compilers import COMPILERS
from tools import versions_doc

ROOT = Path(__file__).resolve().parents[2]

# Stands in for diopigen: one source file for each name in a list, and what build tools need besides.
GENERATOR = """
import pathlib, sys
names = pathlib.Path(sys.argv[1])
folder = pathlib.Path(sys.argv[sys.argv.index("--out") + 1]) / "droplet"
folder.mkdir(parents=True, exist_ok=True)
def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
for name in names.read_text().split():
    if name == "mistake":
        sys.exit("ops.yaml:1:1: error[unknown-key]: 'mistake'")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    write(folder / f"{name}.cpp", "int " + name.split("/")[-1] + "() { return 0; }")
files = "".join(f' "{folder}/{name}.cpp"' for name in names.read_text().split())
write(folder / "sources.cmake", f"set(DIOPI_GENERATED_SOURCES{files})")
(folder / ".stamp").touch()
(folder / ".depfile").write_text(f"{folder}/.stamp: {names}")
with open(names.parent / "calls", "a") as calls:
    print(*sys.argv[2:], file=calls)
"""


@pytest.fixture
def generator(tmp_path: Path) -> Path:
    """The stand-in generator's list of names; configure() runs the generator with it."""
    (tmp_path / "generator.py").write_text(GENERATOR)
    names = tmp_path / "names"
    names.write_text("first second")
    return names


def configure(names: Path, *options: str, root: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    folder = names.parent
    command = [
        *("cmake", "-S", str(root), "-B", str(folder / "build"), "-G", "Ninja"),
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-DDIOPI_GENERATOR={sys.executable};{folder / 'generator.py'};{names}",
        f"-DDIOPI_OUT={folder / 'out'}",
    ]
    return subprocess.run([*command, *options], env={**os.environ, **environment}, capture_output=True, text=True)


def words(text: str) -> str:
    """The text without CMake's line breaks."""
    return re.sub(r"\s+", " ", text)


def build(names: Path, target: str) -> str:
    command = ["cmake", "--build", str(names.parent / "build"), "--target", target]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_unknown_vendor_lists_the_known(generator: Path) -> None:
    result = configure(generator, "-DDIOPI_VENDOR=dropled")
    assert result.returncode != 0
    assert re.search(r"There is no vendor 'dropled': choose one of .*\bdroplet\b", words(result.stderr))


def test_missing_compiler_says_what_to_install(generator: Path) -> None:
    result = configure(generator, CXX="/nowhere/g++")
    assert result.returncode != 0
    oldest = [min(name for name in COMPILERS if name.startswith(kind)) for kind in ("g++", "clang++")]
    said = " ".join(f"{name.replace('-', ' ')} or newer, or" for name in oldest)
    (standards,) = (line.split("|")[2].strip() for line in versions_doc.listed() if line.startswith("| C++ compiler "))
    assert f"There is no C++ compiler: install {said} name one" in words(result.stderr)
    assert f"It compiles {standards}." in words(result.stderr)


def test_a_compiler_that_fails_is_shown_with_its_words(generator: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken-g++"
    broken.write_text("#!/bin/sh\necho 'no space left on device' >&2\nexit 1\n")
    broken.chmod(0o755)
    result = configure(generator, CXX=str(broken))
    assert result.returncode != 0
    assert f"The C++ compiler '{broken}' cannot build a program" in words(result.stderr)
    assert "no space left on device" in result.stderr
    broken.unlink()
    again = configure(generator)
    assert again.returncode == 0, "the compiler that is there by now is not found: " + again.stderr


def test_missing_package_gives_the_command(generator: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare.parents[1])], check=True)
    result = configure(generator, f"-DPython_EXECUTABLE={bare}")
    assert result.returncode != 0
    assert f"run '{bare} -m pip install scipy-openblas32'" in words(result.stderr)


def test_a_folder_takes_the_generator_of_the_python_that_configures_it(tmp_path: Path) -> None:
    """Else what it generates is for the torch of the first one; a command that somebody named stays."""
    project = (
        "cmake_minimum_required(VERSION 3.21)\nproject(told LANGUAGES NONE)\n"
        f'set(DIOPI_HOME "{ROOT}")\ninclude("{ROOT}/runtime_cpp/cmake/DiopiPython.cmake")\ndiopi_find_python()\n'
        'file(WRITE "${CMAKE_BINARY_DIR}/told" "${DIOPI_GENERATOR}")\n'
    )
    (tmp_path / "CMakeLists.txt").write_text(project)
    pythons = [tmp_path / name / "bin" / "python" for name in ("one", "two")]
    for python in pythons:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(python.parents[1])], check=True)

    def told(*options: str) -> list[str]:
        command = ["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "build"), *options]
        subprocess.run(command, capture_output=True, text=True, check=True)
        return (tmp_path / "build" / "told").read_text().split(";")

    for python in (*pythons, pythons[0]):
        assert told(f"-DPython_EXECUTABLE={python}")[-3:] == [str(python), "-m", "diopigen"]
    assert told("-DDIOPI_GENERATOR=mine;all") == ["mine", "all"]
    assert told(f"-DPython_EXECUTABLE={pythons[1]}") == ["mine", "all"]


def test_packages_on_the_python_path_are_found(generator: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare.parents[1])], check=True)
    packages = tmp_path / "packages"
    (packages / "scipy_openblas32").mkdir(parents=True)
    (packages / "scipy_openblas32" / "__init__.py").touch()
    result = configure(generator, f"-DPython_EXECUTABLE={bare}", PYTHONPATH=str(packages))
    assert "the python package" not in words(result.stderr).lower()


def test_mistakes_are_the_generators_words(generator: Path) -> None:
    generator.write_text("mistake")
    result = configure(generator)
    assert result.returncode != 0
    assert "ops.yaml:1:1: error[unknown-key]: 'mistake'\n" in result.stderr
    assert "The generator found the mistakes above" in words(result.stderr)


@pytest.mark.parametrize("strict", ["", "STRICT "])
def test_sources_of_a_vendor_are_compiled_strictly_if_it_asks(generator: Path, tmp_path: Path, strict: str) -> None:
    root = tmp_path / "checkout"
    for name in ("CMakeLists.txt", "runtime_cpp"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).symlink_to(ROOT / name)
    vendor = root / "vendors" / "droplet"  # the name for which the stand-in generates
    vendor.mkdir(parents=True)
    (vendor / "CMakeLists.txt").write_text(f"diopi_add_vendor(NAME droplet {strict}SOURCES device.cpp)")
    (vendor / "device.cpp").write_text("static int unused;")
    result = configure(generator, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", root=root)
    assert result.returncode == 0, result.stderr
    commands = json.loads((tmp_path / "build" / "compile_commands.json").read_text())
    held = {Path(c["file"]).name: "-Wall -Wextra -Werror" in c["command"] for c in commands}
    assert held["device.cpp"] is bool(strict)
    assert [name for name, strictly in held.items() if not strictly and name != "device.cpp"] == []
    assert {"first.cpp", "call.cpp"} <= set(held)


@pytest.mark.parametrize(
    ("preset", "flags"),
    [
        ("droplet", {"-O2", "-O3"}),
        ("debug", {"-g"}),
        ("asan", {"-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"}),
        ("ubsan", {"-O1", "-g1", "-fsanitize=undefined", "-fno-sanitize-recover=undefined"}),
        ("tsan", {"-O1", "-g1", "-fsanitize=thread"}),
    ],
)
def test_presets_choose_flags(generator: Path, tmp_path: Path, preset: str, flags: set[str]) -> None:
    result = configure(generator, "--preset", preset, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    assert result.returncode == 0, result.stderr
    commands = json.loads((tmp_path / "build" / "compile_commands.json").read_text())
    kernel = next(entry["command"] for entry in commands if entry["file"].endswith("kernels/core/error.cpp"))
    found = set(re.findall(r" (-O\d|-g\d?|-f(?:no-)?sanitize\S*)(?= )", kernel))
    assert found == flags | ({"-O2"} if preset in ("asan", "ubsan", "tsan") else set())


def test_a_variant_is_generated_apart(generator: Path) -> None:
    config = generator.parent / "narrow.yaml"
    config.touch()
    result = configure(generator, f"-DDIOPI_CONVERT_CONFIG={config}", "-DDIOPI_OUT=")
    assert result.returncode == 0, result.stderr
    out = generator.parent / "build" / "generated"
    called = (generator.parent / "calls").read_text().splitlines()
    assert called == [f"all --vendor droplet --convert-config {config} --out {out}"]
    assert (out / "droplet" / "first.cpp").is_file()


@pytest.mark.skipif(shutil.which("ninja") is None, reason="asks Ninja what it would build")
def test_a_profile_shares_all_objects_but_the_adaptor(generator: Path) -> None:
    config = generator.parent / "narrow.yaml"
    config.touch()
    generator.write_text("adaptor/first second")
    result = configure(generator, f"-DDIOPI_PROFILES={config}")
    assert result.returncode == 0, result.stderr
    root = generator.parent / "build" / "profiles" / "narrow"
    called = (generator.parent / "calls").read_text().splitlines()
    assert called[-1] == f"all --vendor droplet --convert-config {config} --out {root}"
    query = ["ninja", "-C", str(generator.parent / "build"), "-t", "query", "lib/narrow/libdiopi_impl.so"]
    lines = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()
    objects = [line.strip() for line in lines if line.endswith(".o") and "|" not in line]
    adaptors = [path for path in objects if path.endswith("/droplet/adaptor/first.cpp.o")]
    assert len(adaptors) == 1 and "/diopi_impl_narrow.dir/" in adaptors[0]
    others = [path for path in objects if path.endswith("/droplet/second.cpp.o")]
    assert len(others) == 1 and "/diopi_impl.dir/" in others[0]
    assert any(path.endswith("/runtime_cpp/adaptor/call.cpp.o") for path in objects)


@pytest.mark.skipif(shutil.which("ninja") is None, reason="the list is followed in one build by Ninja only")
def test_one_build_follows_a_new_source(generator: Path) -> None:
    assert configure(generator).returncode == 0
    build(generator, "diopi_generated")
    assert "Generating" not in build(generator, "diopi_generated")
    generator.write_text("first second third")
    object_file = "vendors/droplet/CMakeFiles/diopi_impl.dir" + str(generator.parent / "out/droplet/third.cpp.o")
    assert "Building" in build(generator, object_file)
    assert "no work to do" in build(generator, object_file)


def made(root: Path, name: str, text: str) -> None:
    """A file of an age before anything that is built."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1e9, 1e9))


OP = """\
{0}:
  doc: An operator.
  args: {{input: Tensor<T>}}
  out: {{out: Tensor<T> like input}}
  where: {{T: float}}
"""
FUNCTION = """\
#include <diopi/diopirt.h>
namespace impl::chip {{
diopiError_t {0}(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t) {{ return diopiSuccess; }}
}}
"""


@pytest.mark.parametrize(("tool", "makes"), [("ninja", "Ninja"), ("make", "Unix Makefiles")])
def test_one_build_follows_files_that_appear(tmp_path: Path, tool: str, makes: str) -> None:
    """Sources of the vendor, a convert_config.yaml and a topic of operators, however old, without configuring again."""
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}")
    root, binary = tmp_path / "checkout", tmp_path / "build"
    for name in ("CMakeLists.txt", "runtime_cpp", "generators", "templates"):
        root.mkdir(exist_ok=True)
        (root / name).symlink_to(ROOT / name)
    for name in ("dtypes.yaml", "runtime.yaml"):
        made(root, f"schemas/{name}", (ROOT / "schemas" / name).read_text())
    made(root, "schemas/patterns.yaml", "{}\n")
    made(root, "schemas/ops/first.yaml", OP.format("first"))
    made(root, "vendors/chip/vendor.yaml", "doc: A chip.\n")
    glob = 'file(GLOB sources "${CMAKE_CURRENT_SOURCE_DIR}/functions/*.cpp")\n'
    made(root, "vendors/chip/CMakeLists.txt", glob + "diopi_add_vendor(NAME chip SOURCES ${sources})\n")
    made(root, "vendors/chip/functions/first.cpp", FUNCTION.format("diopiFirst"))
    options = ["-DDIOPI_VENDOR=chip", f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_CXX_FLAGS_RELEASE=-O0"]
    command = ["cmake", "-S", str(root), "-B", str(binary), "-G", makes, *options]
    subprocess.run(command, check=True, capture_output=True)

    def exported() -> set[str]:
        said = subprocess.run(
            ["cmake", "--build", str(binary), "--target", "diopi_impl"], capture_output=True, text=True
        )
        assert said.returncode == 0, said.stdout + said.stderr
        library = str(binary / "lib" / "libdiopi_impl.so")
        listed = subprocess.run(["nm", "-DC", library], capture_output=True, text=True, check=True).stdout
        assert " U impl::" not in listed
        return {name for name in ("diopiFirst", "diopiSecond") if f" T {name}\n" in listed}

    assert exported() == {"diopiFirst"}
    again = build(tmp_path / "names", "diopi_impl")
    assert "Building" not in again and "Generating" not in again
    made(root, "schemas/ops/second.yaml", OP.format("second"))
    made(root, "vendors/chip/functions/second.cpp", FUNCTION.format("diopiSecond"))
    assert exported() == {"diopiFirst", "diopiSecond"}
    cast = "- diopiFirst: {dtype: (float64)->float32}\n"
    made(root, "vendors/chip/convert_config.yaml", cast)
    wrong = subprocess.run(["cmake", "--build", str(binary)], capture_output=True, text=True)
    assert wrong.returncode != 0 and "missing-primitive" in wrong.stdout + wrong.stderr
    (root / "vendors/chip/convert_config.yaml").unlink()
    (root / "vendors/chip/functions/second.cpp").unlink()
    assert exported() == {"diopiFirst"}

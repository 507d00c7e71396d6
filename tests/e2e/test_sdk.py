"""What is built outside of the checkout: against the installed SDK, with the checkout within a project, by presets."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from setuptools import build_meta

from diopigen.cli import cli
from tests.built import ROOT

PROGRAM = Path(__file__).with_name("sdk_program.c")
BUILD = ROOT / "build" / "droplet"
PAGE = ROOT / "docs" / "adding-a-vendor.md"
SAID = "droplet: 21 42 63\n"
HEAD = "cmake_minimum_required(VERSION 3.21...4.0)\nproject(outer VERSION 3.1 LANGUAGES {})\n"
# Prints each variable, entry of the cache and property of the folder that `{}` changes.
WATCHED = """
macro(remember into)
  get_cmake_property(names VARIABLES)
  get_cmake_property(cached CACHE_VARIABLES)
  foreach(name IN LISTS names cached)
    set("${{into}}.${{name}}" "${{${{name}}}}")
  endforeach()
  set(${{into}} ${{names}} ${{cached}})
  list(REMOVE_DUPLICATES ${{into}})
  foreach(name COMPILE_OPTIONS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES LINK_OPTIONS)
    get_directory_property("${{into}}.${{name}}" ${{name}})
    list(APPEND ${{into}} ${{name}})
  endforeach()
endmacro()
set(after)
remember(before)
{}
remember(after)
foreach(name IN LISTS after)
  if(NOT "${{after.${{name}}}}" STREQUAL "${{before.${{name}}}}" OR NOT name IN_LIST before)
    message("changed: ${{name}}")
  endif()
endforeach()
"""
# Of this project, of CMake's modules for themselves, and of the macro above.
NOT_SETTINGS = re.compile(
    r"(diopi|droplet|_|fetchcontent|find_package_|cmake_have_|threads_|python_|before|after|cached$|names?$|into$)",
    re.IGNORECASE,
)


def run(*command: str | Path, folder: Path | None = None, **variables: str) -> str:
    """What it says, once it has succeeded."""
    words = [str(word) for word in command]
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **variables}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def changed(text: str) -> list[str]:
    return [name for name in re.findall(r"^changed: (.*)$", text, re.MULTILINE) if not NOT_SETTINGS.match(name)]


def project(folder: Path, text: str, languages: str = "C CXX") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "CMakeLists.txt").write_text(HEAD.format(languages) + text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SDK of droplet, moved from where it was installed."""
    if not (BUILD / "lib" / "libdiopi_impl.so").exists():
        pytest.skip("droplet is not built")
    folder = tmp_path_factory.mktemp("sdk")
    run("cmake", "--install", BUILD, "--prefix", folder / "installed")
    return (folder / "installed").rename(folder / "moved")


def repository(folder: Path) -> Path:
    """A new vendor's own."""
    done = CliRunner().invoke(cli, ["new-vendor", "marble", "--dir", str(folder)])
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture(scope="module")
def marble(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that several builds share what is generated of."""
    return repository(tmp_path_factory.mktemp("marble") / "marble-kernels")


def exported(library: Path) -> str:
    return run("nm", "-DC", library)


def test_its_files(sdk: Path) -> None:
    places = {path.relative_to(sdk).parts[:2] for path in sdk.rglob("*") if path.is_file()}
    assert {"/".join(parts) for parts in places} == {
        *("include/diopi", "lib/cmake", "lib/pkgconfig", "share/diopi"),
        *("lib/libdiopi_impl.so", "lib/libdiopirt.so", "lib/libdroplet_rt.so"),
    }
    texts = [path for path in (sdk / "lib").rglob("*") if path.suffix in (".cmake", ".pc")]
    assert len(texts) == 5
    assert [path for path in texts if str(ROOT) in path.read_text(encoding="utf-8")] == []


def test_it_has_what_a_source_distribution_has(
    sdk: Path, tracked_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tracked_copy)
    with tarfile.open(tmp_path / build_meta.build_sdist(str(tmp_path))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames() if archive.getmember(name).isfile()}
    written = {name for name in names if name in ("PKG-INFO", "setup.cfg") or ".egg-info/" in name}
    kit = sdk / "share" / "diopi"
    found = {path.relative_to(kit).as_posix() for path in kit.rglob("*") if path.is_file()}
    assert {name for name in found if "__pycache__" not in name} == names - written


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="there is no pkg-config")
def test_pkg_config_builds_a_program(sdk: Path, tmp_path: Path) -> None:
    search = {"PKG_CONFIG_PATH": str(sdk / "lib" / "pkgconfig")}
    assert run("pkg-config", "--modversion", "diopi", **search) == "0.1.0\n"
    flags = shlex.split(run("pkg-config", "--cflags", "--libs", "diopi", **search))
    run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", PROGRAM, *flags, "-o", tmp_path / "program")
    assert run(tmp_path / "program", LD_LIBRARY_PATH=str(sdk / "lib")) == SAID


def test_its_targets_build_a_program_of_c(sdk: Path, tmp_path: Path) -> None:
    text = WATCHED.format("find_package(Diopi 0.1 REQUIRED)")
    text += f"add_executable(program {PROGRAM})\ntarget_link_libraries(program Diopi::droplet Diopi::diopirt)\n"
    source = project(tmp_path / "source", text, languages="C")
    said = run("cmake", "-S", source, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={sdk}")
    assert changed(said) == ["PACKAGE_PREFIX_DIR"]
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "program") == SAID


def test_a_vendor_without_cxx_is_told_so(sdk: Path, tmp_path: Path) -> None:
    text = "find_package(Diopi REQUIRED)\ndiopi_add_vendor(NAME marble SOURCES device.cpp)\n"
    source = project(tmp_path / "source", text, languages="C")
    command = ["cmake", "-S", source, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={sdk}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "diopi_add_vendor compiles C++: give project() the language CXX." in " ".join(done.stderr.split())


def test_a_vendor_is_built_against_it_and_installed(sdk: Path, marble: Path, tmp_path: Path) -> None:
    settings = [f"-DCMAKE_PREFIX_PATH={sdk}", f"-DPython_EXECUTABLE={sys.executable}"]
    run("cmake", "-S", marble, "-B", marble / "build", *settings, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    run("cmake", "--build", marble / "build", "--parallel", "2")
    read = (marble / "generated" / "marble" / ".depfile").read_text(encoding="utf-8")
    compiled = (marble / "build" / "compile_commands.json").read_text(encoding="utf-8")
    assert str(sdk) in read and str(sdk) in compiled
    packages = sysconfig.get_path("purelib")  # of an environment that may lie in the checkout
    assert f"{ROOT}/" not in (read + compiled).replace(packages, ""), "the checkout is used, not the SDK"
    assert " W diopiGetVendorName\n" in exported(marble / "build" / "lib" / "libdiopi_impl.so")

    installed = tmp_path / "installed"
    run("cmake", "--install", marble / "build", "--prefix", installed)
    assert not (installed / "share").exists()
    using = 'find_package(Diopi REQUIRED)\nget_target_property(place Diopi::marble LOCATION)\nmessage("${place}")\n'
    said = run(
        "cmake", "-S", project(tmp_path / "user", using), "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={installed}"
    )
    assert f"{installed}/lib/libdiopi_impl.so\n" in said


WITHIN = pytest.mark.deep("matrix", "a vendor that is built against the installed package, and one of the checkout")


@WITHIN
@pytest.mark.parametrize("way", ["fetched", "submodule"])
def test_a_checkout_within_a_vendors_project(tmp_path: Path, way: str) -> None:
    marble = repository(tmp_path / "marble-kernels")
    section = PAGE.read_text(encoding="utf-8").partition("## A repository of your own\n")[2].partition("\n## ")[0]
    _, text = re.findall(r"^```cmake\n(# CMakeLists.txt)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[0]
    before, fetching, adding = re.split(r"(include\(FetchContent\).*REQUIRED\))", text, flags=re.DOTALL)
    if way == "submodule":
        fetching = f'add_subdirectory("{ROOT}" diopi)\nfind_package(Diopi REQUIRED)'
    (marble / "CMakeLists.txt").write_text(before + WATCHED.format(fetching) + adding, encoding="utf-8")
    settings = [f"-DFETCHCONTENT_SOURCE_DIR_DIOPI={ROOT}", f"-DPython_EXECUTABLE={sys.executable}"]
    said = run("cmake", "-S", marble, "-B", tmp_path / "build", *settings[way == "submodule" :])
    assert changed(said) == []
    if way == "submodule":  # which differs from the other in this alone
        return
    run("cmake", "--build", tmp_path / "build", "--parallel", "2")
    assert " W diopiGetVendorName\n" in exported(tmp_path / "build" / "lib" / "libdiopi_impl.so")


@WITHIN
def test_a_vendor_of_a_checkout_within_a_project(tmp_path: Path) -> None:
    """It is built in its own folder, and the project around it keeps its settings."""
    adding = f'set(DIOPI_VENDOR droplet CACHE STRING "")\nadd_subdirectory("{ROOT}" diopi)'
    asking = 'get_target_property(folder Diopi::droplet LIBRARY_OUTPUT_DIRECTORY)\nmessage("folder: ${folder}")\n'
    source = project(tmp_path / "source", WATCHED.format(adding) + asking)
    said = run(
        "cmake",
        "-S",
        source,
        "-B",
        tmp_path / "build",
        f"-DDIOPI_OUT={tmp_path}/out",
        f"-DPython_EXECUTABLE={sys.executable}",
    )
    assert f"folder: {tmp_path}/build/diopi/lib\n" in said
    assert changed(said) == []
    run("cmake", "--install", tmp_path / "build", "--prefix", tmp_path / "installed")
    assert not (tmp_path / "installed").exists()


def test_presets_are_the_vendors_and_the_sanitizers() -> None:
    vendors = sorted(path.parent.name for path in ROOT.glob("vendors/*/vendor.yaml"))
    listed = re.findall(r'^  "(\w+)"', run("cmake", "--list-presets", folder=ROOT), re.MULTILINE)
    assert listed == [*vendors, "debug", "asan", "ubsan", "tsan"]
    entries = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))
    assert [entry["configurePreset"] for entry in entries["buildPresets"]] == listed


@pytest.mark.parametrize(
    ("preset", "folder", "needs", "section"),
    [
        ("release", "build", set(), None),
        ("debug", "build/debug", set(), ".debug_info"),
        ("asan", "build/asan", {"asan", "ubsan"}, None),
        ("ubsan", "build/ubsan", {"ubsan"}, None),
        ("tsan", "build/tsan", {"tsan"}, None),
    ],
)
def test_presets_of_a_repository(
    sdk: Path, marble: Path, preset: str, folder: str, needs: set[str], section: str
) -> None:
    settings = [f"-DCMAKE_PREFIX_PATH={sdk}", f"-DPython_EXECUTABLE={sys.executable}"]
    run("cmake", "--preset", preset, *settings, folder=marble)
    run("cmake", "--build", "--preset", preset, "--parallel", "2", folder=marble)
    library = marble / folder / "lib" / "libdiopi_impl.so"
    assert set(re.findall(r"\bU __(asan|ubsan|tsan)_", exported(library))) == needs
    assert section is None or section in run("readelf", "-SW", library)
    # The checkout's preset of that name has the same settings.
    settings_of = {
        where: {
            entry["name"]: {k: v for k, v in entry.get("cacheVariables", {}).items() if k != "DIOPI_VENDOR"}
            for entry in json.loads((where / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]
        }
        for where in (ROOT, marble)
    }
    assert preset == "release" or settings_of[ROOT][preset] == settings_of[marble][preset]

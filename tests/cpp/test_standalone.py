"""Builds libdiopirt.so and a droplet library with test operators, and runs their C++ tests, plainly and sanitized."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import scipy_openblas32

ROOT = Path(__file__).resolve().parents[2]
DROPLET = ROOT / "vendors" / "droplet"
STANDALONE = ROOT / "runtime_cpp" / "standalone"
HERE = ROOT / "tests" / "cpp" / "standalone"
CONTRACT = f"-I{ROOT / 'generated' / 'include'}"
COMPILE = ["g++", "-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", CONTRACT]
SHARED = ["-shared", "-fPIC"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]

DROPLET_TESTS = (
    "nothing_works_before_loading",
    "a_tensor_says_what_it_is",
    "fresh_memory_is_not_a_number",
    "fresh_memory_is_of_the_byte_that_was_set",
    "an_operator_runs_on_the_device",
    "required_tensors_are_taken_back",
    "writes_outside_are_caught",
    "generators_keep_their_state",
    "devices_can_be_chosen",
    "memory_in_use_is_counted",
    "a_device_failure_has_words",
    "matrix_products_are_right",
    "tensors_reach_the_device_and_return",
)

# Under AddressSanitizer each of these ends the process.
FAULTS = (
    "read_before",
    "read_behind",
    "read_600_before",
    "read_600_behind",
    "read_40_kb_before",
    "read_40_kb_behind",
    "write_before",
    "write_behind",
    "write_600_behind",
    "read_after_return",
    "write_after_return",
    "read_host_memory_after_return",
    "read_after_free",
)


def compile_to(target: Path, sources: list[Path], *arguments: str) -> None:
    subprocess.run([*COMPILE, "-o", str(target), *map(str, sources), *arguments], check=True)


def build_droplet(folder: Path, flags: list[str]) -> None:
    """The chip, and a library with droplet's device functions and the operators of the tests."""
    runtime = sorted((DROPLET / "runtime").glob("*.cpp"))
    compile_to(folder / "libdroplet_rt.so", runtime, *flags, *SHARED, "-fvisibility=hidden", "-Wl,-z,nodelete")
    kernels = ROOT / "runtime_cpp" / "kernels"
    sources = [
        DROPLET / "device.cpp",
        DROPLET / "gemm.cpp",
        kernels / "core" / "error.cpp",
        HERE / "operators.cpp",
    ]
    blas = Path(scipy_openblas32.get_lib_dir())
    compile_to(
        folder / "libdiopi_impl.so",
        sources,
        *flags,
        *SHARED,
        f"-I{kernels}",
        f"-I{kernels.parent}",
        f"-I{DROPLET}",
        "-isystem",
        scipy_openblas32.get_include_dir(),
        "-Wl,--no-as-needed",
        str(folder / "libdroplet_rt.so"),
        f'-DDROPLET_OPENBLAS="{blas}/lib{scipy_openblas32.get_library()}.so"',
        f"-Wl,-rpath,{folder}",
    )


PLAIN = pytest.param("plain", marks=pytest.mark.deep("sanitizers", "the same with sanitizers"))


@pytest.fixture(scope="module", params=[PLAIN, "sanitized"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    flags = SANITIZERS if request.param == "sanitized" else []
    target = tmp_path_factory.mktemp(f"standalone-{request.param}")
    compile_to(target / "libdiopirt.so", sorted(STANDALONE.glob("*.cpp")), *flags, *SHARED, "-ldl")
    build_droplet(target, flags)
    for form in range(1, 13):
        compile_to(target / f"libclassic{form}.so", [HERE / "classic_vendor.cpp"], *flags, *SHARED, f"-DFORM={form}")
    program = [f"-I{STANDALONE}", str(target / "libdiopirt.so"), f"-Wl,-rpath,{target}"]
    compile_to(target / "standalone_tests", [HERE / "standalone_tests.cpp"], *flags, *program)
    return target


def run(folder: Path, test: str, library: str, mode: str = "0") -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DROPLET_")}
    command = [str(folder / "standalone_tests"), test, str(folder / library)]
    return subprocess.run(
        command, env=environment | {"DROPLET_ASYNC": mode}, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("mode", ["0", "1"], ids=["sync", "async"])
@pytest.mark.parametrize("test", DROPLET_TESTS)
def test_on_droplet(folder: Path, test: str, mode: str) -> None:
    result = run(folder, test, "libdiopi_impl.so", mode)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("mode", ["0", "1"], ids=["sync", "async"])
@pytest.mark.parametrize("fault", FAULTS)
def test_address_sanitizer_sees_faults_of_kernels(folder: Path, fault: str, mode: str) -> None:
    result = run(folder, fault, "libdiopi_impl.so", mode)
    if "sanitized" not in folder.name:
        assert result.returncode == 0, result.stderr  # nobody looks
        return
    assert result.returncode != 0
    kind = "WRITE" if fault.startswith("write") else "READ"
    assert f"{kind} of size 1" in result.stderr and "operators.cpp:" in result.stderr
    assert "use-after-poison" in result.stderr or "heap-use-after-free" in result.stderr


@pytest.mark.parametrize("form", [1, 2, 7, 10])
def test_classic_vendors_work(folder: Path, form: int) -> None:
    result = run(folder, "tensors_reach_the_device_and_return", f"libclassic{form}.so")
    assert result.returncode == 0, result.stderr


def test_a_classic_vendor_does_not_tell_how_much_memory_is_in_use(folder: Path) -> None:
    result = run(folder, "memory_in_use_may_be_unknown", "libclassic1.so")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (3, "no device function 'memcpy_d2d_async'"),
        (4, "nobody_has_this"),
        (5, "the size of diopiScalar_t is 24 there and 16 here; build both from the same sources"),
        (6, "a declaration of functions.h differs; build both from the same sources"),
        (8, "a value of diopiDtype_t differs; build both from the same sources"),
        (12, "a declaration of functions_mmcv.h differs; build both from the same sources"),
        (9, "a declaration of diopi_register.h differs; build both from the same sources"),
        (11, "the size of the ABI record is 40 there and 56 here; build both from the same sources"),
    ],
)
def test_a_library_that_cannot_work_is_refused(folder: Path, form: int, words: str) -> None:
    result = run(folder, "loading_fails", f"libclassic{form}.so")
    assert result.returncode == 0, result.stderr
    assert words in result.stdout
    assert len(result.stdout.splitlines()) == 1

"""What a user reads when the vendor library is missing or unusable: one sentence; torch works without the device."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

START = """
try:
    import torch_dipu
    torch_dipu.start()
    print("started")
except (RuntimeError, ImportError) as error:
    print(str(error).splitlines()[0])
"""


def message(run_python: Callable[..., Any], library: Path) -> str:
    result = run_python(START, DIPU_VENDOR_LIBRARY=str(library), TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.returncode == 0, result.stderr
    return str(result.stdout.strip())


def test_no_library(run_python: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "nothing.so"
    assert message(run_python, path) == (
        f"there is no vendor library at {path}; build one with `make build` or name it in DIPU_VENDOR_LIBRARY"
    )


def test_not_a_library(run_python: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "text.so"
    path.write_text("hello")
    assert message(run_python, path).startswith(f"the vendor library {path} does not load: ")


@pytest.mark.parametrize("part", [0.2, 0.6, 0.999])
def test_a_library_that_was_cut_off(
    run_python: Callable[..., Any], fake_vendor: Callable[..., Path], tmp_path: Path, part: float
) -> None:
    content = fake_vendor("FAKE_FORM=1").read_bytes()
    path = tmp_path / "cut.so"
    path.write_bytes(content[: int(len(content) * part)])
    assert message(run_python, path) == (
        f"{path} was cut off: it has {path.stat().st_size} of {len(content)} bytes; build it again with `make build`"
    )


@pytest.mark.parametrize("name", ["libtorch_dipu.so", "libdiopi_impl.so"])
def test_a_program_that_does_not_use_the_device_goes_on_without_a_library_that_was_cut_off(
    run_python: Callable[..., Any], libraries: Path, tmp_path: Path, name: str
) -> None:
    for library in libraries.glob("*.so"):
        (tmp_path / library.name).symlink_to(library)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    result = run_python(
        "import torch; print(torch.ones(2).sum().item())",
        DIPU_LIBRARY_DIR=str(tmp_path),
        TORCH_DEVICE_BACKEND_AUTOLOAD="1",
    )
    assert result.stdout.strip() == "2.0", result.stderr
    assert f"the device dipu is not available: {tmp_path / name} was cut off" in result.stderr


def test_no_device_functions(run_python: Callable[..., Any], fake_vendor: Callable[..., Path]) -> None:
    assert "offers no device functions" in message(run_python, fake_vendor("FAKE_FORM=0"))


def test_a_required_function_is_missing(run_python: Callable[..., Any], fake_vendor: Callable[..., Path]) -> None:
    library = fake_vendor("FAKE_FORM=2", "FAKE_WITHOUT_D2D")
    assert message(run_python, library) == (
        f"the vendor library {library} lacks the device function 'memcpy_d2d_async', which every vendor must provide"
    )


@pytest.mark.parametrize(
    ("definition", "difference"),
    [
        ("FAKE_RECORD=1", "a declaration of functions.h differs"),
        ("FAKE_RECORD=2", "the size of diopiScalar_t is 24 there and 16 here"),
        ("FAKE_RECORD=3", "a value of diopiReduction_t differs"),
        ("FAKE_RECORD=4", "entry 0 of the ABI record there has no name"),
    ],
)
def test_other_headers(
    definition: str, difference: str, run_python: Callable[..., Any], fake_vendor: Callable[..., Path]
) -> None:
    library = fake_vendor("FAKE_FORM=1", definition)
    assert message(run_python, library) == (
        f"the vendor library {library} was built against other headers than torch_dipu: {difference}; "
        "build both from the same sources"
    )


def test_a_record_that_agrees(run_python: Callable[..., Any], fake_vendor: Callable[..., Path]) -> None:
    assert message(run_python, fake_vendor("FAKE_FORM=1", "FAKE_RECORD=0")) == "started"


def test_another_backend_holds_the_place(run_python: Callable[..., Any], fake_vendor: Callable[..., Path]) -> None:
    program = "import torch; torch.utils.rename_privateuse1_backend('other')\n" + START
    result = run_python(program, DIPU_VENDOR_LIBRARY=str(fake_vendor("FAKE_FORM=1")), TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.stdout.strip() == ("another backend, 'other', already holds PrivateUse1, of which torch has only one")


def test_autoload_never_raises(run_python: Callable[..., Any], tmp_path: Path) -> None:
    program = "import torch, torch_dipu; torch_dipu._autoload(); print(torch.ones(2).sum().item())"
    result = run_python(program, DIPU_VENDOR_LIBRARY=str(tmp_path / "nothing.so"), TORCH_DEVICE_BACKEND_AUTOLOAD="1")
    assert result.stdout.strip() == "2.0", result.stderr
    assert "the device dipu is not available: there is no vendor library" in result.stderr


def test_autoload_can_be_switched_off(run_python: Callable[..., Any]) -> None:
    program = "import torch; print(torch._C._get_privateuse1_backend_name())"
    assert run_python(program, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout.strip() == "privateuseone"


@pytest.mark.parametrize("autoload", ["0", "no", "1"])
@pytest.mark.parametrize(
    "program", ["import torch, torch_dipu", "import torch_dipu, torch", "import torch_dipu.dipu, torch"]
)
def test_whoever_imports_the_package_has_the_device(
    program: str, autoload: str, run_python: Callable[..., Any], fake_vendor: Callable[..., Path]
) -> None:
    library = str(fake_vendor("FAKE_FORM=1"))
    result = run_python(
        f"{program}; print(torch.device('dipu'))",
        DIPU_VENDOR_LIBRARY=library,
        TORCH_DEVICE_BACKEND_AUTOLOAD=autoload,
    )
    assert result.stdout.strip() == "dipu", result.stderr


@pytest.mark.parametrize("first", ["torch", "torch_dipu", "torch_dipu.dipu", "torch_dipu._start"])
def test_either_package_may_be_imported_first(
    first: str, run_python: Callable[..., Any], fake_vendor: Callable[..., Path]
) -> None:
    program = f"import {first}, torch, torch_dipu; torch_dipu.start(); print(torch.dipu.is_available())"
    for autoload in ("0", "1"):
        environment = {
            "DIPU_VENDOR_LIBRARY": str(fake_vendor("FAKE_FORM=1")),
            "TORCH_DEVICE_BACKEND_AUTOLOAD": autoload,
        }
        result = run_python(program, **environment)
        assert result.stdout.strip() == "True", result.stderr

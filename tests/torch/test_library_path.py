"""Where the package looks for the built libraries."""

import os
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A checkout with two vendors, and the module as if it lay there."""
    monkeypatch.syspath_prepend(str(ROOT / "python" / "torch_dipu"))
    for name in ("DIPU_LIBRARY_DIR", "DIPU_VENDOR"):
        monkeypatch.delenv(name, raising=False)
    for vendor in ("droplet", "cuda"):
        (tmp_path / "vendors" / vendor).mkdir(parents=True)
    __import__("torch_dipu._library_path")
    module: ModuleType = sys.modules["torch_dipu._library_path"]
    monkeypatch.setattr(module, "__file__", str(tmp_path / "python" / "torch_dipu" / "torch_dipu" / "_library_path.py"))
    return module


def build(root: Path, name: str, time: int) -> Path:
    library = root / "build" / name / "lib" / "libdiopi_impl.so"
    library.parent.mkdir(parents=True)
    library.touch()
    (library.parent / "libtorch_dipu.so").touch()
    os.utime(library, (time, time))
    return library.parent


def test_nothing_built(checkout: Any, tmp_path: Path) -> None:
    with pytest.raises(
        ImportError, match=r"torch_dipu is not built: there is no libtorch_dipu\.so under .*; run `make build`"
    ):
        checkout.library_dir()


def test_the_vendor_built_last(checkout: Any, tmp_path: Path) -> None:
    build(tmp_path, "droplet", 100)
    cuda = build(tmp_path, "cuda", 200)
    build(tmp_path, "droplet-asan", 300)
    assert checkout.library_dir() == cuda


def test_a_named_vendor_and_a_named_folder(checkout: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    droplet, cuda = build(tmp_path, "droplet", 100), build(tmp_path, "cuda", 200)
    monkeypatch.setenv("DIPU_VENDOR", "droplet")
    assert checkout.library_dir() == droplet
    monkeypatch.setenv("DIPU_LIBRARY_DIR", str(cuda))
    assert checkout.library_dir() == cuda
    monkeypatch.setenv("DIPU_LIBRARY_DIR", str(tmp_path))
    with pytest.raises(ImportError, match=r"DIPU_LIBRARY_DIR is .*, but there is no libtorch_dipu\.so in"):
        checkout.library_dir()


@pytest.fixture
def installed(checkout: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes packages of vendors, and the entry points that name them."""
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delenv("DIPU_VENDOR_LIBRARY", raising=False)

    def install(*vendors: str) -> None:
        points = [EntryPoint(name, f"torch_dipu_{name}", "torch_dipu.vendors") for name in vendors]
        monkeypatch.setattr(checkout.metadata, "entry_points", lambda group: [p for p in points if p.group == group])
        for name in vendors:
            package = tmp_path / "site" / f"torch_dipu_{name}"
            package.mkdir(parents=True)
            (package / "__init__.py").touch()

    return install


def test_the_library_of_the_installed_vendor(
    checkout: Any, installed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, site = tmp_path / "libdiopi_impl.so", tmp_path / "site"
    assert checkout.vendor_library(tmp_path) == beside
    installed("pebble")
    assert checkout.vendor_library(tmp_path) == site / "torch_dipu_pebble" / "libdiopi_impl.so"
    beside.touch()
    assert checkout.vendor_library(tmp_path) == beside
    monkeypatch.setenv("DIPU_VENDOR_LIBRARY", "/elsewhere/libdiopi_impl.so")
    assert checkout.vendor_library(tmp_path) == Path("/elsewhere/libdiopi_impl.so")


def test_one_of_several_installed_vendors(
    checkout: Any, installed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed("pebble", "marble")
    with pytest.raises(ImportError) as error:
        checkout.vendor_library(tmp_path)
    assert str(error.value) == "several vendors are installed: choose one of marble, pebble with DIPU_VENDOR"
    monkeypatch.setenv("DIPU_VENDOR", "marble")
    assert checkout.vendor_library(tmp_path).parent.name == "torch_dipu_marble"
    monkeypatch.setenv("DIPU_VENDOR", "granite")
    with pytest.raises(ImportError) as error:
        checkout.vendor_library(tmp_path)
    assert str(error.value) == "there is no vendor 'granite': choose one of marble, pebble with DIPU_VENDOR"


def test_a_vendors_package_that_was_removed(checkout: Any, installed: Any, tmp_path: Path) -> None:
    installed("pebble")
    (tmp_path / "site" / "torch_dipu_pebble" / "__init__.py").unlink()
    (tmp_path / "site" / "torch_dipu_pebble").rmdir()
    with pytest.raises(ImportError) as error:
        checkout.vendor_library(tmp_path)
    assert str(error.value) == "the package torch_dipu_pebble of the vendor 'pebble' is not there; install it again"


def test_libraries_beside_the_package_win(checkout: Any, tmp_path: Path) -> None:
    build(tmp_path, "droplet", 100)
    beside = tmp_path / "python" / "torch_dipu" / "torch_dipu"
    beside.mkdir(parents=True)
    (beside / "libtorch_dipu.so").touch()
    assert checkout.library_dir() == beside

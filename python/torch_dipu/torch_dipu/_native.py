"""The C++ extension, loaded from the folder of the built libraries."""

import importlib
import sys
from pathlib import Path
from typing import Any

import torch_dipu
from torch_dipu._intact import check_intact
from torch_dipu._library_path import library_dir, vendor_library


def load() -> Any:
    """The module ``torch_dipu._C``. Raises ImportError when it is not built, or a library was cut off."""
    if "torch_dipu._C" not in sys.modules:
        folder = library_dir()
        _make_importable(folder, vendor_library(folder))
    return importlib.import_module("torch_dipu._C")


def start() -> None:
    """Load the backend with the vendor's library; raises as ``load``, and RuntimeError where that is unusable."""
    folder = library_dir()
    vendor = vendor_library(folder)
    _make_importable(folder, vendor)
    load().initialize(str(vendor))


def _make_importable(folder: Path, vendor: Path) -> None:
    check_intact([*sorted(folder.glob("*.so")), vendor])
    if str(folder) not in torch_dipu.__path__:
        torch_dipu.__path__.append(str(folder))

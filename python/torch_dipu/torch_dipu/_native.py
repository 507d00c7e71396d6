"""The C++ extension, loaded from the folder of the built libraries."""

import importlib
import sys
from typing import Any

import torch_dipu
from torch_dipu._intact import check_intact
from torch_dipu._library_path import library_dir, vendor_library


def load() -> Any:
    """The module ``torch_dipu._C``. Raises ImportError when it is not built, or a library was cut off."""
    folder = library_dir()
    if "torch_dipu._C" not in sys.modules:
        check_intact([*sorted(folder.glob("*.so")), vendor_library(folder)])
    if str(folder) not in torch_dipu.__path__:
        torch_dipu.__path__.append(str(folder))
    return importlib.import_module("torch_dipu._C")

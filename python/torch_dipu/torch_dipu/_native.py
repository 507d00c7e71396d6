"""The C++ extension, loaded from the folder of the built libraries."""

import importlib
from typing import Any

import torch_dipu
from torch_dipu._library_path import library_dir


def load() -> Any:
    """The module ``torch_dipu._C``. Raises ImportError when it is not built."""
    folder = str(library_dir())
    if folder not in torch_dipu.__path__:
        torch_dipu.__path__.append(folder)
    return importlib.import_module("torch_dipu._C")

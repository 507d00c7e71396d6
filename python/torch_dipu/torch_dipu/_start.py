"""Starting the backend: load the libraries, name the device, register its module with torch.

torch is imported inside the functions, because the entry point runs while torch is being imported.
"""

import importlib
import os
import warnings

from torch_dipu._after_import import after_import

_PRIVATE_NAME = "privateuseone"  # what torch calls the device before a backend renames it


def is_autoloaded() -> bool:
    """Whether torch loads the device backends that are installed, as torch itself reads it."""
    return os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1"


def autoload() -> None:
    """The entry point. It never raises: an exception here would make ``import torch`` fail for everyone."""
    if not is_autoloaded():
        return
    try:
        start()
    except Exception as error:
        warnings.warn(f"the device dipu is not available: {_first_sentence(error)}", RuntimeWarning, stacklevel=2)


def start() -> None:
    """Make the device ``dipu`` available; does nothing the second time.

    Raises RuntimeError or ImportError, with one sentence, when the libraries are missing or unusable, or another
    backend holds torch's only place for a backend of this kind.
    """
    import torch

    holder = torch._C._get_privateuse1_backend_name()
    if holder == "dipu":
        return
    if holder != _PRIVATE_NAME:
        raise RuntimeError(f"another backend, '{holder}', already holds PrivateUse1, of which torch has only one")
    from torch_dipu import _library_path, _native, _own_operators

    _native.start()
    _own_operators.register(_library_path.vendor_library(_library_path.library_dir()))
    _register_device()


def _register_device() -> None:
    import torch
    from torch.utils.backend_registration import (
        generate_methods_for_privateuse1_backend,
        rename_privateuse1_backend,
    )

    rename_privateuse1_backend("dipu")

    from torch_dipu import _native, dipu

    _native.load().register_graphs()
    torch._register_device_module("dipu", dipu)  # type: ignore[no-untyped-call]
    generate_methods_for_privateuse1_backend(for_storage=True)
    after_import("torch._dynamo.device_interface", lambda: importlib.import_module("torch_dipu.dynamo").register())
    after_import("torch._inductor.graph", lambda: importlib.import_module("torch_dipu.inductor").register())
    if os.environ.get("DIPU_MOCK_CUDA", "0").lower() not in ("", "0", "false", "off", "no"):
        dipu.mock_cuda()

    from torch_dipu import _distributed, _sharing

    _distributed.register()
    _sharing.register()


def _first_sentence(error: Exception) -> str:
    """The message without the C++ stack that torch appends."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__

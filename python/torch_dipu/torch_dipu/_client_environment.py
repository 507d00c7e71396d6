"""What C++ programs that were written for DIPU are built with: variables that lead to headers and libraries."""

import importlib.util
import os
import shlex
from pathlib import Path

from torch_dipu._library_path import library_dir


def client_environment() -> dict[str, str]:
    """The variables that such a program's build reads, e.g. DIPU_ROOT, with the folders of this package or checkout.

    Raises ImportError with one sentence when the backend, its headers or torch is missing.
    """
    root = library_dir() / "client"
    package = Path(__file__).resolve().parent
    checkout = package.parents[2]
    installed = (package / "client").is_dir()
    contract = package / "client" if installed else checkout / "generated"
    headers = package / "client" if installed else checkout / "runtime_cpp" / "client"
    torch = importlib.util.find_spec("torch")
    if torch is None or torch.origin is None:
        raise ImportError("torch is not installed")
    for path in (root / "libtorch_dipu.a", contract / "include" / "diopi", headers / "dist" / "include" / "csrc_dipu"):
        if not path.exists():
            raise ImportError(f"torch_dipu is not built for C++ clients: there is no {path}")
    return {
        "DIPU_ROOT": str(root),
        "DIPU_PATH": str(headers),
        "DIOPI_PATH": str(contract),
        "VENDOR_INCLUDE_DIRS": str(contract / "include"),  # of a vendor's own headers; this layer includes none
        "PYTORCH_DIR": str(Path(torch.origin).parents[1]) + os.sep,
    }


def client_exports() -> str:
    """The same as lines for a shell."""
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in client_environment().items())

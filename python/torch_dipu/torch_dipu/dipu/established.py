"""Names of the established package of this name, for programs that look there for what is elsewhere here."""

import ctypes
import functools

from torch_dipu import _native

_C = _native.load()

diputype = "dipu"


@functools.cache
def vendor_type() -> str:
    """What the loaded library calls its vendor, in capitals, e.g. "DROPLET"; "UNKNOWN" if it does not say."""
    library = ctypes.CDLL(_C.vendor_library_path())  # loaded already
    try:
        name = library.diopiGetVendorName
    except AttributeError:
        return "UNKNOWN"
    name.restype = ctypes.c_char_p
    return (name() or b"unknown").decode("utf-8", "replace").upper()


def check_dipu_torch_compatiable() -> bool:
    """Whether the backend fits the torch that is installed: one that does not is refused when it is loaded."""
    return True

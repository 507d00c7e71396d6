"""The PyTorch device ``dipu``; importing torch loads it through the entry point in the group ``torch.backends``.

Where that is switched off, importing this package starts the device: whoever names it wants it. Otherwise nothing here
imports torch: when this package comes first, torch calls the entry point while it is itself imported.
"""

from torch_dipu._start import autoload as _autoload
from torch_dipu._start import is_autoloaded as _is_autoloaded
from torch_dipu._start import start

__all__ = ["_autoload", "diputype", "start"]
diputype = "dipu"


def __getattr__(name: str) -> str:
    """`__version__`, as the installed package has it."""
    if name != "__version__":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import metadata

    return metadata.version(__name__)


if not _is_autoloaded():
    start()

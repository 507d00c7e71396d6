"""The PyTorch device ``dipu``; importing torch loads it through the entry point in the group ``torch.backends``.

Where that is switched off, importing this package starts the device: whoever names it wants it. Otherwise nothing here
imports torch: when this package comes first, torch calls the entry point while it is itself imported.
"""

from torch_dipu._start import autoload as _autoload
from torch_dipu._start import is_autoloaded as _is_autoloaded
from torch_dipu._start import start

__all__ = ["_autoload", "diputype", "start"]
__version__ = "0.1.0"
diputype = "dipu"

if not _is_autoloaded():
    start()

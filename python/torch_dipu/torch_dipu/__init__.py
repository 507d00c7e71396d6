"""The PyTorch device ``dipu``; importing torch loads it through the entry point in the group ``torch.backends``.

Nothing here imports torch: when this package comes first, torch calls the entry point while it is itself imported.
"""

from torch_dipu._start import autoload as _autoload
from torch_dipu._start import start

__all__ = ["_autoload", "start"]
__version__ = "0.1.0"

"""PyTorch for references, which are the CPU's: imported without any backend that is installed beside it."""

import os

from diopi_conformance.variables import variables

# torch reads both while it is imported; deprecations of single overloads are no news here
with variables(TORCH_DEVICE_BACKEND_AUTOLOAD="0", TORCH_CPP_LOG_LEVEL=os.environ.get("TORCH_CPP_LOG_LEVEL", "ERROR")):
    import torch

__all__ = ["torch"]

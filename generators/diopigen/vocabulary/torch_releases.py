"""What only some of the supported releases of torch have in Python, under one name for all of them.

Operators are no part of it: schemas/aten has those of each release. In C++ the same is runtime_cpp/torch/releases.h.
"""

from collections.abc import Callable
from typing import Any

import torch

Registration = Callable[[str], None]


def random_of_compiled_code() -> Registration | None:
    """Registers a device whose compiled code repeats operators with the random numbers that they had; since 2.13."""
    from torch._functorch._aot_autograd import utils

    found: Registration | None = getattr(utils, "register_graphsafe_rng_device_type", None)
    return found


def has_meta_kernel(overload: torch._ops.OpOverload) -> bool:
    """Whether torch itself has the shapes; 2.11 has none of the gradients of fused attention."""
    return torch._C.DispatchKey.Meta in overload.py_kernels


def asks_for_gradient(output: Any) -> bool:
    """Whether the compiled backward has a gradient of an output; 2.11 does not tell it from `requires_grad`."""
    found: bool = getattr(output, "requires_grad_for_backward", output.requires_grad)
    return found


def product_and_sum() -> torch._ops.OpOverload | None:
    """The operator that graphs may have for a product with a sum."""
    packet = getattr(torch.ops.prims, "fma", None)
    return None if packet is None else packet.default


def capabilities() -> Any:
    """The words for what a device can do, by which torch's tests choose; None before 2.15."""
    from torch.testing._internal import common_device_type

    return getattr(common_device_type, "Capability", None)


def hardware() -> tuple[str, ...]:
    """The kinds of hardware that torch's tests name, e.g. "GENERIC"; none before 2.14."""
    from torch.testing._internal import common_utils

    return tuple(each.name for each in getattr(common_utils, "HardwareClassification", ()))

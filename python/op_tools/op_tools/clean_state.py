"""The state in which a tool computes: as at the start of a program, whatever the call that it looks at runs in.

Below a dispatch mode torch leaves out gradients, conjugation and more: they have happened already, for that call. A
tool's own computations need them, and need no autocast, no gradients of their own, and no mode that looks on.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch.utils._python_dispatch import _disable_current_modes

_INCLUDED = torch._C._dispatch_tls_local_include_set()
_EXCLUDED = torch._C._dispatch_tls_local_exclude_set()


@contextmanager
def clean_state() -> Iterator[None]:
    """While it lasts, operators run as if nobody had called the one that is looked at."""
    with (
        torch._C._ForceDispatchKeyGuard(_INCLUDED, _EXCLUDED),
        torch._C.DisableTorchFunction(),
        torch.no_grad(),
        _disable_current_modes() if torch._C._len_torch_dispatch_stack() else nullcontext(),
    ):
        yield

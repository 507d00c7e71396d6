"""What test suites that were written for the established package of this name import from here, over torch's own."""

import random
import unittest
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.testing._internal import common_utils

from torch_dipu import dipu as _module

cpu = "cpu"
dipu = torch.device("dipu")


def run_tests() -> None:
    """Runs the tests of the file that is executed."""
    unittest.main()


def create_common_tensor(
    item: Sequence[Any], minValue: float, maxValue: float, device: Any = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers of the dtype `item[0]` (numpy's) and the shape `item[2]`, drawn evenly: on the CPU and on the device."""
    drawn = torch.from_numpy(np.random.uniform(minValue, maxValue, item[2]).astype(item[0]))
    return drawn, drawn.to(device)


def skipOn(vendor: str, reason: str) -> Callable[[Any], Any]:
    """Skips a test where the loaded library is of this vendor, e.g. "MLU"."""
    return unittest.skipIf(_module.vendor_type == vendor, reason)


def onlyOn(vendor: str | Sequence[str]) -> Callable[[Any], Any]:
    """Skips a test unless the loaded library is of one of these vendors."""
    vendors = [vendor] if isinstance(vendor, str) else list(vendor)
    return unittest.skipUnless(_module.vendor_type in vendors, f"only runs on {vendors}")


class TestCase(common_utils.TestCase):
    """Each test begins with the same seed. Tensors on different devices are compared."""

    exact_dtype = True
    _precision = 1e-5

    def setUp(self) -> None:
        super().setUp()
        torch.manual_seed(666)
        random.seed(666)

    def assertEqual(  # type: ignore[override]
        self,
        x: Any,
        y: Any,
        prec: float | str | None = None,
        msg: str | None = None,
        allow_inf: bool = False,
        exact_dtype: bool | None = None,
        **more: Any,
    ) -> None:
        """Fails unless all elements differ by at most `prec`; infinities are equal only with `allow_inf`."""
        if isinstance(prec, str):
            prec, msg = None, prec
        tensors = [value for value in (x, y) if isinstance(value, torch.Tensor)]
        finite = all(not value.isinf().any() for value in tensors if value.is_floating_point())
        if not finite and not allow_inf:
            raise self.failureException(msg or "there are infinities, and allow_inf is not given")
        tolerances = {"atol": self._precision if prec is None else prec, "rtol": 0.0} if "atol" not in more else {}
        exact = self.exact_dtype if exact_dtype is None else exact_dtype
        super().assertEqual(x, y, msg, exact_dtype=exact, exact_device=False, **tolerances, **more)

    def assertRtolEqual(self, x: Any, y: Any, prec: float = 1e-4, prec16: float = 1e-3) -> None:
        """Fails if more than the share `prec` of the elements differ by more than `prec`, absolutely and relatively."""
        x, y = (value.numpy() if isinstance(value, torch.Tensor) else value for value in (x, y))
        self.assertEqual((x.shape, x.dtype), (y.shape, y.dtype))
        half = x.dtype == np.float16
        limit, least = (prec16, 6e-8) if half else (prec, 1e-9)
        difference = np.abs(x.astype(np.float64) - y.astype(np.float64))
        scale = np.maximum(np.abs(x.astype(np.float64)), np.abs(y.astype(np.float64))) + least
        wrong = [int(np.count_nonzero(~(each <= limit))) for each in (difference, difference / scale)]
        if min(wrong) > x.size * limit:
            raise self.failureException(f"{min(wrong)} of {x.size} elements differ by more than {limit:g}")

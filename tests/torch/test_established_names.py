"""What programs and tests that were written for the established package of this name find under its names."""

import subprocess
from collections.abc import Callable

Run = Callable[..., subprocess.CompletedProcess[str]]

# In the style of that package's own tests.
SUITE = """
import numpy as np
import torch
import torch_dipu
from torch_dipu import diputype
from torch_dipu.testing._internal.common_utils import TestCase, create_common_tensor, onlyOn, run_tests, skipOn


class TestNames(TestCase):
    def test_devices(self):
        self.assertEqual(torch.Generator("cuda").device.type, diputype)
        self.assertEqual(torch_dipu.dipu.vendor_type, "DROPLET")
        self.assertTrue(torch_dipu.dipu.check_dipu_torch_compatiable())
        with torch_dipu.dipu.devicectx(torch.device("dipu:1")):
            self.assertEqual(torch.cuda.current_device(), 1)

    def test_streams(self):
        stream = torch.cuda.Stream(0)
        self.assertEqual(stream.dipu_stream, stream._as_parameter_)
        self.assertNotEqual(stream.dipu_stream, torch.cuda.default_stream().dipu_stream)

    def test_tensors_of_two_devices(self):
        host, device = create_common_tensor([np.float32, 0, (3, 4)], -1, 1, "dipu")
        self.assertEqual(host, device, prec=0)
        self.assertRtolEqual(host, device.cpu())

    def test_what_differs(self):
        ones, infinite = torch.ones(2, device="cuda"), torch.tensor([float("inf")])
        for wrong in (
            lambda: self.assertEqual(ones, torch.ones(2) + 1e-4),
            lambda: self.assertEqual(ones, torch.ones(2).double()),
            lambda: self.assertEqual(infinite, infinite),
            lambda: self.assertRtolEqual(np.ones(4), np.ones(4) + 1),
            lambda: self.assertRtolEqual(np.ones(4), np.ones(5)),
        ):
            with self.assertRaises(AssertionError):
                wrong()
        self.assertEqual(ones, torch.ones(2) + 1e-4, 1e-3)
        self.assertEqual(ones, torch.ones(2).double(), exact_dtype=False)
        self.assertEqual(infinite, infinite, allow_inf=True)

    def test_seeds(self):
        drawn = torch.rand(4)
        self.setUp()
        self.assertEqual(torch.rand(4), drawn)

    @skipOn("DROPLET", "not here")
    def test_skipped(self):
        self.fail()

    @onlyOn(["MLU", "NPU"])
    def test_of_others(self):
        self.fail()


if __name__ == "__main__":
    run_tests()
"""


def test_a_suite_for_the_established_package_runs(run_python: Run) -> None:
    done = run_python(SUITE, DIPU_MOCK_CUDA="1")
    assert "Ran 7 tests" in done.stderr and "OK (skipped=2)" in done.stderr, done.stderr

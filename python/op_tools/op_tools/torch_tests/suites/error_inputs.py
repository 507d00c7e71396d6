"""What operators refuse is refused on the device, with the same class of error and the same words as on the CPU."""

import re
from typing import Any

import torch
from torch.testing._internal.common_device_type import OpDTypes, instantiate_device_type_tests, ops, skipCPUIf
from torch.testing._internal.common_methods_invocations import op_db

from op_tools.torch_tests.against_cpu import AgainstCpu
from op_tools.torch_tests.opinfo.samples import call_of


def raised(run: Any) -> Exception | None:
    try:
        run()
    except Exception as error:
        return error
    return None


def words(error: Exception, device: str) -> str:
    """The first line of the text, without the names of devices."""
    return re.sub(rf"(cpu|{torch.device(device).type})(:\d+)?", "", str(error).split("\n")[0]).strip()


class TestErrorInputs(AgainstCpu):
    @ops([op for op in op_db if op.error_inputs_func is not None], dtypes=OpDTypes.none)
    def test_errors(self, device: str, op: Any) -> None:
        faults = []
        for number, wrong in enumerate(op.error_inputs("cpu")):
            expected = raised(lambda w=wrong: call_of(w.sample_input, "cpu").run(op))
            if expected is None:
                continue  # the CPU takes it
            actual = raised(lambda w=wrong: call_of(w.sample_input, device).run(op))
            if isinstance(expected, NotImplementedError):
                continue  # the CPU has no kernel
            alike = isinstance(actual, type(expected)) and words(actual, device) == words(expected, device)
            if not alike:
                faults.append(f"{number}: {actual!r:.200} where the CPU gives {expected!r:.200}")
        if faults:
            self.fail(f"{len(faults)} differ from the CPU: " + "; ".join(faults[:5]))

    @skipCPUIf(True, "the CPU is the other device")
    def test_arguments_of_two_devices(self, device: str) -> None:
        def refused(run: Any) -> None:
            with self.assertRaises(RuntimeError):
                run()

        here, there = torch.ones(3, 3, device=device), torch.ones(3, 3)
        for run in (
            lambda: here + there,
            lambda: there * here,
            lambda: torch.cat([here, there]),
            lambda: torch.mm(here, there),
            lambda: torch.add(here, here, out=there),
            lambda: torch.nn.functional.linear(here, there),
            lambda: torch.where(here > 0, here, there),
            lambda: here.index_select(0, torch.tensor([0])),
            lambda: here.gather(0, torch.zeros(3, 3, dtype=torch.int64)),
        ):
            refused(run)
        self.assertEqual((here + torch.tensor(1.0)).cpu(), there + 1)


instantiate_device_type_tests(TestErrorInputs, globals(), allow_mps=True, allow_xpu=True)

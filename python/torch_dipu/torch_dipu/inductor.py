"""What torch's own compiler, inductor, is told of the device: it has no code for it, and this says what has.

Imported only after inductor's own modules, whose registries have a place for every device.
"""

from typing import Any, NoReturn

from torch._inductor.codegen import common
from torch._inductor.codegen.wrapper import PythonWrapperCodegen

_ADVICE = (
    "torch's compiler 'inductor' generates no code for the device dipu: use torch.compile(model, backend='diopi'). "
    "Packages of AOTInductor are inductor's, too; what keeps compiled graphs of dipu is in docs/torch-compile.md."
)


class NoCodeGenerator(PythonWrapperCodegen):
    """Stands where inductor looks for what generates code."""

    def __init__(self, *_: Any) -> None:
        raise NotImplementedError(_ADVICE)

    @staticmethod
    def create(*_: Any) -> NoReturn:
        raise NotImplementedError(_ADVICE)


def register() -> None:
    """Answers for dipu; the entries of other devices stay as they are."""
    common.get_device_op_overrides("cpu")  # torch fills its registry where it is empty
    common.register_device_op_overrides("dipu", common.DeviceOpOverrides())
    classes: Any = (NoCodeGenerator,) * 4
    common.register_backend_for_device("dipu", *classes)

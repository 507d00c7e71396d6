"""Dtypes and values of operators whose arguments differ in dtype, for tensors, tensors of no dimension and numbers."""

from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_device_type import OpDTypes, instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import BinaryUfuncInfo

from op_tools.torch_tests.against_cpu import AgainstCpu

BINARY = [op for op in op_db if isinstance(op, BinaryUfuncInfo)]
DTYPES = (
    torch.bool,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
)
NUMBERS = (True, 2, 2.5, 1 + 2j)


def tensor(dtype: torch.dtype, device: str, dims: int = 1) -> torch.Tensor:
    """Small numbers that every dtype holds and every operator takes."""
    values = torch.tensor([1, 2, 3] if dims else 2)
    return values.to(dtype).to(device)


def operands() -> Iterator[tuple[str, Any]]:
    """(name, function of the device): pairs of operands."""
    for first in DTYPES:
        for second in DTYPES:
            yield f"{first} and {second}", lambda d, a=first, b=second: (tensor(a, d), tensor(b, d))
            yield f"{first} and 0-dim {second}", lambda d, a=first, b=second: (tensor(a, d), tensor(b, d, 0))
            yield f"{first} and {second} of the CPU", lambda d, a=first, b=second: (tensor(a, d), tensor(b, "cpu", 0))
        for number in NUMBERS:
            yield f"{first} and {number}", lambda d, a=first, n=number: (tensor(a, d), n)
            yield f"{number} and {first}", lambda d, a=first, n=number: (n, tensor(a, d))


class TestTypePromotion(AgainstCpu):
    @ops(BINARY, dtypes=OpDTypes.none)
    def test_results(self, device: str, op: Any) -> None:
        self.all_same(device, [(name, lambda d, make=make: op(*make(d))) for name, make in operands()])

    @ops([op for op in BINARY if op.inplace_variant], dtypes=OpDTypes.none)
    def test_in_place(self, device: str, op: Any) -> None:
        def program(d: str, make: Any) -> Any:
            first, second = make(d)
            return op.inplace_variant(first, second)

        pairs = [(name, make) for name, make in operands() if not name[0].isdigit() and name[0] not in "T("]
        self.all_same(device, [(name, lambda d, make=make: program(d, make)) for name, make in pairs])

    @ops([op for op in BINARY if op.supports_out], dtypes=OpDTypes.none)
    def test_out(self, device: str, op: Any) -> None:
        wanted = (torch.bool, torch.int32, torch.float16, torch.float32, torch.complex64)
        given = (torch.uint8, torch.int64, torch.float32, torch.float64)

        def program(d: str, first: torch.dtype, second: torch.dtype, out: torch.dtype) -> Any:
            return op(tensor(first, d), tensor(second, d), out=torch.zeros(3, dtype=out, device=d))

        self.all_same(
            device,
            [
                (f"{first} and {second} into {out}", lambda d, a=(first, second, out): program(d, *a))
                for first in given
                for second in given
                for out in wanted
            ],
        )

    def test_where_cat_and_stack(self, device: str) -> None:
        condition = torch.tensor([True, False, True])
        self.all_same(
            device,
            [
                (f"{what} {name}", lambda d, run=run, make=make: run(d, *make(d)))
                for name, make in operands()
                for what, run in (
                    ("where", lambda d, a, b: torch.where(condition.to(d), a, b)),
                    ("cat", lambda d, a, b: torch.cat([a, b])),
                    ("stack", lambda d, a, b: torch.stack([a, b])),
                    ("addcmul", lambda d, a, b: torch.addcmul(a, b, a, value=2)),
                    ("lerp", lambda d, a, b: torch.lerp(a, b, 0.5)),
                    # Its bounds must be on the device, unless they are numbers.
                    ("clamp", lambda d, a, b: torch.clamp(a, max=b.to(d) if isinstance(b, torch.Tensor) else b)),
                    ("result_type", lambda d, a, b: torch.result_type(a, b)),
                )
            ],
        )

    def test_reductions_and_products(self, device: str) -> None:
        self.all_same(
            device,
            [
                (f"{what} {dtype}", lambda d, run=run, dtype=dtype: run(tensor(dtype, d)))
                for dtype in DTYPES
                for what, run in (
                    ("sum", torch.sum),
                    ("prod", torch.prod),
                    ("mean", torch.mean),
                    ("cumsum", lambda a: a.cumsum(0)),
                    ("any", torch.any),
                    ("sqrt", torch.sqrt),
                    ("abs", torch.abs),
                    ("neg", torch.neg),
                    ("bitwise_not", torch.bitwise_not),
                    ("outer", lambda a: torch.outer(a, a)),
                    ("dot", lambda a: torch.dot(a, a)),
                    ("int", lambda a: a.to(torch.int64)),
                    ("half", lambda a: a.half()),
                )
            ],
        )

    def test_default_dtype(self, device: str) -> None:
        def program(d: str) -> Any:
            before = torch.get_default_dtype()
            torch.set_default_dtype(torch.float64)
            try:
                made = [torch.ones(2, device=d), torch.tensor(1.5, device=d), torch.arange(0, 1, 0.5, device=d)]
                mixed = [tensor(torch.int32, d) + 1.5, tensor(torch.float32, d) * 1.5, tensor(torch.bool, d) / 2]
                return made + mixed + [torch.sqrt(tensor(torch.int64, d)), torch.full((2,), 1j, device=d)]
            finally:
                torch.set_default_dtype(before)

        self.same(device, program)

    def test_numbers_that_do_not_fit(self, device: str) -> None:
        def compared(d: str, dtype: torch.dtype, number: float) -> Any:
            values = tensor(dtype, d)
            return [values < number, values == number, values >= number, number > values]

        def filled(d: str, dtype: torch.dtype, number: float) -> Any:
            return tensor(dtype, d).fill_(number)

        self.all_same(
            device,
            [
                (f"{run.__name__} {dtype} {number}", lambda d, r=run, a=(dtype, number): r(d, *a))
                for run in (compared, filled)
                for dtype in (torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16)
                for number in (-1, 300, 2**31, 2**40, 1e10)
            ],
        )


instantiate_device_type_tests(TestTypePromotion, globals(), allow_mps=True, allow_xpu=True)

"""What the tests of the kernel families share: tensors in many memory layouts, and calls that allocate their result."""

import ctypes
from collections.abc import Iterator
from typing import Any

import torch

from portable import DTYPES, SUCCESS, Portable, Size

TOLERANCE = {  # relative and absolute, against a reference in float64
    torch.float64: (1e-10, 1e-10),
    torch.float32: (1e-5, 1e-5),
    torch.float16: (2e-3, 2e-3),
    torch.bfloat16: (1.6e-2, 1.6e-2),
}
HALVES = (torch.float16, torch.bfloat16)


def numbers(shape: tuple[int, ...], dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
    return torch.randint(0 if dtype == torch.uint8 else -9, 10, shape, generator=generator).to(dtype)


def indices(shape: tuple[int, ...], size: int, dtype: torch.dtype = torch.int64, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, size, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def layouts(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The same values contiguous, in reversed order of dimensions, and with gaps behind an offset."""
    yield tensor.contiguous()
    if tensor.dim() == 0:
        return
    order = list(range(tensor.dim()))[::-1]
    yield tensor.permute(order).contiguous().permute(order)
    wide = torch.zeros((*tensor.shape[:-1], 2 * tensor.shape[-1] + 3), dtype=tensor.dtype)
    wide[..., 3::2] = tensor
    yield wide[..., 3::2]


def blank(like: torch.Tensor, layout: int = 0) -> torch.Tensor:
    """An output of that shape in one of the layouts, filled with what no kernel should leave behind."""
    base = torch.full(like.shape, 77, dtype=like.dtype) if like.dtype != torch.bool else ~like
    return list(layouts(base))[layout if like.dim() else 0]


def close(actual: torch.Tensor, expected: torch.Tensor, scale: float = 1.0) -> None:
    """`expected` may be in float64: it is compared at the precision of `actual`."""
    assert actual.shape == expected.shape
    rtol, atol = TOLERANCE.get(actual.dtype, (0.0, 0.0))
    torch.testing.assert_close(actual.double(), expected.double(), rtol=rtol * scale, atol=atol * scale, equal_nan=True)


class Families(Portable):
    """Portable, with calls whose result the kernel allocates."""

    def allocated(self, name: str, *args: Any) -> torch.Tensor:
        """The tensor that `name` gives through its first parameter after the context."""
        context = ctypes.c_void_p(self._library.test_context_create())
        keep: list[Any] = []
        handles: list[ctypes.c_void_p] = []
        types = self._types[name][2:]
        converted = [self._argument(kind, arg, keep, handles) for kind, arg in zip(types, args, strict=True)]
        out = ctypes.c_void_p()
        try:
            status = getattr(self._library, self._symbols[name])(context, ctypes.byref(out), *converted)
            assert status == SUCCESS, f"{name}: status {status}: {self.last_error()}"
            return self._read(out)
        finally:
            for handle in handles:
                self._library.test_tensor_destroy(handle)
            self._library.test_context_destroy(context)

    def _argument(self, kind: str, arg: Any, keep: list[Any], handles: list[ctypes.c_void_p]) -> Any:
        return super()._argument("diopiSize_t" if kind == "const diopiSize_t" else kind, arg, keep, handles)

    def _read(self, handle: ctypes.c_void_p) -> torch.Tensor:
        shape, data, dtype = Size(), ctypes.c_void_p(), ctypes.c_int()
        self._library.diopiGetTensorShape(handle, ctypes.byref(shape))
        self._library.diopiGetTensorData(handle, ctypes.byref(data))
        self._library.diopiGetTensorDtype(handle, ctypes.byref(dtype))
        sizes = [shape.values[d] for d in range(shape.length)]
        result = torch.empty(sizes, dtype={value: key for key, value in DTYPES.items()}[dtype.value])
        if result.numel():
            ctypes.memmove(result.data_ptr(), data.value, result.numel() * result.element_size())
        return result

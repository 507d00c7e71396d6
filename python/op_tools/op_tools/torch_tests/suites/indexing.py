"""Reading and writing by index: basic, advanced, by mask; gather and scatter; what is out of range."""

from typing import Any

import torch
from torch.testing._internal.common_device_type import dtypes, instantiate_device_type_tests

from op_tools.torch_tests.against_cpu import AgainstCpu

USUAL = (torch.float32, torch.int64, torch.bool, torch.complex64, torch.float16)


def grid(device: str, dtype: torch.dtype = torch.float32, shape: tuple[int, ...] = (4, 5, 6)) -> torch.Tensor:
    count = torch.Size(shape).numel()
    return (torch.arange(count, device=device) % 13).reshape(shape).to(dtype)


def ints(device: str, *values: Any) -> torch.Tensor:
    return torch.tensor(values, device=device, dtype=torch.int64)


# What stands between the brackets, by the device.
BASIC: dict[str, Any] = {
    "int": lambda d: 1,
    "negative": lambda d: -1,
    "slice": lambda d: slice(1, 3),
    "step": lambda d: slice(None, None, 2),
    "empty slice": lambda d: slice(3, 1),
    "ellipsis": lambda d: (..., 0),
    "none": lambda d: (None, slice(None), None, 2),
    "true": lambda d: True,
    "false": lambda d: False,
    "0-dim tensor": lambda d: torch.tensor(2, device=d),
    "all": lambda d: (1, 2, 3),
}
ADVANCED: dict[str, Any] = {
    "list": lambda d: [0, 2],
    "tensor": lambda d: ints(d, 3, 0, 3),
    "matrix": lambda d: ints(d, [0, 1], [2, 3]),
    "negative tensor": lambda d: ints(d, -1, -4),
    "int32": lambda d: ints(d, 1, 2).int(),
    "uint8 mask": lambda d: torch.tensor([1, 0, 1, 0], dtype=torch.uint8, device=d),
    "pair": lambda d: (ints(d, 0, 1), ints(d, 2, 3)),
    "broadcast": lambda d: (ints(d, [0], [1]), ints(d, 2, 3, 4)),
    "apart": lambda d: (ints(d, 0, 1), slice(None), ints(d, 2, 3)),
    "behind slice": lambda d: (slice(1, 3), ints(d, 0, 4)),
    "behind ellipsis": lambda d: (..., ints(d, 5, 0)),
    "with none": lambda d: (None, ints(d, 1, 1), slice(None, None, 3)),
    "with int": lambda d: (ints(d, 1, 2), 3),
    "of the CPU": lambda d: torch.tensor([1, 0]),
    "no elements": lambda d: torch.empty(0, dtype=torch.int64, device=d),
    "mask": lambda d: grid(d) > 6,
    "row mask": lambda d: torch.tensor([True, False, True, True], device=d),
    "mask of nothing": lambda d: torch.zeros(4, dtype=torch.bool, device=d),
    "mask and tensor": lambda d: (torch.tensor([True, False, True, False], device=d), ints(d, 0, 1)),
    "mask of two": lambda d: (slice(None), grid(d)[0] > 6),
    "mask list": lambda d: [True, False, False, True],
    "0-dim mask": lambda d: torch.tensor(True, device=d),
}
WRONG: dict[str, Any] = {
    "int": lambda d: 4,
    "negative int": lambda d: -5,
    "too many": lambda d: (0, 0, 0, 0),
    "tensor": lambda d: ints(d, 0, 4),
    "negative tensor": lambda d: ints(d, 0, -5),
    "second": lambda d: (ints(d, 0), ints(d, 9)),
    "mask": lambda d: torch.ones(3, dtype=torch.bool, device=d),
    "float": lambda d: torch.tensor([0.5], device=d),
    "shapes": lambda d: (ints(d, 0, 1), ints(d, 0, 1, 2)),
    "step": lambda d: slice(None, None, -1),
    "text": lambda d: "a",
}


class TestBrackets(AgainstCpu):
    @dtypes(*USUAL)
    def test_read(self, device: str, dtype: torch.dtype) -> None:
        forms = {**BASIC, **ADVANCED, **{f"wrong {k}": v for k, v in WRONG.items()}}
        self.all_same(device, [(name, lambda d, at=at: grid(d, dtype)[at(d)]) for name, at in forms.items()])

    @dtypes(*USUAL)
    def test_write(self, device: str, dtype: torch.dtype) -> None:
        def program(d: str, at: Any, value: str) -> Any:
            tensor = grid(d, dtype)
            index = at(d)
            if value == "number":
                tensor[index] = 7
            elif value == "0-dim":
                tensor[index] = torch.tensor(3, device=d).to(dtype)
            elif value == "of the CPU":
                tensor[index] = torch.tensor(5.0)
            elif value == "whole":
                tensor[index] = tensor[index] * 2 if dtype != torch.bool else ~tensor[index]
            else:
                tensor[index] = torch.ones(17, device=d)
            return tensor

        # Of equal positions any may win: an index with one twice is left to numbers.
        forms = {**BASIC, **ADVANCED, **{f"wrong {k}": v for k, v in WRONG.items()}}
        self.all_same(
            device,
            [
                (f"{name}, {value}", lambda d, at=at, value=value: program(d, at, value))
                for name, at in forms.items()
                for value in ("number", "0-dim", "of the CPU", "whole", "shape")
            ],
        )

    def test_strided(self, device: str) -> None:
        views = {
            "transposed": lambda t: t.transpose(0, 2),
            "stepped": lambda t: t[:, ::2, 1::2],
            "expanded": lambda t: t[:, :1, :1].expand(4, 5, 6),
        }

        def program(d: str, view: Any, at: Any) -> Any:
            base = grid(d)
            tensor = view(base)
            read = tensor[at(d)]
            if 0 not in tensor.stride():  # what is written to must not overlap
                tensor[at(d)] = -1
            return read, base

        positions = {
            "tensor": lambda d: ints(d, 0, 2),
            "pair": lambda d: (ints(d, 0, 1), ints(d, 2, 0)),
            "last": lambda d: (..., ints(d, 1, 0)),
            "matrix": lambda d: (slice(0, 2), ints(d, [0, 1], [1, 0])),
        }
        self.all_same(
            device,
            [
                (f"{name} {place}", lambda d, v=view, at=at: program(d, v, at))
                for name, view in views.items()
                for place, at in positions.items()
            ],
        )

    def test_gradients(self, device: str) -> None:
        def read(d: str, at: Any) -> Any:
            leaf = grid(d).requires_grad_()
            return torch.autograd.grad((leaf * 2)[at(d)].square().sum(), leaf)

        def write(d: str, at: Any) -> Any:
            leaf = grid(d).requires_grad_()
            value = torch.tensor(3.0, device=d, requires_grad=True)
            tensor = leaf * 2
            tensor[at(d)] = value
            return torch.autograd.grad(tensor.square().sum(), (leaf, value), allow_unused=True)

        forms = {**BASIC, **ADVANCED}
        self.all_same(
            device,
            [(f"{r.__name__} {n}", lambda d, r=r, at=at: r(d, at)) for r in (read, write) for n, at in forms.items()],
        )


class TestIndexOperators(AgainstCpu):
    @dtypes(torch.float32, torch.int64, torch.float16)
    def test_put(self, device: str, dtype: torch.dtype) -> None:
        twice = lambda d: (ints(d, 0, 0, 3), ints(d, 1, 1, 2))  # noqa: E731
        once = lambda d: (ints(d, 0, 1, 3), ints(d, 1, 1, 2))  # noqa: E731
        three = lambda d: grid(d, dtype, (3, 6))  # noqa: E731
        self.all_same(
            device,
            [
                ("put", lambda d: grid(d, dtype).index_put(once(d), three(d))),
                ("accumulate", lambda d: grid(d, dtype).index_put(twice(d), three(d), accumulate=True)),
                ("number", lambda d: grid(d, dtype).index_put_(twice(d), torch.tensor(2, device=d).to(dtype))),
                ("mask", lambda d: grid(d, dtype).index_put((grid(d) > 6,), torch.tensor(1, device=d).to(dtype))),
                ("mixed", lambda d: grid(d, dtype).index_put(once(d), torch.ones(3, 6, device=d, dtype=torch.int16))),
                ("none", lambda d: torch.ops.aten.index(grid(d, dtype), [None, ints(d, 1), None])),
                ("unsafe", lambda d: torch.ops.aten._unsafe_index(grid(d, dtype), [ints(d, 1)])),
                ("put_", lambda d: grid(d, dtype).put_(ints(d, 3, -1), grid(d, dtype, (2,)))),
                ("put_ accumulate", lambda d: grid(d, dtype).put_(ints(d, 3, 3), grid(d, dtype, (2,)), True)),
                ("put_ wrong", lambda d: grid(d, dtype).put_(ints(d, 300), grid(d, dtype, (1,)))),
                ("take", lambda d: grid(d, dtype).take(ints(d, [0, 119], [-1, 7]))),
                ("take wrong", lambda d: grid(d, dtype).take(ints(d, 120))),
                ("take of none", lambda d: grid(d, dtype)[:0].take(ints(d, 0))),
            ],
        )

    @dtypes(*USUAL)
    def test_along_a_dimension(self, device: str, dtype: torch.dtype) -> None:
        index = lambda d: ints(d, [[0, 1, 2, 0, 3, 1]])  # noqa: E731
        programs: list[tuple[str, Any]] = []
        for dim in (0, 1, -1):
            programs += [
                (f"select {dim}", lambda d, n=dim: grid(d, dtype).index_select(n, ints(d, 2, 0, 2))),
                (f"select int32 {dim}", lambda d, n=dim: grid(d, dtype).index_select(n, ints(d, 2, 0).int())),
                (f"select 0-dim {dim}", lambda d, n=dim: grid(d, dtype).index_select(n, torch.tensor(1, device=d))),
                (f"fill {dim}", lambda d, n=dim: grid(d, dtype).index_fill(n, ints(d, 1, -1), 1)),
                (
                    f"copy {dim}",
                    lambda d, n=dim: grid(d, dtype).index_copy(n, ints(d, 1), grid(d, dtype).narrow(n, 3, 1)),
                ),
                (
                    f"add {dim}",
                    lambda d, n=dim: grid(d, dtype).index_add(n, ints(d, 1, 1), grid(d, dtype).narrow(n, 0, 2)),
                ),
                (f"gather {dim}", lambda d, n=dim: grid(d, dtype).gather(n, index(d))),
                (f"scatter {dim}", lambda d, n=dim: grid(d, dtype).scatter(n, index(d)[..., :1], 1)),
                (f"scatter_add {dim}", lambda d, n=dim: grid(d, dtype).scatter_add(n, index(d), grid(d, dtype))),
                (f"take_along {dim}", lambda d, n=dim: grid(d, dtype).take_along_dim(index(d), n)),
                (f"select wrong {dim}", lambda d, n=dim: grid(d, dtype).index_select(n, ints(d, 9))),
                (f"gather wrong {dim}", lambda d, n=dim: grid(d, dtype).gather(n, ints(d, [[9]]))),
                (f"scatter wrong {dim}", lambda d, n=dim: grid(d, dtype).scatter(n, ints(d, [[-1]]), 1)),
                (
                    f"add wrong {dim}",
                    lambda d, n=dim: grid(d, dtype).index_add(n, ints(d, 9), grid(d, dtype).narrow(n, 0, 1)),
                ),
                (
                    f"copy wrong {dim}",
                    lambda d, n=dim: grid(d, dtype).index_copy(n, ints(d, 9), grid(d, dtype).narrow(n, 0, 1)),
                ),
                (f"fill wrong {dim}", lambda d, n=dim: grid(d, dtype).index_fill(n, ints(d, 9), 1)),
            ]
            for reduce in ("sum", "prod", "mean", "amax", "amin"):
                programs += [
                    (
                        f"scatter_reduce {reduce} {dim} {own}",
                        lambda d, n=dim, r=reduce, o=own: grid(d, dtype).scatter_reduce(
                            n, index(d), grid(d, dtype), r, include_self=o
                        ),
                    )
                    for own in (True, False)
                ]
        self.all_same(device, programs)

    @dtypes(*USUAL)
    def test_masks(self, device: str, dtype: torch.dtype) -> None:
        mask = lambda d: grid(d) > 6  # noqa: E731
        self.all_same(
            device,
            [
                ("select", lambda d: grid(d, dtype).masked_select(mask(d))),
                ("select broadcast", lambda d: grid(d, dtype).masked_select(mask(d)[:, :, :1])),
                ("fill", lambda d: grid(d, dtype).masked_fill(mask(d), 1)),
                ("fill 0-dim", lambda d: grid(d, dtype).masked_fill(mask(d), torch.tensor(1, device=d).to(dtype))),
                ("fill vector", lambda d: grid(d, dtype).masked_fill(mask(d), torch.ones(2, device=d))),
                ("fill by numbers", lambda d: grid(d, dtype).masked_fill(mask(d).float(), 1)),
                ("scatter", lambda d: grid(d, dtype).masked_scatter(mask(d), grid(d, dtype))),
                ("scatter too few", lambda d: grid(d, dtype).masked_scatter(mask(d), grid(d, dtype)[0, 0])),
                ("nonzero", lambda d: grid(d, dtype).nonzero()),
                ("nonzero tuple", lambda d: grid(d, dtype).nonzero(as_tuple=True)),
                ("nonzero single", lambda d: grid(d, dtype)[0, 0, 1].nonzero()),
                ("argwhere", lambda d: grid(d, dtype).argwhere()),
                ("where", lambda d: torch.where(mask(d))),
                ("count", lambda d: mask(d).count_nonzero(1)),
                ("searchsorted", lambda d: torch.searchsorted(ints(d, 1, 3, 5), ints(d, 0, 3, 9), right=True)),
                ("bucketize", lambda d: torch.bucketize(grid(d), torch.tensor([2.0, 5.0], device=d))),
                ("tril_indices", lambda d: torch.tril_indices(3, 4, device=d)),
                ("unravel", lambda d: torch.unravel_index(ints(d, 5, 119), (4, 5, 6))),
            ],
        )

    def test_tensors_as_numbers(self, device: str) -> None:
        self.all_same(
            device,
            [
                ("index", lambda d: list(range(10))[torch.tensor(3, device=d)]),
                ("bool", lambda d: bool(torch.tensor([2.0], device=d))),
                ("bool of several", lambda d: bool(torch.ones(2, device=d))),
                ("item", lambda d: torch.tensor([2.5], device=d).item()),
                ("item of several", lambda d: torch.ones(2, device=d).item()),
                ("tolist", lambda d: grid(d, torch.int64, (2, 2)).tolist()),
                ("iterate", lambda d: [float(row.sum()) for row in grid(d, shape=(3, 2))]),
                ("in", lambda d: 3 in ints(d, 1, 3)),
                ("len", lambda d: len(grid(d))),
                ("complex", lambda d: complex(torch.tensor(1 + 2j, device=d))),
                ("int of nan", lambda d: int(torch.tensor(float("nan"), device=d))),
            ],
        )


instantiate_device_type_tests(TestBrackets, globals(), allow_mps=True, allow_xpu=True)
instantiate_device_type_tests(TestIndexOperators, globals(), allow_mps=True, allow_xpu=True)

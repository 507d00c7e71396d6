"""Reductions over every choice of dimensions, of empty, strided and special values, with dtype= and out=."""

from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import ReductionOpInfo

from op_tools.torch_tests.against_cpu import AgainstCpu

REDUCTIONS = [op for op in op_db if isinstance(op, ReductionOpInfo)]
USUAL = (torch.float32, torch.int64, torch.bool, torch.complex64)
SHAPES = {"cube": (2, 3, 4), "single": (), "one": (1,), "none": (0,), "hollow": (3, 0, 2)}
DIMS: tuple[Any, ...] = ("all", 0, -1, 1, (0, 2), (), (0, 0), 3, (-1, -2))


def values(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 7 % 11) - 3).reshape(shape).to(dtype)


def calls(op: Any, tensor: torch.Tensor, dim: Any, keepdim: bool) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The arguments besides the tensor: what the operator needs, with dim and keepdim."""
    chosen = {} if dim == "all" else {"dim": dim, "keepdim": keepdim}
    try:
        given = list(op.generate_args_kwargs(tensor, **chosen))
    except (RuntimeError, IndexError, TypeError):
        return  # the arguments cannot be made for this shape
    for args, kwargs in given:
        yield args, {**kwargs, **chosen}


def on(device: str, args: Any) -> Any:
    return torch.utils._pytree.tree_map(lambda a: a.to(device) if isinstance(a, torch.Tensor) else a, args)


class TestReductions(AgainstCpu):
    def each(self, device: str, op: Any, tensors: dict[str, torch.Tensor], dims: tuple[Any, ...] = DIMS) -> None:
        self.all_same(
            device,
            [
                (
                    f"{name} {args} {kwargs}",
                    lambda d, t=tensor, a=args, k=kwargs: op(t.to(d), *on(d, a), **on(d, k)),
                )
                for name, tensor in tensors.items()
                for dim in dims
                for keepdim in ((False,) if dim == "all" else (False, True))
                for args, kwargs in calls(op, tensor, dim, keepdim)
            ],
        )

    @ops(REDUCTIONS, allowed_dtypes=USUAL)
    def test_dimensions(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.each(device, op, {name: values(shape, dtype) for name, shape in SHAPES.items()})

    @ops(REDUCTIONS, allowed_dtypes=(torch.float32, torch.int64))
    def test_strided(self, device: str, dtype: torch.dtype, op: Any) -> None:
        base = values((4, 3, 6), dtype)

        def program(d: str, view: Any, args: Any, kwargs: Any) -> Any:
            return op(view(base.to(d)), *on(d, args), **on(d, kwargs))

        views = {
            "transposed": lambda t: t.transpose(0, 2),
            "stepped": lambda t: t[::2, :, 1::2],
            "expanded": lambda t: t[:, :1].expand(4, 5, 6),
            "channels": lambda t: t.unsqueeze(0).contiguous(memory_format=torch.channels_last),
        }
        self.all_same(
            device,
            [
                (f"{name} {args} {kwargs}", lambda d, v=view, a=args, k=kwargs: program(d, v, a, k))
                for name, view in views.items()
                for dim in ("all", 0, -1, (0, 2))
                for args, kwargs in calls(op, view(base), dim, False)
            ],
        )

    @ops(REDUCTIONS, allowed_dtypes=(torch.float32, torch.float16, torch.bfloat16))
    def test_special_values(self, device: str, dtype: torch.dtype, op: Any) -> None:
        nan, inf = float("nan"), float("inf")
        rows = {
            "nan": [[1.0, nan, 2.0], [3.0, 4.0, 5.0]],
            "all nan": [[nan, nan, nan], [1.0, 1.0, 1.0]],
            "inf": [[inf, 1.0, 2.0], [-inf, 0.0, 1.0]],
            "both": [[inf, -inf, 1.0], [nan, inf, 0.0]],
            "zeros": [[0.0, -0.0, 0.0], [-0.0, -0.0, -0.0]],
        }
        self.each(device, op, {k: torch.tensor(v, dtype=dtype) for k, v in rows.items()}, ("all", 0, 1))

    @ops(REDUCTIONS, allowed_dtypes=(torch.float32, torch.int32))
    def test_dtype_and_out(self, device: str, dtype: torch.dtype, op: Any) -> None:
        tensor = values((3, 4), dtype)

        def with_dtype(d: str, target: torch.dtype, dim: Any) -> Any:
            args, kwargs = next(calls(op, tensor, dim, False))
            return op(tensor.to(d), *on(d, args), **{**on(d, kwargs), "dtype": target})

        def with_out(d: str, target: torch.dtype, dim: Any) -> Any:
            args, kwargs = next(calls(op, tensor, dim, False))
            return op(tensor.to(d), *on(d, args), **on(d, kwargs), out=torch.empty(0, dtype=target, device=d))

        runs = [with_dtype, *([with_out] if op.supports_out else [])]
        self.all_same(
            device,
            [
                (f"{run.__name__} {target} {dim}", lambda d, r=run, a=(target, dim): r(d, *a))
                for run in runs
                for target in (torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16)
                for dim in ("all", 0, -1)
            ],
        )


class TestLargeReductions(AgainstCpu):
    def test_long_sums(self, device: str) -> None:
        generator = torch.Generator().manual_seed(1)
        long = torch.randn(257, 1031, generator=generator)
        self.all_same(
            device,
            [
                (f"{name} {dim}", lambda d, run=run, dim=dim: run(long.to(d), dim))
                for dim in (0, 1, (0, 1))
                for name, run in (
                    ("sum", lambda t, dim: t.sum(dim)),
                    ("mean", lambda t, dim: t.mean(dim)),
                    ("var", lambda t, dim: t.var(dim)),
                    ("amax", lambda t, dim: t.amax(dim)),
                    ("norm", lambda t, dim: torch.linalg.vector_norm(t, dim=dim)),
                    ("logsumexp", lambda t, dim: t.logsumexp(dim)),
                    ("count_nonzero", lambda t, dim: t.gt(1).count_nonzero(dim)),
                )
            ],
        )

    def test_gradients(self, device: str) -> None:
        base = values((3, 4), torch.float32)

        def program(d: str, run: Any) -> Any:
            leaf = base.to(d).requires_grad_()
            return torch.autograd.grad(run(leaf).sum(), leaf)

        self.all_same(
            device,
            [
                (name, lambda d, run=run: program(d, run))
                for name, run in {
                    "prod with zeros": lambda t: (t * (t > 0)).prod(0),
                    "amax of equals": lambda t: (t > 0).to(t.dtype).mul(t).amax(1),
                    "max": lambda t: t.max(),
                    "median": lambda t: t.median(),
                    "std": lambda t: t.std(1),
                    "norm": lambda t: t.norm(dim=0),
                    "cumprod": lambda t: t.cumprod(1),
                    "logcumsumexp": lambda t: t.logcumsumexp(0),
                    "nansum": lambda t: t.nansum(0),
                    "aminmax": lambda t: torch.stack(torch.aminmax(t, dim=0)),
                }.items()
            ],
        )


instantiate_device_type_tests(TestReductions, globals(), allow_mps=True, allow_xpu=True)
instantiate_device_type_tests(TestLargeReductions, globals(), allow_mps=True, allow_xpu=True)

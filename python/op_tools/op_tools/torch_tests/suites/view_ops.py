"""Operators that give views: memory and versions are shared, writes and gradients go through."""

from typing import Any

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves

from op_tools.torch_tests.against_cpu import AgainstCpu, facts, samples
from op_tools.torch_tests.opinfo.entry import HOST_ARGUMENTS
from op_tools.torch_tests.opinfo.samples import call_of

# `unsafe_` operators and these give views that torch does not follow.
UNFOLLOWED = ("unsafe_chunk", "unsafe_split", "_unsafe_view", "alias_copy")


def gives_view(op: Any) -> bool:
    """Whether an overload of the operator returns its first argument's memory and does not write to it."""
    packet = getattr(torch.ops.aten, op.aten_name or op.name, None)
    if packet is None or op.name in UNFOLLOWED:
        return False
    schemas = [getattr(packet, name)._schema for name in packet.overloads()]
    first = [schema.arguments[0].alias_info for schema in schemas if schema.arguments]
    return any(alias is not None and not alias.is_write for alias in first)


VIEWS = [op for op in op_db if gives_view(op)]
# What a view is taken of: the tensor itself, its conjugate, its negative view.
BASES = {
    "plain": lambda tensor: tensor,
    "conjugate": torch.conj,
    "negative": torch._neg_view,
    "conjugate's imaginary": lambda tensor: tensor.conj().imag if tensor.is_complex() else tensor,
}


def views_of(call: Any, op: Any, base: str = "plain") -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """The sample's tensor, what the view is taken of, and the views."""
    origin = call.input.detach().clone()
    source = BASES[base](origin)
    found = op(source, *call.args, **call.kwargs)
    return origin, source, [leaf for leaf in tree_leaves(found) if isinstance(leaf, torch.Tensor)]


def overlaps(sample: Any, op: Any) -> bool:
    """Whether elements of the views share a place; what is written to them is then anybody's."""
    places = torch.arange(sample.input.numel()).reshape(sample.input.shape)
    try:
        found = op(places, *sample.args, **sample.kwargs)
    except RuntimeError:
        return False  # an operator of complex numbers
    views = torch.cat([leaf.reshape(-1) for leaf in tree_leaves(found) if isinstance(leaf, torch.Tensor)])
    return views.unique().numel() < views.numel()


class TestViewOperators(AgainstCpu):
    def each(self, device: str, op: Any, dtype: torch.dtype, program: Any, written: bool = True) -> None:
        self.all_same(
            device,
            [
                (str(sample.args), lambda d, s=sample: program(call_of(s, d, op.name in HOST_ARGUMENTS)))
                for sample in samples(op, dtype)
                if isinstance(sample.input, torch.Tensor) and not (written and overlaps(sample, op))
            ],
        )

    @ops(VIEWS, allowed_dtypes=(torch.float32, torch.complex64))
    def test_memory_is_shared(self, device: str, dtype: torch.dtype, op: Any) -> None:
        def program(call: Any) -> Any:
            origin, _, views = views_of(call, op)
            shared = [view.untyped_storage()._cdata == origin.untyped_storage()._cdata for view in views]
            based = [(view._is_view(), view._base is origin) for view in views]
            return shared, based, [facts(view) for view in views]

        self.each(device, op, dtype, program, written=False)

    @ops(VIEWS, allowed_dtypes=(torch.float32,))
    def test_writes_and_versions_go_through(self, device: str, dtype: torch.dtype, op: Any) -> None:
        def program(call: Any) -> Any:
            origin, _, views = views_of(call, op)
            if not views or views[0].untyped_storage()._cdata != origin.untyped_storage()._cdata:
                return "no view"
            view, before = views[-1], origin._version
            origin.mul_(2)
            middle = [view.clone(), view._version - before]
            view.add_(1)
            return [*middle, origin, [v.clone() for v in views], origin._version - before]

        self.each(device, op, dtype, program)

    @ops(VIEWS, allowed_dtypes=(torch.float32,))
    def test_gradients_through_a_view_that_was_written(self, device: str, dtype: torch.dtype, op: Any) -> None:
        def program(call: Any) -> Any:
            leaf = call.input.detach().clone().requires_grad_()
            base = leaf * 2
            views = [v for v in tree_leaves(op(base, *call.args, **call.kwargs)) if isinstance(v, torch.Tensor)]
            views[0].mul_(3)
            total = (base.square()).sum() + sum(view.sum() for view in views)
            return torch.autograd.grad(total, leaf)

        self.each(device, op, dtype, program)

    @ops(VIEWS, allowed_dtypes=(torch.complex64,))
    def test_conjugate_and_negative_bits(self, device: str, dtype: torch.dtype, op: Any) -> None:
        def program(call: Any, base: str) -> Any:
            origin, source, views = views_of(call, op, base)
            resolved = [(view.resolve_conj(), view.resolve_neg(), view.clone()) for view in views]
            written = views[:1]
            for view in written:
                view.mul_(2)
            return [facts(view) for view in views], resolved, origin, source

        for base in BASES:
            self.each(device, op, dtype, lambda call, base=base: program(call, base))


class TestViewRules(AgainstCpu):
    def test_view_as_another_dtype(self, device: str) -> None:
        dtypes = (torch.uint8, torch.int16, torch.float32, torch.int64, torch.complex64, torch.bool)
        shapes = {"plain": (4, 16), "none": (0, 16), "single": ()}

        def program(d: str, shape: tuple[int, ...], source: torch.dtype, target: torch.dtype, step: int) -> Any:
            tensor = torch.arange(64, device=d)[: torch.Size(shape).numel()].reshape(shape).to(source)
            tensor = tensor[..., ::step] if step > 1 and tensor.dim() else tensor
            return facts(tensor.view(target).view(source))

        self.all_same(
            device,
            [
                (f"{name} {source} {target} {step}", lambda d, a=(shape, source, target, step): program(d, *a))
                for name, shape in shapes.items()
                for source in dtypes
                for target in dtypes
                for step in (1, 2)
            ],
        )

    def test_errors_of_views(self, device: str) -> None:
        def leaf_written(d: str) -> Any:
            leaf = torch.ones(3, device=d, requires_grad=True)
            leaf[:2].add_(1)

        def part_of_several_written(d: str) -> Any:
            first, _ = (torch.ones(4, device=d, requires_grad=True) * 2).split(2)
            first.add_(1)

        def overlap_written(d: str) -> Any:
            torch.ones(1, device=d).expand(3).add_(1)

        def without_gradient_made(d: str) -> Any:
            base = torch.ones(4, device=d, requires_grad=True) * 1
            with torch.no_grad():
                view = base[:2]
            view.mul_(2)

        self.all_same(
            device,
            [
                ("shape", lambda d: torch.ones(6, device=d).view(4)),
                ("strides", lambda d: torch.ones(2, 3, device=d).t().view(6)),
                ("dim", lambda d: torch.ones(2, device=d).select(1, 0)),
                ("storage", lambda d: torch.ones(2, device=d).as_strided((3,), (1,))),
                ("view_as_complex", lambda d: torch.view_as_complex(torch.ones(3, 3, device=d))),
                ("imag", lambda d: torch.ones(3, device=d).imag),
                ("leaf", leaf_written),
                ("several", part_of_several_written),
                ("overlap", overlap_written),
                ("no_grad", without_gradient_made),
            ],
        )

    def test_versions(self, device: str) -> None:
        def program(d: str) -> Any:
            base = torch.zeros(4, device=d)
            view, alone = base[1:], base.detach()
            base.add_(1)
            counts = [base._version, view._version, alone._version]
            view.zero_()
            alone.fill_(3)
            with torch.inference_mode():
                inside = torch.ones(2, device=d)
            return counts, [base._version, view._version, alone._version], base, inside.is_inference()

        self.same(device, program)

    def test_views_of_views(self, device: str) -> None:
        def program(d: str) -> Any:
            leaf = torch.arange(24.0, device=d).requires_grad_()
            base = leaf * 1
            view = base.view(2, 3, 4).transpose(0, 2)[1:, :, 0].unflatten(0, (3, 1)).squeeze(1)
            view.mul_(5)
            base.view(4, 6).diagonal().copy_(view.reshape(-1)[:4])
            return facts(view), base, torch.autograd.grad((base * base).sum(), leaf)

        self.same(device, program)

    def test_set_resize_and_storage(self, device: str) -> None:
        def program(d: str) -> Any:
            base = torch.arange(6.0, device=d)
            other = torch.empty(0, device=d).set_(base.untyped_storage(), 2, (2, 2), (2, 1))
            grown = torch.arange(4.0, device=d).resize_(2, 2)
            before = base.untyped_storage().nbytes()
            other.zero_()
            return base, facts(other), grown, before, other.is_set_to(base), base.is_set_to(base)

        self.same(device, program)


instantiate_device_type_tests(TestViewOperators, globals(), allow_mps=True, allow_xpu=True)
instantiate_device_type_tests(TestViewRules, globals(), allow_mps=True, allow_xpu=True)

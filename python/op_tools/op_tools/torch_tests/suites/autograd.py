"""Gradients of first and second order, and the engine's rules: hooks, graphs that are kept, anomalies, errors."""

import threading
from itertools import islice
from typing import Any

import torch
from torch.autograd import Function, forward_ad
from torch.testing._internal.autograd_function_db import autograd_function_db
from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from op_tools.torch_tests.against_cpu import AgainstCpu, samples, seen
from op_tools.torch_tests.opinfo.entry import HOST_ARGUMENTS, Randomness
from op_tools.torch_tests.opinfo.samples import call_of, cotangents

DIFFERENTIABLE = [op for op in op_db if op.supports_autograd and op.supports_gradgrad]
FORWARD = [op for op in op_db if op.supports_forward_ad]
_SAMPLES = 3  # of each operator
_ELEMENTS = 2000  # of a sample's largest tensor; second derivatives of more take long


def second_order(call: Any, op: Any, process: Any) -> Any:
    """The gradients, and the gradients of a sum of them. Random operators and those with integer results give none."""
    leaves = call.leaves()
    outputs = [t for t in tree_leaves(process(call.run(op))) if isinstance(t, torch.Tensor) and t.requires_grad]
    if not outputs or not leaves:
        return "no gradient"
    weights = [w.to(o.device, o.dtype).requires_grad_() for w, o in zip(cotangents(outputs), outputs, strict=True)]
    first = torch.autograd.grad(outputs, leaves, weights, create_graph=True, allow_unused=True)
    kept = [g for g in first if g is not None and g.requires_grad]
    if not kept:
        return list(first)
    total = sum((g * w.to(g.device, g.dtype)).abs().sum() for g, w in zip(kept, cotangents(kept), strict=True))
    second = torch.autograd.grad(total, [*leaves, *weights], allow_unused=True)
    return [g if g is None else g.detach() for g in (*first, *second)]


# A few of each kind, of which the first argument or the first two are differentiated by.
NUMERIC = ("exp", "mul", "matmul", "sum", "cumsum", "index_select", "nn.functional.softplus", "amax", "sigmoid")


def draws(sample: Any, op: Any) -> bool:
    """Whether the operator draws random numbers; devices draw their own."""
    with Randomness() as randomness:
        seen(lambda device: call_of(sample, device).run(op), "cpu")
    return randomness.seen


def small(sample: Any) -> bool:
    tensors = [t for t in tree_leaves((sample.input, sample.args, sample.kwargs)) if isinstance(t, torch.Tensor)]
    return all(t.numel() <= _ELEMENTS for t in tensors)


class TestGradients(AgainstCpu):
    @ops(DIFFERENTIABLE, allowed_dtypes=(torch.float64,))
    def test_second_order(self, device: str, dtype: torch.dtype, op: Any) -> None:
        chosen = [s for s in islice(samples(op, dtype, True), 2 * _SAMPLES) if small(s)][:_SAMPLES]
        chosen = [sample for sample in chosen if not draws(sample, op)]
        if not chosen:
            self.skipTest("the database has no small sample, or the operator draws random numbers")
        self.all_same(
            device,
            [
                (
                    f"{number}",
                    lambda d, s=sample: second_order(
                        call_of(s, d, op.name in HOST_ARGUMENTS), op, s.output_process_fn_grad
                    ),
                )
                for number, sample in enumerate(chosen)
            ],
        )

    @ops(FORWARD, allowed_dtypes=(torch.float64,))
    def test_forward_mode(self, device: str, dtype: torch.dtype, op: Any) -> None:
        chosen = [s for s in islice(samples(op, dtype, True), 2) if small(s)][:1]
        chosen = [sample for sample in chosen if not draws(sample, op)]
        if not chosen:
            self.skipTest("the database has no small sample, or the operator draws random numbers")

        def program(d: str) -> Any:
            call = call_of(chosen[0], d, op.name in HOST_ARGUMENTS)
            if not isinstance(call.input, torch.Tensor) or not call.input.requires_grad:
                return "no tensor to differentiate by"
            with forward_ad.dual_level():
                (tangent,) = cotangents([call.input])
                dual = forward_ad.make_dual(call.input.detach(), tangent.to(d))
                result = op(dual, *call.args, **call.kwargs)
                leaves = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
                return [None if (t := forward_ad.unpack_dual(v).tangent) is None else t.detach() for v in leaves]

        self.same(device, program)

    @ops([op for op in op_db if op.name in NUMERIC], allowed_dtypes=(torch.float64,))
    def test_numeric(self, device: str, dtype: torch.dtype, op: Any) -> None:
        """Against differences of values on the device itself."""
        for sample in islice(samples(op, dtype, True), 2):
            call = call_of(sample, device)

            def run(*leaves, call=call):
                return op(leaves[0], *leaves[1:], *call.args[len(leaves) - 1 :], **call.kwargs)

            leaves = call.leaves()
            torch.autograd.gradcheck(run, leaves, fast_mode=True)
            torch.autograd.gradgradcheck(run, leaves, fast_mode=True)

    @ops(autograd_function_db, allowed_dtypes=(torch.float32,))
    def test_functions_of_one_s_own(self, device: str, dtype: torch.dtype, op: Any) -> None:
        self.all_same(
            device,
            [
                (f"{number}", lambda d, s=sample: second_order(call_of(s, d), op, s.output_process_fn_grad))
                for number, sample in enumerate(samples(op, dtype, True))
            ],
        )


class Cube(Function):
    @staticmethod
    def forward(context: Any, value: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(value)
        return value**3

    @staticmethod
    def backward(context: Any, grad: torch.Tensor) -> torch.Tensor:
        (value,) = context.saved_tensors
        return 3 * value.square() * grad


class TestEngine(AgainstCpu):
    def leaf(self, device: str, *shape: int) -> torch.Tensor:
        count = torch.Size(shape).numel()
        return (torch.arange(count, dtype=torch.float32, device=device) / 3 + 0.5).reshape(shape).requires_grad_()

    def test_hooks(self, device: str) -> None:
        def program(d: str) -> Any:
            leaf, order = self.leaf(d, 3), []
            middle = leaf * 2
            handle = middle.register_hook(lambda g: order.append("first") or g * 10)
            middle.register_hook(lambda g: order.append("second"))
            middle.retain_grad()
            leaf.register_post_accumulate_grad_hook(lambda t: order.append("leaf"))
            middle.grad_fn.register_prehook(lambda g: order.append("node"))
            middle.sum().backward(retain_graph=True)
            handle.remove()
            middle.sum().backward()
            return order, leaf.grad, middle.grad

        self.same(device, program)

    def test_graphs_that_are_kept(self, device: str) -> None:
        def again(d: str, keep: bool) -> Any:
            leaf = self.leaf(d, 3)
            total = (leaf.exp() * leaf).sum()
            total.backward(retain_graph=keep)
            total.backward()
            return leaf.grad

        self.all_same(device, [(str(keep), lambda d, k=keep: again(d, k)) for keep in (True, False)])

    def test_anomaly(self, device: str) -> None:
        def program(d: str) -> Any:
            with torch.autograd.detect_anomaly(check_nan=True):
                leaf = torch.zeros(2, device=d, requires_grad=True)
                (leaf / leaf).sqrt().sum().backward()

        with self.assertWarnsRegex(UserWarning, "Anomaly Detection"):
            self.same(device, program)

    def test_higher_orders(self, device: str) -> None:
        def program(d: str) -> Any:
            leaf = self.leaf(d, 3)
            value, found = leaf.pow(4).sum(), []
            for _ in range(4):
                (grad,) = torch.autograd.grad(value, leaf, create_graph=True)
                found.append(grad.detach())
                value = grad.sum()
            return found

        self.same(device, program)

    def test_functional(self, device: str) -> None:
        run = lambda x: (x.sin() * x.sum()).square()  # noqa: E731
        total = lambda x: run(x).sum()  # noqa: E731
        api = torch.autograd.functional
        self.all_same(
            device,
            [
                ("jacobian", lambda d: api.jacobian(run, self.leaf(d, 3))),
                ("vectorized", lambda d: api.jacobian(run, self.leaf(d, 3), vectorize=True)),
                ("hessian", lambda d: api.hessian(total, self.leaf(d, 3))),
                ("vjp", lambda d: api.vjp(run, self.leaf(d, 3), torch.ones(3, device=d))),
                ("jvp", lambda d: api.jvp(run, self.leaf(d, 3), torch.ones(3, device=d))),
                ("hvp", lambda d: api.hvp(total, self.leaf(d, 3), torch.ones(3, device=d))),
                ("jacrev", lambda d: torch.func.jacrev(run)(self.leaf(d, 3).detach())),
                ("jacfwd", lambda d: torch.func.jacfwd(run)(self.leaf(d, 3).detach())),
                ("func.hessian", lambda d: torch.func.hessian(total)(self.leaf(d, 3).detach())),
                ("vmap of grad", lambda d: torch.func.vmap(torch.func.grad(total))(self.leaf(d, 4, 3).detach())),
            ],
        )

    def test_errors(self, device: str) -> None:
        def saved_then_written(d: str) -> Any:
            leaf = self.leaf(d, 3)
            value = leaf * 1
            result = value.exp()
            result.add_(1)
            result.sum().backward()

        def wrong_shape(d: str) -> Any:
            self.leaf(d, 3).mul(2).backward(torch.ones(4, device=d))

        def other_device(d: str) -> Any:
            self.leaf(d, 3).mul(2).backward(torch.ones(3, device="meta"))

        def grad_of_another_device(d: str) -> Any:
            self.leaf(d, 3).grad = torch.ones(3, device="meta")

        def grad_of_another_dtype(d: str) -> Any:
            self.leaf(d, 3).grad = torch.ones(3, device=d, dtype=torch.float64)

        def unused(d: str) -> Any:
            return torch.autograd.grad(self.leaf(d, 3).sum(), self.leaf(d, 2))

        def in_place_on_a_leaf(d: str) -> Any:
            self.leaf(d, 3).mul_(2)

        def through_numbers(d: str) -> Any:
            return self.leaf(d, 3).detach().long().requires_grad_()

        def within_no_grad(d: str) -> Any:
            with torch.no_grad():
                self.leaf(d, 3).sum().backward()

        def inference_tensor_saved(d: str) -> Any:
            with torch.inference_mode():
                inside = torch.ones(3, device=d)
            return (self.leaf(d, 3) * inside).sum()

        programs = (
            saved_then_written,
            wrong_shape,
            other_device,
            grad_of_another_device,
            grad_of_another_dtype,
            unused,
            in_place_on_a_leaf,
            through_numbers,
            within_no_grad,
            inference_tensor_saved,
        )
        self.all_same(device, [(program.__name__, program) for program in programs])

    def test_saved_tensors(self, device: str) -> None:
        def packed(d: str) -> Any:
            leaf, seen = self.leaf(d, 3), []
            with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t.shape) or t.cpu(), lambda t: t.to(d)):
                total = (leaf.exp() * leaf).sum()
            total.backward()
            return leaf.grad, seen

        def on_cpu(d: str) -> Any:
            leaf = self.leaf(d, 3)
            with torch.autograd.graph.save_on_cpu():
                total = (leaf.exp() * leaf).sum()
            total.backward()
            return leaf.grad

        def checkpointed(d: str, reentrant: bool) -> Any:
            leaf = self.leaf(d, 4, 4)
            torch.manual_seed(3)
            run = lambda x: torch.tanh(x @ x).cumsum(0)  # noqa: E731
            checkpoint(run, leaf, use_reentrant=reentrant).sum().backward()
            return leaf.grad

        self.all_same(
            device,
            [
                ("packed", packed),
                ("on the CPU", on_cpu),
                ("checkpoint", lambda d: checkpointed(d, False)),
                ("reentrant checkpoint", lambda d: checkpointed(d, True)),
            ],
        )

    def test_own_functions_and_threads(self, device: str) -> None:
        def own(d: str) -> Any:
            leaf = self.leaf(d, 3)
            (first,) = torch.autograd.grad(Cube.apply(leaf).sum(), leaf, create_graph=True)
            return first, torch.autograd.grad(first.sum(), leaf)

        def threads(d: str) -> Any:
            leaf = self.leaf(d, 16)
            runs = [threading.Thread(target=lambda: (leaf * 2).sum().backward()) for _ in range(4)]
            for run in runs:
                run.start()
            for run in runs:
                run.join()
            return leaf.grad

        def across_devices(d: str) -> Any:
            leaf = self.leaf("cpu", 3)
            (leaf.to(d).exp().cpu() * leaf).sum().backward()
            return leaf.grad

        def accumulated(d: str) -> Any:
            leaf = self.leaf(d, 3)
            for _ in range(3):
                (leaf * leaf).sum().backward()
            grad = leaf.grad
            leaf.grad = None
            (leaf * leaf).sum().backward(inputs=[leaf])
            return grad, leaf.grad

        self.all_same(device, [(p.__name__, p) for p in (own, threads, across_devices, accumulated)])

    def test_modes(self, device: str) -> None:
        def program(d: str) -> Any:
            leaf, found = self.leaf(d, 3), []
            for mode in (torch.no_grad, torch.enable_grad, torch.inference_mode):
                with mode():
                    value = leaf * 2
                    found.append((value.requires_grad, value.is_inference(), value.is_leaf))
            frozen = leaf.detach()
            frozen.add_(1)
            return found, leaf, leaf._version, torch.is_grad_enabled()

        self.same(device, program)


instantiate_device_type_tests(TestGradients, globals(), allow_mps=True, allow_xpu=True)
instantiate_device_type_tests(TestEngine, globals(), allow_mps=True, allow_xpu=True)

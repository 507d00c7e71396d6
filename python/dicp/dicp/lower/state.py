"""What is known while a graph becomes a program, and the ways to add to it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch import fx

from dicp.dims import dim, expanded
from dicp.dtypes import STORAGE, compute_dtype
from dicp.loops import collapsed
from dicp.operators import Table
from dicp.program import Dim, Index, Instruction, Kernel, Root, RootKind, Scalar, Step, View, extent


class Unsupported(Exception):
    """The graph cannot become a program; it runs node by node. The message is one sentence."""


class NothingOnDevice(Unsupported):
    """The graph is none of the device's."""


@dataclass(slots=True, kw_only=True)
class State:
    """The values of the nodes so far, and the instructions that make them."""

    table: Table
    served: Callable[[str], bool]  # whether the vendor's library has a function
    device: torch.device
    values: dict[fx.Node, Any] = field(default_factory=dict)
    numbers: dict[fx.Node, sympy.Expr] = field(default_factory=dict)  # what tensors of the host are, beside their slots
    read: set[sympy.Symbol] = field(default_factory=set)  # of those, what kernels need
    instructions: list[Instruction] = field(default_factory=list)
    constants: list[torch.Tensor] = field(default_factory=list)
    slots: int = 0
    _roots: dict[int, Root] = field(default_factory=dict)  # by the storage of torch's trace

    def number(self, node: fx.Node) -> sympy.Expr | None:
        """The number that a tensor of the host is; None for any other value."""
        value = self.values[node]
        return value if isinstance(value, sympy.Expr) else self.numbers.get(node)

    def plain(self, value: torch.Tensor) -> bool:
        """Whether the program can say where the tensor's elements lie: strided, on its device, of known sizes."""
        return value.device == self.device and value.layout == torch.strided and not unbacked(value)

    def know(self, value: Any, made: Any) -> None:
        """Remembers whose memory the results of a node have.

        The rule of aliases: tensors of one storage in torch's trace are views over one root. Raises Unsupported where
        they would not be.
        """
        for tensor, view in zip(listed(value), listed(made), strict=False):
            if not isinstance(tensor, torch.Tensor) or not isinstance(view, View):
                continue
            storage = storage_of(tensor)
            if storage is not None and not self._roots.setdefault(storage, view.root).may_be(view.root):
                raise Unsupported(f"a tensor of {tuple(tensor.shape)} shares memory with another in a way unknown here")

    def new(self, value: torch.Tensor) -> View:
        """Memory of the program's own for a result."""
        view = view_over(Root(kind=RootKind.ARENA), value, 0)
        view.root.bytes = extent(view.sizes, view.strides) * value.element_size()
        return view

    def slot(self, value: torch.Tensor, root: Root | None = None) -> View:
        """A tensor that only islands touch."""
        self.slots += 1
        number = self.slots - 1
        root = root or Root(kind=RootKind.SLOT, index=-1, offset=number)
        return View(root=root, dtype=value.dtype, sizes=(), strides=(), slot=number)

    def scalar(self, arg: Any) -> Scalar | None:
        """A number of the graph; None for anything else."""
        if isinstance(arg, fx.Node):
            arg = self.values[arg]
        return Scalar(value=arg) if isinstance(arg, bool | int | float | sympy.Expr) else None

    def stored(
        self, node: fx.Node, kernel: str, operands: Sequence[View | Scalar | Index], value: torch.Tensor
    ) -> View:
        """The result of a kernel of one step."""
        target = self.new(value)
        self.kernel(node, kernel, operands, target, value.dtype)
        return target

    def kernel(
        self, node: fx.Node, kernel: str, operands: Sequence[View | Scalar | Index], target: View, compute: torch.dtype
    ) -> None:
        """A kernel of one step that writes `target`."""
        sizes = target.sizes
        read = tuple(expanded(o, sizes) if isinstance(o, View) else o for o in operands)
        step = Step(
            kernel=kernel,
            operands=read,
            compute=compute_dtype(compute),
            dtype=target.dtype,
            rounds=kernel == "copy",
            name=node.name,
        )
        self.instructions.append(collapsed(Kernel(sizes=sizes, results=[(target, step)], names=[node.name])))


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors among the results of a node."""
    for item in listed(value):
        if isinstance(item, torch.Tensor):
            yield item


def listed(value: Any) -> Sequence[Any]:
    """The results of a node, also if it has one."""
    return value if isinstance(value, list | tuple) else (value,)


def storage_of(tensor: torch.Tensor) -> int | None:
    """Which memory a traced tensor has; None where it has none that others could share."""
    return int(tensor.untyped_storage()._cdata) if tensor.layout == torch.strided else None


def computes(value: Any) -> bool:
    """Whether kernels have a type for the elements of a tensor or a view."""
    return value.dtype in STORAGE


def unbacked(tensor: torch.Tensor) -> bool:
    """Whether only data decide a size."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    return bool(free_unbacked_symbols(tensor))


def overlaps(tensor: torch.Tensor) -> bool:
    """Whether two elements are one, of the sizes that the graph was traced with."""
    reach = 0
    for stride, size in sorted(
        (hint(stride), hint(size)) for stride, size in zip(tensor.stride(), tensor.size(), strict=True)
    ):
        if size > 1:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False


def hint(value: Any) -> int:
    """A length or stride of the sizes that the graph was traced with."""
    return int(value.node.hint) if isinstance(value, torch.SymInt) and value.node.hint is not None else int(value)


def view_over(root: Root, value: torch.Tensor, offset: Dim) -> View:
    """A traced tensor over a root."""
    return View(
        root=root,
        dtype=value.dtype,
        sizes=tuple(dim(size) for size in value.size()),
        strides=tuple(dim(stride) for stride in value.stride()),
        offset=offset,
        conjugate=value.is_conj(),
        negative=value.is_neg(),
    )


def is_slot(value: Any) -> bool:
    """Whether only islands touch the tensor."""
    return isinstance(value, View) and value.slot >= 0


def is_lazy(value: Any) -> bool:
    """Whether what lies in memory is not yet what the tensor says, or nobody but islands knows where it lies."""
    return isinstance(value, View) and (value.slot >= 0 or value.conjugate or value.negative)

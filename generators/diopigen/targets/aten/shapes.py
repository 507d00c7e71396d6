"""Shapes of outputs in C++: the schema's rules become calls of runtime_cpp/torch/shapes/shapes.h."""

from dataclasses import dataclass
from typing import assert_never

from diopigen.model.aten import Absent, FromArg, FromDerive, FromLiteral, FromReturn, Overload, Source
from diopigen.model.op import Function, Op, Param
from diopigen.model.type import Length, Shape, ShapeArithmetic, ShapeCall, ShapeName, TensorType, ValueType
from diopigen.targets.aten.arguments import derived, literal


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputShape:
    """What the outputs of a plain operator are allocated with."""

    like: str | None  # e.g. "self": the tensor whose shape and strides the output takes; None for a rule
    sizes: str  # e.g. "shape::broadcast(self.sizes(), other.sizes())"
    operands: tuple[str, ...] = ()  # e.g. ("self", "other"): what is broadcast, whose order of dimensions it takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """Spells the shape rules of one function for one overload."""

    op: Op
    function: Function
    overload: Overload
    sources: dict[str, Source]

    def output(self, param: Param) -> OutputShape | None:
        """The shape of an output; None where a name of the rule is not to be had from the operator."""
        shape = param.shape or self._gradient(param)
        if shape is None:
            return None
        sizes = self._sizes(shape)
        if sizes is None:
            return None
        name = self._only(shape)
        operands = self._operands(shape) if name is None else ()
        return OutputShape(like=None if name is None else self._tensor(name), sizes=sizes, operands=operands)

    def _operands(self, shape: Shape) -> tuple[str, ...]:
        """The tensors that are broadcast, in the order of the rule."""
        if not isinstance(shape, ShapeCall) or shape.rule != "broadcast":
            return ()
        found = [self._tensor(part.name) for part in shape.args if isinstance(part, ShapeName)]
        return tuple(name for name in found if name is not None)

    def _only(self, shape: Shape) -> str | None:
        """The tensor that alone gives the shape: itself, or broadcast with numbers, which have none."""
        if isinstance(shape, ShapeName):
            return shape.name
        if shape.rule != "broadcast":
            return None
        spelled = {part.name: self._named(part.name) for part in shape.args if isinstance(part, ShapeName)}
        tensors = [name for name, sizes in spelled.items() if sizes != "at::IntArrayRef()"]
        return tensors[0] if len(tensors) == 1 else None

    def _gradient(self, param: Param) -> Shape | None:
        """A gradient is shaped like its argument."""
        if self.op.backward is None:
            return None
        for (name, _), out in zip(self.op.backward.grads, self.function.outs, strict=False):
            if out.arg == param.arg:
                return ShapeName(name=name)
        return None

    def _sizes(self, shape: Length) -> str | None:
        match shape:
            case int():
                return str(shape)
            case ShapeArithmetic():
                sides = [self._sizes(side) for side in (shape.left, shape.right)]
                return None if None in sides else f"({sides[0]} {shape.operator} {sides[1]})"
            case ShapeName():
                return self._named(shape.name)
            case ShapeCall():
                args = [self._sizes(a) for a in self._completed(shape)]
                known = [a for a in args if a is not None]
                return f"shape::{shape.rule}({', '.join(known)})" if len(known) == len(args) else None
            case _:
                assert_never(shape)

    def _completed(self, shape: ShapeCall) -> tuple[Length, ...]:
        """A reduction of the contract has no `keepdim`, since its output shows it; ATen's has."""
        wanted = ShapeName(name="keepdim")
        if shape.rule == "reduced" and len(shape.args) == 2 and self.overload.arg("keepdim") is not None:
            return (*shape.args, wanted)
        return shape.args

    def _named(self, name: str) -> str | None:
        """An argument as a shape rule takes it: the sizes of a tensor, any other value as it is."""
        param = self._param(name)
        source = self.sources.get(param.name) if param is not None else None
        kind = param.type if param is not None else None
        match source:
            case FromArg():
                return self._argument(source.name)
            case FromDerive():
                return derived(source.expr)
            case FromLiteral():
                return literal(kind, source.value) if isinstance(kind, ValueType) else None
            case Absent():
                return "at::IntArrayRef()" if isinstance(kind, TensorType) else "std::nullopt"
            case FromReturn() | None:
                pass
        if self.overload.arg(name) is not None:
            return self._argument(name)
        sizes = self.sources.get(f"{name}_sizes")
        if isinstance(sizes, FromDerive):
            return derived(sizes.expr)
        given = sizes.name if isinstance(sizes, FromArg) else f"{name}_sizes"
        return given if self.overload.arg(given) is not None else None

    def _argument(self, name: str) -> str:
        arg = self.overload.arg(name)
        assert arg is not None
        if arg.type == "Tensor":
            return f"{name}.sizes()"
        if arg.type == "Tensor?":
            return f"sizes_of({name})"
        return "at::IntArrayRef()" if self._is_tensor(name) else name

    def _is_tensor(self, name: str) -> bool:
        """An argument that is a number here and a tensor in the op's main form broadcasts as a 0-d tensor."""
        return any(
            a.scalar
            and isinstance(self.sources.get(a.name), FromArg)
            and getattr(self.sources[a.name], "name", None) == name
            for a in self.op.args
        )

    def _tensor(self, name: str) -> str | None:
        """The C++ name of the tensor `name`, if it is one that is never absent."""
        param = self._param(name)
        source = self.sources.get(param.name) if param is not None else None
        given = source.name if isinstance(source, FromArg) else name
        arg = self.overload.arg(given)
        return given if arg is not None and arg.type == "Tensor" else None

    def _param(self, name: str) -> Param | None:
        """The parameter that carries the op's argument `name`; a backward function may call it otherwise."""
        written = {p.name for p in self.function.outs}
        params = [p for p in self.function.params if p.name not in written]
        return next((p for p in params if p.name == name), None) or next((p for p in params if p.arg == name), None)

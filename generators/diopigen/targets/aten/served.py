"""A binding beside the functions that serve it, and the names of what it writes."""

from dataclasses import dataclass, replace

from diopigen.model.aten import Binding, FromDerive, Overload, Source
from diopigen.model.op import Function, Param, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A binding with the functions behind its routes."""

    binding: Binding
    functions: tuple[Function, ...]  # one for each route
    alone: bool = True  # no other op serves the overload

    def by_op(self) -> tuple["Served", ...]:
        """A part for each op: its functions, each with its own shapes of outputs."""
        ops = dict.fromkeys(route.op for route in self.binding.routes)
        return tuple(self._part(op) for op in ops) if len(ops) > 1 else (self,)

    def _part(self, op: str) -> "Served":
        pairs = zip(self.binding.routes, self.functions, strict=True)
        own = [(route, function) for route, function in pairs if route.op == op]
        binding = replace(self.binding, op=op, routes=tuple(route for route, _ in own))
        return Served(binding=binding, functions=tuple(function for _, function in own), alone=False)

    @property
    def overload(self) -> Overload:
        return self.binding.overload

    @property
    def main(self) -> Function:
        """The last route's function: the one that takes everything."""
        return self.functions[-1]

    @property
    def sources(self) -> dict[str, Source]:
        """What feeds each parameter of the main function, and what is derived for the shapes of its outputs."""
        route = self.binding.routes[-1]
        return {**dict(route.args), **{name: FromDerive(expr=expr) for name, expr in route.shapes}}

    @property
    def elementwise(self) -> bool:
        return self.main.kernel is not None

    @property
    def promotes(self) -> bool:
        """Inputs of several dtypes meet in a common one, which TensorIterator or the wrapper computes."""
        plain = self.overload.cpp.meta is None
        return self.overload.cpp.iterator or (plain and self.elementwise and not self.overload.inplace)


def outputs(served: Served) -> tuple[tuple[Param, str], ...]:
    """The outputs of the main function with their C++ names; none for an in-place function."""
    taken = {n for _, n in served.overload.cpp.params}
    return tuple(
        (p, f"{p.name}_out" if p.name in taken and not _is_out(served, p.name) else p.name)
        for p in served.main.outs
        if not served.overload.inplace or p.role in (Role.HOST_OUT, Role.CALLEE_OUT)
    )


def _is_out(served: Served, name: str) -> bool:
    arg = served.overload.arg(name)
    return arg is not None and arg.out


def written_tensors(served: Served) -> tuple[str, ...]:
    """The tensors that a call writes, by their names in the call."""
    if served.overload.inplace:
        return tuple(a.name for a in served.overload.args if a.mutated)
    return tuple(name for p, name in outputs(served) if p.role is Role.OUT)


def output_name(served: Served, function: Function, param: Param) -> str:
    """The C++ name of an output: that of the main function's output at the same place."""
    index = function.outs.index(param)
    if served.overload.inplace and param.role is Role.OUT:
        return [a.name for a in served.overload.args if a.mutated][index]
    return outputs(served)[index][1]

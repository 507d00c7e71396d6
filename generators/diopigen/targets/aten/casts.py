"""Tensors of one C function as its arguments: which dtype each is cast to, in each kind of wrapper."""

from diopigen.model.aten import FromArg, Route, Source
from diopigen.model.op import Function, Param, Role
from diopigen.model.type import Accumulate, Element, Fixed, Var
from diopigen.targets.aten.arguments import Argument
from diopigen.targets.aten.elements import Elements, variables
from diopigen.targets.aten.served import Served, output_name, written_tensors


class Casts:
    """The dtype of each tensor of one route, by the kind of wrapper: iterator, other structured, or plain."""

    def __init__(self, served: Served, route: Route, function: Function) -> None:
        self.served = served
        self.common = False  # whether anything was cast to the common dtype
        self.read: list[str] = []  # the arguments that `numbers` looks at
        self.function = function
        self.sources = dict(route.args)
        self.elements = Elements(
            function=function,
            common="common" if self.served.promotes else None,
            inplace=self.served.overload.inplace,
        )
        self.linked = self.elements.linked()

    def output(self, param: Param) -> Argument:
        name = output_name(self.served, self.function, param)
        local = f"{param.name}_arg"
        if param.tensor is not None and param.tensor.count is not None:
            return Argument(lines=(f"OutList {local}({name});",), call=local, counted=self.ends_list(param))
        kind = "Out"
        if self.served.overload.inplace and not (self.served.elementwise or self.served.overload.pointwise):
            kind = "Aside"
        dtype = self._written(param)
        return Argument(lines=(f"const {kind} {local}({', '.join(v for v in (name, dtype) if v)});",), call=local)

    def _written(self, param: Param) -> str | None:
        assert param.tensor is not None
        if self.served.overload.cpp.meta is not None and not self.served.overload.cpp.iterator:
            return None
        spelled = self.elements.output(param, self._known())
        if spelled is not None and "common" in spelled and self.served.promotes:
            if self.served.overload.cpp.iterator:
                spelled = "common"
            self.common = True
        return spelled if self.served.promotes or self.served.overload.cpp.meta is None else None

    def inout(self, param: Param, given: str) -> Argument:
        local = f"{param.name}_arg"
        if param.tensor is not None and param.tensor.count is not None:
            return Argument(lines=(f"OutList {local}({given});",), call=local, counted=self.ends_list(param))
        cast = self.served.promotes and param.tensor is not None and self._is_linked(param.tensor.element)
        if cast and given in written_tensors(self.served):
            self.common = True
            return Argument(lines=(f"const InOut {local}({given}, common);",), call=local)
        return Argument(lines=(f"const InOut {local}({given});",), call=local)

    def ends_list(self, param: Param) -> bool:
        """Whether `param` is a list after which its count stands: the last one that names that count."""
        count = param.tensor.count if param.tensor is not None else None
        named = [p for p in self.function.params if p.tensor is not None and p.tensor.count == count]
        return count is not None and param is named[-1]

    def input(self, param: Param) -> str | None:
        """The dtype that an input is cast to; None where it is taken as it is."""
        assert param.tensor is not None
        element = param.tensor.element
        targets = (p.tensor for p in self.function.params if p.role in (Role.OUT, Role.INOUT))
        if any(tensor is not None and tensor.count is not None for tensor in targets):
            return None  # each tensor of a list has a dtype of its own
        if isinstance(element, Fixed) or not self._is_linked(element):
            return None
        if self.served.promotes:
            self.common = True
            return "common"
        if not isinstance(element, Var):  # e.g. statistics, which are wider than what they are of
            return self.elements.output(param, self._known())
        written = self._from_outputs(element)
        if written is not None:
            return written
        first = self._first(element)
        return None if first is None or first == self._given(param) else f"{first}.scalar_type()"

    def operands(self) -> tuple[str, ...]:
        """The tensors that torch's own kernel wants in one dtype, or computes otherwise than by a cast."""
        targets = [p for p in self.function.params if p.role in (Role.OUT, Role.INOUT)]
        if (
            self.served.promotes
            or not self.served.overload.host
            or any(p.tensor is not None and p.tensor.count for p in targets)
        ):
            return ()
        read = [self._given(p) for p in self.function.params if self._meets_others(p)]
        written = written_tensors(self.served)[:1] if self.served.overload.inplace else ()
        names = tuple(dict.fromkeys((*written, *filter(None, read)))) if any(read) else ()
        return names if len(names) > 1 else ()

    def numbers(self) -> str | None:
        """The dtype that numbers are of: the common one, or that of the tensor that is written."""
        if self.served.promotes:
            self.common = True
            return "common"
        name = next(iter(written_tensors(self.served)), None)
        if self.served.overload.inplace and name is not None:
            self.read.append(name)
        if name is None or self._is_list(name):
            return None
        return f"{name}.scalar_type()"

    def _is_list(self, name: str) -> bool:
        return any(
            p.tensor is not None and p.tensor.count is not None
            for p in self.function.params
            if p.role in (Role.OUT, Role.INOUT)
        ) or any(a.name == name and a.type != "Tensor" for a in self.served.overload.args)

    def _meets_others(self, param: Param) -> bool:
        tensor = param.tensor if param.role in (Role.IN, Role.INOUT) else None
        return (
            tensor is not None
            and tensor.count is None
            and isinstance(tensor.element, Var)
            and self._is_linked(tensor.element)
        )

    def _is_linked(self, element: Element) -> bool:
        return any(v in self.linked for v in variables(element))

    def _from_outputs(self, element: Element) -> str | None:
        """Structured outputs have their dtype from torch's meta function; inputs follow it."""
        if self.served.overload.inplace and not self.served.promotes:
            target = next(iter(written_tensors(self.served)))
            arg = self.served.overload.arg(target)
            one = f"first_of({target})" if arg is not None and arg.type == "Tensor[]" else target
            return f"{one}.scalar_type()"
        if self.served.overload.cpp.meta is None:
            return None
        for param in self.function.outs:
            if param.tensor is None or param.type.optional:
                continue
            if set(variables(param.tensor.element)) & set(variables(element)):
                name = output_name(self.served, self.function, param)
                if isinstance(param.tensor.element, Accumulate):
                    first = self._first(element)
                    return f"summand_type({first}, {name})" if first is not None else None
                return f"{name}.scalar_type()"
        return None

    def _first(self, element: Element) -> str | None:
        """The first tensor argument with a variable of `element`."""
        wanted = set(variables(element))
        for param in self.function.params:
            given = self._given(param)
            if not given or param.tensor is None or param.type.optional or param.role not in (Role.IN, Role.INOUT):
                continue
            if set(variables(param.tensor.element)) & wanted:
                return given if param.tensor.count is None else f"first_of({given})"
        return None

    def _given(self, param: Param) -> str:
        source = self.sources[param.name]
        return source.name if isinstance(source, FromArg) else ""

    def _known(self) -> dict[str, str]:
        return known_dtypes(self.function, self.sources)


def known_dtypes(function: Function, sources: dict[str, Source]) -> dict[str, str]:
    """The dtype of each variable: that of the first input with it."""
    found: dict[str, str] = {}
    for param in function.params:
        source = sources[param.name]
        if param.role not in (Role.IN, Role.INOUT) or param.tensor is None or param.type.optional:
            continue
        if isinstance(param.tensor.element, Var) and isinstance(source, FromArg):
            tensor = source.name if param.tensor.count is None else f"first_of({source.name})"
            found.setdefault(param.tensor.element.name, f"{tensor}.scalar_type()")
    return found

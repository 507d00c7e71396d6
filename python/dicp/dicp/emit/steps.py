"""The steps of a kernel as statements of C++: where operands lie, what is loaded, computed and stored."""

import math

import sympy

from dicp.dims import same
from dicp.dtypes import STORAGE, compute_dtype
from dicp.emit.levels import is_zero
from dicp.emit.numbers import Numbers
from dicp.program import Dim, Index, Kernel, Scalar, Step, View
from diopigen.records.operators import KernelText


def functor(name: str, text: KernelText) -> str:
    """The expression of an operator as a function template."""
    result = "bool" if text.boolean else "C"
    params = ", ".join(f"C {param}" for param in text.params)
    return (
        f"struct {functor_name(name)} {{\n"
        f"    template <class C>\n"
        f"    static DIOPI_HD {result} apply({params}) {{\n"
        f"        return {text.body};\n"
        f"    }}\n"
        f"}};\n"
    )


def functor_name(kernel: str) -> str:
    return "Op_" + kernel.replace(".", "_")


class StepPrinter:
    """Names what a kernel reads, computes and writes, and spells each of its steps."""

    def __init__(self, kernel: Kernel, numbers: Numbers) -> None:
        self.kernel = kernel
        self.columns: Dim = kernel.sizes[-1] if kernel.sizes else 1
        self.views: dict[int, tuple[str, View]] = {}
        self.names: dict[int, str] = {}  # of each value that is read or computed
        self._numbers = numbers
        self._members: list[tuple[str, str, str]] = []  # type, name, initializer
        self._table: dict[int, str] = {}
        written = {id(view) for view in kernel.writes}
        for view in (*kernel.writes, *(v for v in kernel.reads if id(v) not in written)):
            self._add_view(view, id(view) in written)
        for value in (*kernel.reads, *kernel.steps):
            self.names[id(value)] = f"{'x' if isinstance(value, View) else 'v'}{len(self.names)}"

    def _add_view(self, view: View, written: bool) -> None:
        name = f"p{len(self.views)}"
        self.views[id(view)] = (name, view)
        offset = f"{self._numbers.text(view.offset)} * int64_t{{{view.dtype.itemsize}}}"
        address = f"address(run, {{root:{id(view.root)}}}, {offset})"
        self._members.append((f"{'' if written else 'const '}{STORAGE[view.dtype]}*", name, address))

    def number(self, value: Dim) -> str:
        """A size or stride inside the kernel; what follows from the symbols is a member."""
        if isinstance(value, int):
            return str(value)
        at = self._numbers.place(value)
        if at not in self._table:
            self._table[at] = f"n{at}"
            kind = "int64_t" if value.is_integer else "double"
            self._members.append((kind, f"n{at}", self._numbers.text(value)))
        return self._table[at]

    def places(self) -> list[str]:
        """The position of the row, and where it begins in each operand."""
        rows = self.kernel.sizes[:-1]
        lines: list[str] = []
        rest = "row"
        for d in range(len(rows) - 1, -1, -1):
            if d == 0:
                lines.append(f"[[maybe_unused]] const int64_t d{d} = {rest};")
            else:
                size = self.number(rows[d])
                lines.append(f"[[maybe_unused]] const int64_t d{d} = {rest} % {size};")
                lines.append(f"const int64_t rest{d} = {rest} / {size};")
                rest = f"rest{d}"
        for name, view in self.views.values():
            strides = [(d, stride) for d, stride in enumerate(view.strides[:-1]) if not is_zero(stride)]
            terms = "".join(f" + d{d} * {self.number(stride)}" for d, stride in strides)
            lines.append(f"auto* const {name}_row = {name}{terms};")
        return lines

    def _at(self, view: View) -> str:
        stride: Dim = view.strides[-1] if view.strides else 0
        if is_zero(stride):
            return "0"
        return "j" if same(stride, 1) else f"j * {self.number(stride)}"

    def load(self, view: View) -> str:
        kind = STORAGE[compute_dtype(view.dtype)]
        name, _ = self.views[id(view)]
        return f"const {kind} {self.names[id(view)]} = load<{kind}>({name}_row[{self._at(view)}]);"

    def computed(self, step: Step) -> str:
        return f"const {STORAGE[compute_dtype(step.dtype)]} {self.names[id(step)]} = {self._step(step)};"

    def store(self, view: View, step: Step) -> str:
        name, _ = self.views[id(view)]
        return f"{name}_row[{self._at(view)}] = kernels::cast<{STORAGE[view.dtype]}>({self.names[id(step)]});"

    def _step(self, step: Step) -> str:
        result = STORAGE[compute_dtype(step.dtype)]
        compute = STORAGE[step.compute]
        if step.kernel == "copy":
            (given,) = step.operands
            value = self.operand(given, None)
            if isinstance(given, Scalar):
                return f"kernels::cast<{result}>({self._literal(given, result)})"
            return f"rounded<{STORAGE[step.dtype]}>({value})"
        operands = ", ".join(self.operand(o, compute) for o in step.operands)
        return f"kernels::cast<{result}>({functor_name(step.kernel)}::apply<{compute}>({operands}))"

    def operand(self, operand: View | Step | Scalar | Index, kind: str | None) -> str:
        match operand:
            case Scalar():
                return self._literal(operand, kind or "double")
            case Index():
                return f"{kind}(row * {self.number(self.columns)} + j)"
            case _:
                name = self.names[id(operand)]
                own = STORAGE[compute_dtype(operand.dtype)]
                return name if kind in (None, own) else f"kernels::cast<{kind}>({name})"

    def _literal(self, scalar: Scalar, kind: str) -> str:
        value = scalar.value
        if isinstance(value, sympy.Expr):
            return f"static_cast<{kind}>({self.number(value)})"
        return f"static_cast<{kind}>({number_literal(value)})"


def number_literal(value: bool | int | float) -> str:
    """A number in C++."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return "INT64_MIN" if value == -(2**63) else f"int64_t{{{value}}}"
    if math.isnan(value):
        return "math::quiet_nan<double>"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}math::infinity<double>"
    return repr(float(value))

"""Fused kernels as C++: a struct of pointers with a loop over a stretch of one row."""

import math
from collections.abc import Sequence

import sympy

from dicp.dims import same
from dicp.dtypes import STORAGE, compute_dtype
from dicp.emit.numbers import Numbers
from dicp.operators import KernelText
from dicp.program import Dim, Index, Kernel, Scalar, Step, View, product


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


_STRETCH = "[[maybe_unused]] int64_t row, int64_t begin, int64_t end"


class KernelPrinter:
    """Prints one kernel. `struct` is its definition, `launch` the expression that runs it."""

    def __init__(self, index: int, kernel: Kernel, numbers: Numbers) -> None:
        self._kernel, self._numbers = kernel, numbers
        self._name = f"Kernel{index}"
        self._views: dict[int, tuple[str, View]] = {}
        self._members: list[tuple[str, str, str]] = []  # type, name, initializer
        self._table: dict[int, str] = {}
        self.struct = ""
        self.launch = ""
        self._print()

    def _print(self) -> None:
        kernel = self._kernel
        written = {id(view) for view in kernel.writes}
        for view in (*kernel.writes, *(v for v in kernel.reads if id(v) not in written)):
            name = f"p{len(self._views)}"
            self._views[id(view)] = (name, view)
            const = "" if id(view) in written else "const "
            root = f"address(run, {{root:{id(view.root)}}}, {self._offset(view)})"
            self._members.append((f"{const}{STORAGE[view.dtype]}*", name, root))
        columns: Dim = kernel.sizes[-1] if kernel.sizes else 1
        rows = kernel.sizes[:-1]
        body = self._body(rows, columns)
        members = "".join(f"    {kind} {name};\n" for kind, name, _ in self._members)
        shape = ", ".join(str(size) for size in kernel.sizes)
        self.struct = (
            f"// {', '.join(kernel.names)}: ({shape})\n"
            f"struct {self._name} {{\n{members}\n"
            f"    DIOPI_HD DIOPI_FLATTEN void operator()({_STRETCH}) const {{\n"
            f"{body}    }}\n}};\n"
        )
        values = ", ".join(f"static_cast<{kind}>({value})" for kind, _, value in self._members)
        self.launch = (
            f"launch_runs(run->stream, {self._numbers.text(product(rows))}, {self._numbers.text(columns)}, "
            f"{self._name}{{{values}}})"
        )

    def _offset(self, view: View) -> str:
        return f"{self._numbers.text(view.offset)} * int64_t{{{view.dtype.itemsize}}}"

    def _number(self, value: Dim) -> str:
        """A size or stride inside the kernel; what follows from the symbols is a member."""
        if isinstance(value, int):
            return str(value)
        at = self._numbers.place(value)
        if at not in self._table:
            self._table[at] = f"n{at}"
            self._members.append(("int64_t", f"n{at}", f"t[{at}]"))
        return self._table[at]

    def _body(self, rows: Sequence[Dim], columns: Dim) -> str:
        lines: list[str] = []
        rest = "row"
        for d in range(len(rows) - 1, -1, -1):
            size = self._number(rows[d])
            if d == 0:
                lines.append(f"[[maybe_unused]] const int64_t d{d} = {rest};")
            else:
                lines.append(f"[[maybe_unused]] const int64_t d{d} = {rest} % {size};")
                lines.append(f"const int64_t rest{d} = {rest} / {size};")
                rest = f"rest{d}"
        for name, view in self._views.values():
            terms = [
                f"d{d} * {self._number(stride)}"
                for d, stride in enumerate(view.strides[:-1])
                if not (isinstance(stride, int) and stride == 0)
            ]
            lines.append(f"auto* const {name}_row = {name}{''.join(f' + {term}' for term in terms)};")
        still: list[str] = []
        inner: list[str] = []
        names: dict[int, str] = {}
        for view in self._kernel.reads:
            name, _ = self._views[id(view)]
            local = f"x{len(names)}"
            names[id(view)] = local
            kind = STORAGE[compute_dtype(view.dtype)]
            stride: Dim = view.strides[-1] if view.strides else 0
            if isinstance(stride, int) and stride == 0:
                still.append(f"const {kind} {local} = load<{kind}>({name}_row[0]);")
            else:
                at = "j" if same(stride, 1) else f"j * {self._number(stride)}"
                inner.append(f"const {kind} {local} = load<{kind}>({name}_row[{at}]);")
        for step in self._kernel.steps():
            local = f"v{len(names)}"
            inner.append(f"const {STORAGE[compute_dtype(step.dtype)]} {local} = {self._step(step, names, columns)};")
            names[id(step)] = local
        for view, step in self._kernel.results:
            name, _ = self._views[id(view)]
            stride = view.strides[-1] if view.strides else 0
            at = "j" if same(stride, 1) else f"j * {self._number(stride)}"
            inner.append(f"{name}_row[{at}] = kernels::cast<{STORAGE[view.dtype]}>({names[id(step)]});")
        text = [*lines, *still, "DIOPI_INDEPENDENT", "for (int64_t j = begin; j < end; ++j) {"]
        text += [f"    {line}" for line in inner] + ["}"]
        return "".join(f"        {line}\n" for line in text)

    def _step(self, step: Step, names: dict[int, str], columns: Dim) -> str:
        result = STORAGE[compute_dtype(step.dtype)]
        compute = STORAGE[step.compute]
        if step.kernel == "copy":
            (given,) = step.operands
            value = self._operand(given, names, None, columns)
            if isinstance(given, Scalar):
                return f"kernels::cast<{result}>({self._literal(given, result)})"
            return f"rounded<{STORAGE[step.dtype]}>({value})"
        operands = ", ".join(self._operand(o, names, compute, columns) for o in step.operands)
        return f"kernels::cast<{result}>({functor_name(step.kernel)}::apply<{compute}>({operands}))"

    def _operand(
        self, operand: View | Step | Scalar | Index, names: dict[int, str], kind: str | None, columns: Dim
    ) -> str:
        match operand:
            case Scalar():
                return self._literal(operand, kind or "double")
            case Index():
                return f"{kind}(row * {self._number(columns)} + j)"
            case _:
                name = names[id(operand)]
                own = STORAGE[compute_dtype(operand.dtype)]
                return name if kind in (None, own) else f"kernels::cast<{kind}>({name})"

    def _literal(self, scalar: Scalar, kind: str) -> str:
        value = scalar.value
        if isinstance(value, sympy.Expr):
            return f"static_cast<{kind}>({self._number(value)})"
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

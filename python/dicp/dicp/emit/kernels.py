"""Fused kernels as C++: a struct of pointers with a loop over a stretch of one row."""

import math
from collections.abc import Sequence

import sympy

from dicp.dims import same
from dicp.dtypes import STORAGE, compute_dtype
from dicp.emit.levels import Levels, is_full, is_zero
from dicp.emit.numbers import Numbers
from dicp.emit.packs import packs
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
_ROW = "[[maybe_unused]] int64_t row, const Team& team"


class KernelPrinter:
    """Prints one kernel. `struct` is its definition, `launch` the expression that runs it."""

    def __init__(self, index: int, kernel: Kernel, numbers: Numbers) -> None:
        self._kernel, self._numbers = kernel, numbers
        self.columns: Dim = kernel.sizes[-1] if kernel.sizes else 1
        self.views: dict[int, tuple[str, View]] = {}
        self._members: list[tuple[str, str, str]] = []  # type, name, initializer
        self._table: dict[int, str] = {}
        self.names: dict[int, str] = {}  # of each value that is read or computed
        written = {id(view) for view in kernel.writes}
        for view in (*kernel.writes, *(v for v in kernel.reads if id(v) not in written)):
            self._add_view(view, id(view) in written)
        for value in (*kernel.reads, *kernel.steps()):
            self.names[id(value)] = f"{'x' if isinstance(value, View) else 'v'}{len(self.names)}"
        body = [*self.places(), *(self._row_loops() if kernel.folds else self._loop())]
        self.struct = self._struct(f"Kernel{index}", body, packs(self, kernel))
        self.launch = self._launched(f"Kernel{index}")

    def _add_view(self, view: View, written: bool) -> None:
        name = f"p{len(self.views)}"
        self.views[id(view)] = (name, view)
        offset = f"{self._numbers.text(view.offset)} * int64_t{{{view.dtype.itemsize}}}"
        address = f"address(run, {{root:{id(view.root)}}}, {offset})"
        self._members.append((f"{'' if written else 'const '}{STORAGE[view.dtype]}*", name, address))

    def _struct(self, name: str, body: list[str], packed: list[str]) -> str:
        members = "".join(f"    {kind} {member};\n" for kind, member, _ in self._members)
        shape = ", ".join(str(size) for size in self._kernel.sizes)
        taken = _ROW if self._kernel.folds else _STRETCH
        return (
            f"// {', '.join(self._kernel.names)}: ({shape})\n"
            f"struct {name} {{\n{members}\n"
            f"    DIOPI_HD DIOPI_FLATTEN void operator()({taken}) const {{\n"
            f"{''.join(f'        {line}{chr(10)}' for line in body)}    }}\n"
            f"{''.join(f'    {line}{chr(10)}' for line in packed)}}};\n"
        )

    def _launched(self, name: str) -> str:
        values = ", ".join(f"static_cast<{kind}>({value})" for kind, _, value in self._members)
        rows = self._numbers.text(product(self._kernel.sizes[:-1]))
        launch = "launch_rows" if self._kernel.folds else "launch_runs"
        return f"{launch}(stream, {rows}, {self._numbers.text(self.columns)}, {name}{{{values}}})"

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
        rows = self._kernel.sizes[:-1]
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

    def _loop(self) -> list[str]:
        """One pass over a stretch of the row."""
        reads, steps = self._kernel.reads, list(self._kernel.steps())
        still = [self.load(view) for view in reads if not is_full(view)]
        inner = [self.load(view) for view in reads if is_full(view)]
        inner += [self.computed(step) for step in steps]
        inner += [self.store(view, step) for view, step in self._kernel.results]
        loop = "for (int64_t j = begin; j < end; ++j) {"
        return [*still, "DIOPI_INDEPENDENT", loop, *(f"    {line}" for line in inner), "}"]

    def _row_loops(self) -> list[str]:
        """A pass for each fold, in the order that they need each other, then one that stores."""
        levels = Levels(self._kernel)
        lines = [self.load(view) for view in self._kernel.reads if not is_full(view)]
        lines.append(
            f"[[maybe_unused]] const auto mine = kernels::stripe_of(team, int64_t{{{self.number(self.columns)}}});"
        )
        for step in levels.in_order:
            if step.fold:
                lines += self._folded(step, levels)
            elif not levels.full[id(step)]:
                lines.append(self.computed(step))
        whole = [(view, step) for view, step in self._kernel.results if is_full(view)]
        rows = [(view, step) for view, step in self._kernel.results if not is_full(view)]
        if rows:
            lines += ["if (team.rank() == 0) {", *(f"    {self.store(view, step)}" for view, step in rows), "}"]
        if whole:
            inner = self._needed([step for _, step in whole], levels)
            inner += [self.store(view, step) for view, step in whole]
            lines += ["kernels::each(mine, [&](int64_t j) {", *(f"    {line}" for line in inner), "});"]
        return lines

    def _folded(self, step: Step, levels: Levels) -> list[str]:
        (operand,) = step.operands
        assert isinstance(operand, View | Step)
        compute, result = STORAGE[step.compute], STORAGE[compute_dtype(step.dtype)]
        inner = self._needed([operand], levels)
        value = self.operand(operand, compute)
        fold = f"kernels::{step.kernel.format(compute)}{{}}"
        columns = self.number(self.columns)
        return [
            f"const {result} {self.names[id(step)]} =",
            f"    folded<{result}>({fold}, mine, {columns}, team, [&](int64_t j) {{",
            *(f"    {line}" for line in inner),
            f"    return {value};",
            "});",
        ]

    def _needed(self, values: "Sequence[View | Step]", levels: Levels) -> list[str]:
        """The loads and steps behind `values` that each column needs anew."""
        views, steps = levels.behind(values)
        return [*(self.load(view) for view in views), *(self.computed(step) for step in steps)]

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

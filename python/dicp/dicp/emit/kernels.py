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
_ROW = "[[maybe_unused]] int64_t row, const Team& team"


class KernelPrinter:
    """Prints one kernel. `struct` is its definition, `launch` the expression that runs it."""

    def __init__(self, index: int, kernel: Kernel, numbers: Numbers) -> None:
        self._kernel, self._numbers = kernel, numbers
        self._columns: Dim = kernel.sizes[-1] if kernel.sizes else 1
        self._views: dict[int, tuple[str, View]] = {}
        self._members: list[tuple[str, str, str]] = []  # type, name, initializer
        self._table: dict[int, str] = {}
        self._names: dict[int, str] = {}  # of each value that is read or computed
        written = {id(view) for view in kernel.writes}
        for view in (*kernel.writes, *(v for v in kernel.reads if id(v) not in written)):
            self._add_view(view, id(view) in written)
        for value in (*kernel.reads, *kernel.steps()):
            self._names[id(value)] = f"{'x' if isinstance(value, View) else 'v'}{len(self._names)}"
        body = [*self._places(), *(self._row_loops() if kernel.folds else self._loop())]
        self.struct = self._struct(f"Kernel{index}", body, [] if kernel.folds else self._packed())
        self.launch = self._launched(f"Kernel{index}")

    def _add_view(self, view: View, written: bool) -> None:
        name = f"p{len(self._views)}"
        self._views[id(view)] = (name, view)
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
        return f"{launch}(run->stream, {rows}, {self._numbers.text(self._columns)}, {name}{{{values}}})"

    def _number(self, value: Dim) -> str:
        """A size or stride inside the kernel; what follows from the symbols is a member."""
        if isinstance(value, int):
            return str(value)
        at = self._numbers.place(value)
        if at not in self._table:
            self._table[at] = f"n{at}"
            kind = "int64_t" if value.is_integer else "double"
            self._members.append((kind, f"n{at}", self._numbers.text(value)))
        return self._table[at]

    def _places(self) -> list[str]:
        """The position of the row, and where it begins in each operand."""
        rows = self._kernel.sizes[:-1]
        lines: list[str] = []
        rest = "row"
        for d in range(len(rows) - 1, -1, -1):
            if d == 0:
                lines.append(f"[[maybe_unused]] const int64_t d{d} = {rest};")
            else:
                size = self._number(rows[d])
                lines.append(f"[[maybe_unused]] const int64_t d{d} = {rest} % {size};")
                lines.append(f"const int64_t rest{d} = {rest} / {size};")
                rest = f"rest{d}"
        for name, view in self._views.values():
            strides = [(d, stride) for d, stride in enumerate(view.strides[:-1]) if not _is_zero(stride)]
            terms = "".join(f" + d{d} * {self._number(stride)}" for d, stride in strides)
            lines.append(f"auto* const {name}_row = {name}{terms};")
        return lines

    def _loop(self) -> list[str]:
        """One pass over a stretch of the row."""
        reads, steps = self._kernel.reads, list(self._kernel.steps())
        still = [self._load(view) for view in reads if not _is_full(view)]
        inner = [self._load(view) for view in reads if _is_full(view)]
        inner += [self._computed(step) for step in steps]
        inner += [self._store(view, step) for view, step in self._kernel.results]
        loop = "for (int64_t j = begin; j < end; ++j) {"
        return [*still, "DIOPI_INDEPENDENT", loop, *(f"    {line}" for line in inner), "}"]

    def _packed(self) -> list[str]:
        """For devices: neighbours at a time by one access of each operand, where all of memory lies so."""
        full = [view for _, view in self._views.values() if _is_full(view)]
        width = 16 // max((view.dtype.itemsize for view in full), default=16)
        if any(not same(view.strides[-1], 1) for view in full) or width < 2:
            return ["static constexpr int kWidth = 1;"]
        width = min(width, 8)
        written = {id(view) for view in self._kernel.writes}
        reads = [view for view in self._kernel.reads if _is_full(view)]
        strides = [s for view in full for s in view.strides[:-1] if not _is_zero(s)]
        whole = [f"{self._number(self._columns)} % kWidth == 0", *(f"{self._number(s)} % kWidth == 0" for s in strides)]
        whole += [
            f"packed<{STORAGE[view.dtype]}, kWidth>({name})" for name, view in self._views.values() if view in full
        ]
        lines = [
            *self._places(),
            *(self._load(view) for view in self._kernel.reads if not _is_full(view)),
            *(f"const auto {self._names[id(v)]}s = {self._load_pack(v)};" for v in reads),
            *(
                f"kernels::Pack<{STORAGE[view.dtype]}, kWidth> {name}s;"
                for name, view in self._views.values()
                if id(view) in written
            ),
            "DIOPI_UNROLL",
            "for (int k = 0; k < kWidth; ++k) {",
            "    [[maybe_unused]] const int64_t j = begin + k;",
        ]
        for view in reads:
            kind, name = STORAGE[compute_dtype(view.dtype)], self._names[id(view)]
            lines.append(f"    const {kind} {name} = load<{kind}>({name}s.at[k]);")
        lines += [f"    {self._computed(step)}" for step in self._kernel.steps()]
        for view, step in self._kernel.results:
            name, _ = self._views[id(view)]
            lines.append(f"    {name}s.at[k] = kernels::cast<{STORAGE[view.dtype]}>({self._names[id(step)]});")
        lines.append("}")
        for name, view in self._views.values():
            if id(view) in written:
                lines.append(f"kernels::store_pack<{STORAGE[view.dtype]}, kWidth>({name}_row + begin, {name}s);")
        return [
            f"static constexpr int kWidth = {width};",
            "#if defined(__CUDACC__)",
            f"bool packs() const {{ return {' && '.join(dict.fromkeys(whole))}; }}",
            "DIOPI_HD void pack([[maybe_unused]] int64_t row, int64_t begin) const {",
            *(f"    {line}" for line in lines),
            "}",
            "#endif",
        ]

    def _load_pack(self, view: View) -> str:
        name, _ = self._views[id(view)]
        return f"kernels::load_pack<{STORAGE[view.dtype]}, kWidth>({name}_row + begin)"

    def _row_loops(self) -> list[str]:
        """A pass for each fold, in the order that they need each other, then one that stores."""
        levels = Levels(self._kernel)
        lines = [self._load(view) for view in self._kernel.reads if not _is_full(view)]
        lines.append(
            f"[[maybe_unused]] const auto mine = kernels::stripe_of(team, int64_t{{{self._number(self._columns)}}});"
        )
        for step in levels.in_order:
            if step.fold:
                lines += self._folded(step, levels)
            elif not levels.full[id(step)]:
                lines.append(self._computed(step))
        whole = [(view, step) for view, step in self._kernel.results if _is_full(view)]
        rows = [(view, step) for view, step in self._kernel.results if not _is_full(view)]
        if rows:
            lines += ["if (team.rank() == 0) {", *(f"    {self._store(view, step)}" for view, step in rows), "}"]
        if whole:
            inner = self._needed([step for _, step in whole], levels)
            inner += [self._store(view, step) for view, step in whole]
            lines += ["kernels::each(mine, [&](int64_t j) {", *(f"    {line}" for line in inner), "});"]
        return lines

    def _folded(self, step: Step, levels: "Levels") -> list[str]:
        (operand,) = step.operands
        assert isinstance(operand, View | Step)
        compute, result = STORAGE[step.compute], STORAGE[compute_dtype(step.dtype)]
        inner = self._needed([operand], levels)
        value = self._operand(operand, compute)
        fold = f"kernels::{step.kernel.format(compute)}{{}}"
        columns = self._number(self._columns)
        return [
            f"const {result} {self._names[id(step)]} =",
            f"    folded<{result}>({fold}, mine, {columns}, team, [&](int64_t j) {{",
            *(f"    {line}" for line in inner),
            f"    return {value};",
            "});",
        ]

    def _needed(self, values: "Sequence[View | Step]", levels: "Levels") -> list[str]:
        """The loads and steps behind `values` that each column needs anew."""
        views, steps = levels.behind(values)
        return [*(self._load(view) for view in views), *(self._computed(step) for step in steps)]

    def _at(self, view: View) -> str:
        stride: Dim = view.strides[-1] if view.strides else 0
        if _is_zero(stride):
            return "0"
        return "j" if same(stride, 1) else f"j * {self._number(stride)}"

    def _load(self, view: View) -> str:
        kind = STORAGE[compute_dtype(view.dtype)]
        name, _ = self._views[id(view)]
        return f"const {kind} {self._names[id(view)]} = load<{kind}>({name}_row[{self._at(view)}]);"

    def _computed(self, step: Step) -> str:
        return f"const {STORAGE[compute_dtype(step.dtype)]} {self._names[id(step)]} = {self._step(step)};"

    def _store(self, view: View, step: Step) -> str:
        name, _ = self._views[id(view)]
        return f"{name}_row[{self._at(view)}] = kernels::cast<{STORAGE[view.dtype]}>({self._names[id(step)]});"

    def _step(self, step: Step) -> str:
        result = STORAGE[compute_dtype(step.dtype)]
        compute = STORAGE[step.compute]
        if step.kernel == "copy":
            (given,) = step.operands
            value = self._operand(given, None)
            if isinstance(given, Scalar):
                return f"kernels::cast<{result}>({self._literal(given, result)})"
            return f"rounded<{STORAGE[step.dtype]}>({value})"
        operands = ", ".join(self._operand(o, compute) for o in step.operands)
        return f"kernels::cast<{result}>({functor_name(step.kernel)}::apply<{compute}>({operands}))"

    def _operand(self, operand: View | Step | Scalar | Index, kind: str | None) -> str:
        match operand:
            case Scalar():
                return self._literal(operand, kind or "double")
            case Index():
                return f"{kind}(row * {self._number(self._columns)} + j)"
            case _:
                name = self._names[id(operand)]
                own = STORAGE[compute_dtype(operand.dtype)]
                return name if kind in (None, own) else f"kernels::cast<{kind}>({name})"

    def _literal(self, scalar: Scalar, kind: str) -> str:
        value = scalar.value
        if isinstance(value, sympy.Expr):
            return f"static_cast<{kind}>({self._number(value)})"
        return f"static_cast<{kind}>({number_literal(value)})"


class Levels:
    """What of a kernel with folds is one value for each row, and in which order it is computed."""

    def __init__(self, kernel: Kernel) -> None:
        self.full: dict[int, bool] = {}  # by step: it has a value for each column
        self._phases: dict[int, int] = {}
        steps = list(kernel.steps())
        for step in steps:
            inner = [o for o in step.operands if isinstance(o, Step)]
            full = any(isinstance(o, Index) or (isinstance(o, View) and _is_full(o)) for o in step.operands)
            self.full[id(step)] = not step.fold and (full or any(self.full[id(o)] for o in inner))
            self._phases[id(step)] = max((self._phases[id(o)] + (1 if o.fold else 0) for o in inner), default=0)
        # A fold of one phase may need rows of the same, but no fold of it.
        self.in_order = sorted(steps, key=lambda step: (self._phases[id(step)], step.fold))

    def behind(self, values: Sequence[View | Step]) -> tuple[list[View], list[Step]]:
        """The views and steps with a value for each column that `values` are made of, operands first."""
        views: dict[int, View] = {}
        steps: dict[int, Step] = {}
        self._collect(values, views, steps)
        return list(views.values()), list(steps.values())

    def _collect(self, values: Sequence[object], views: dict[int, View], steps: dict[int, Step]) -> None:
        for value in values:
            if isinstance(value, View) and _is_full(value):
                views[id(value)] = value
            elif isinstance(value, Step) and self.full[id(value)] and id(value) not in steps:
                self._collect(value.operands, views, steps)
                steps[id(value)] = value


def _is_zero(stride: Dim) -> bool:
    return isinstance(stride, int) and stride == 0


def _is_full(view: View) -> bool:
    """It has an element for each column."""
    return bool(view.strides) and not _is_zero(view.strides[-1])


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

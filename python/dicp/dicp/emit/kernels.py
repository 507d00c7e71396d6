"""Fused kernels as C++: a struct of pointers with a loop over a stretch of one row."""

from collections.abc import Sequence

from dicp.dtypes import STORAGE, compute_dtype
from dicp.emit.levels import Levels, is_full
from dicp.emit.numbers import Numbers
from dicp.emit.packs import packs
from dicp.emit.steps import StepPrinter
from dicp.folds import constructed
from dicp.program import Kernel, Step, View, product

_STRETCH = "[[maybe_unused]] int64_t row, int64_t begin, int64_t end"
_ROW = "[[maybe_unused]] int64_t row, const Team& team"


class KernelPrinter(StepPrinter):
    """Prints one kernel: what its definition has behind its name, and the expression that runs it."""

    def __init__(self, kernel: Kernel, numbers: Numbers) -> None:
        super().__init__(kernel, numbers)
        body = [*self.places(), *(self._row_loops() if kernel.folds else self._loop())]
        packed = packs(self)
        members = "".join(f"    {kind} {member};\n" for kind, member, _ in self._members)
        self.definition = (
            f"{{\n{members}\n"
            f"    DIOPI_HD DIOPI_FLATTEN void operator()({_ROW if kernel.folds else _STRETCH}) const {{\n"
            f"{''.join(f'        {line}{chr(10)}' for line in body)}    }}\n"
            f"{''.join(f'    {line}{chr(10)}' for line in packed)}}};\n"
        )

    def launch(self, name: str) -> str:
        """The expression, by the name of the definition."""
        values = ", ".join(f"static_cast<{kind}>({value})" for kind, _, value in self._members)
        rows = self._numbers.text(product(self.kernel.sizes[:-1]))
        launch = "launch_rows" if self.kernel.folds else "launch_runs"
        return f"{launch}(stream, {rows}, {self._numbers.text(self.columns)}, {name}{{{values}}})"

    def _loop(self) -> list[str]:
        """One pass over a stretch of the row."""
        reads, steps = self.kernel.reads, self.kernel.steps
        still = [self.load(view) for view in reads if not is_full(view)]
        inner = [self.load(view) for view in reads if is_full(view)]
        inner += [self.computed(step) for step in steps]
        inner += [self.store(view, step) for view, step in self.kernel.results]
        loop = "for (int64_t j = begin; j < end; ++j) {"
        return [*still, "DIOPI_INDEPENDENT", loop, *(f"    {line}" for line in inner), "}"]

    def _row_loops(self) -> list[str]:
        """A pass for each fold, in the order that they need each other, then one that stores."""
        levels = Levels(self.kernel)
        lines = [self.load(view) for view in self.kernel.reads if not is_full(view)]
        lines.append(
            f"[[maybe_unused]] const auto mine = kernels::stripe_of(team, int64_t{{{self.number(self.columns)}}});"
        )
        for step in levels.in_order:
            if step.fold:
                lines += self._folded(step, levels)
            elif not levels.full[id(step)]:
                lines.append(self.computed(step))
        whole = [(view, step) for view, step in self.kernel.results if is_full(view)]
        rows = [(view, step) for view, step in self.kernel.results if not is_full(view)]
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
        fold = constructed(step.kernel, compute)
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

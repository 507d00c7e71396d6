"""Kernels for devices with teams of threads: neighbours by one access of each operand, where all of memory lies so."""

from dicp.dims import same
from dicp.dtypes import STORAGE, compute_dtype
from dicp.emit.levels import Levels, is_full, is_zero
from dicp.emit.steps import StepPrinter
from dicp.folds import constructed
from dicp.program import Kernel, Step, View

_MOST_HELD = 4  # operands of a row that a thread has the registers to hold


def packs(printer: StepPrinter) -> list[str]:
    """The members kWidth, packs() and pack() of a kernel's struct; without packs the width is 1."""
    kernel = printer.kernel
    width = _width(kernel)
    if width == 1:
        return ["static constexpr int kWidth = 1;"]
    return [
        f"static constexpr int kWidth = {width};",
        "#if defined(DIOPI_LAUNCHER_HAS_TEAMS)",
        f"bool packs() const {{ return {_condition(printer, kernel)}; }}",
        *(_row(printer, kernel) if kernel.folds else _stretch(printer, kernel)),
        "#endif",
    ]


def _width(kernel: Kernel) -> int:
    """Elements of a pack: 16 bytes of the widest type, but eight at most.

    What all rows read, e.g. a value of each channel, comes from caches, by more than one access where it is wider.
    """
    full = [view for view in (*kernel.writes, *kernel.reads) if is_full(view)]
    if not full or any(not same(view.strides[-1], 1) for view in full):
        return 1
    own = [view for view in full if not all(is_zero(stride) for stride in view.strides[:-1])]
    measured = full if kernel.folds else own or full
    return min(16 // max(view.dtype.itemsize for view in measured), 8)


def _condition(printer: StepPrinter, kernel: Kernel) -> str:
    """Whether every pack begins where an access may."""
    full = [(name, view) for name, view in printer.views.values() if is_full(view)]
    strides = [stride for _, view in full for stride in view.strides[:-1] if not is_zero(stride)]
    whole = [f"{printer.number(length)} % kWidth == 0" for length in (printer.columns, *strides)]
    whole += [f"packed<{STORAGE[view.dtype]}, kWidth>({name})" for name, view in full]
    return " && ".join(dict.fromkeys(whole))


def _stretch(printer: StepPrinter, kernel: Kernel) -> list[str]:
    """One pack of each operand, in a kernel without folds."""
    reads = [view for view in kernel.reads if is_full(view)]
    body = [
        *printer.places(),
        *(printer.load(view) for view in kernel.reads if not is_full(view)),
        *(f"const auto {_packs_of(printer, view)} = {_fetched(printer, view)};" for view in reads),
        *_stored(printer, kernel.results, reads, list(kernel.steps), ""),
    ]
    head = "DIOPI_HD void pack([[maybe_unused]] int64_t row, int64_t begin) const {"
    return [head, *(f"    {line}" for line in body), "}"]


def _row(printer: StepPrinter, kernel: Kernel) -> list[str]:
    """What a team's thread has of a row: a pass for each fold, then one that stores."""
    levels = Levels(kernel)
    reads = [view for view in kernel.reads if is_full(view)]
    lines = [
        *printer.places(),
        *(printer.load(view) for view in kernel.reads if not is_full(view)),
        *(f"kernels::Pack<{STORAGE[v.dtype]}, kWidth> {_packs_of(printer, v)}[Packs::kSlots];" for v in reads),
        "const auto fetch = [&](int slot, int64_t begin) {",
        *(f"    {_packs_of(printer, view)}[slot] = {_fetched(printer, view)};" for view in reads),
        "};",
        "mine.hold(fetch);",
    ]
    for step in levels.in_order:
        if step.fold:
            lines += _folded(printer, step, levels)
        elif not levels.full[id(step)]:
            lines.append(printer.computed(step).removeprefix("const "))
    lines += _row_stores(printer, kernel, levels)
    may_hold = "true" if len(reads) <= _MOST_HELD else "false"
    columns = printer.number(printer.columns)
    return [
        "DIOPI_HD void pack(int64_t row, const Team& team) const {",
        f"    kernels::with_row_packs<kWidth, {may_hold}>(",
        f"        team, {columns}, [&](const auto& mine) {{ packed_row(row, team, mine); }});",
        "}",
        "template <class Packs>",
        "DIOPI_HD_INLINED void packed_row([[maybe_unused]] int64_t row, const Team& team, const Packs& mine) const {",
        *(f"    {line}" for line in lines),
        "}",
    ]


def _row_stores(printer: StepPrinter, kernel: Kernel, levels: Levels) -> list[str]:
    whole = [(view, step) for view, step in kernel.results if is_full(view)]
    rows = [(view, step) for view, step in kernel.results if not is_full(view)]
    lines: list[str] = []
    if rows:
        lines += ["if (team.rank() == 0) {", *(f"    {printer.store(view, step)}" for view, step in rows), "}"]
    if whole:
        views, steps = levels.behind([step for _, step in whole])
        stores = _stored(printer, whole, views, steps, "[slot]")
        lines += ["mine.each(fetch, [&](int slot, int64_t begin) {", *(f"    {line}" for line in stores), "});"]
    return lines


def _folded(printer: StepPrinter, step: Step, levels: Levels) -> list[str]:
    (operand,) = step.operands
    assert isinstance(operand, View | Step)
    compute, result = STORAGE[step.compute], STORAGE[compute_dtype(step.dtype)]
    views, steps = levels.behind([operand])
    fold = constructed(step.kernel, compute)
    return [
        f"{result} {printer.names[id(step)]} =",  # nvcc 13 fails on what follows from a constant that a lambda gave
        f"    folded_packs<{result}, kWidth>({fold}, mine, {printer.number(printer.columns)}, team, fetch, "
        "[&]([[maybe_unused]] int slot, [[maybe_unused]] int64_t begin, [[maybe_unused]] int k) {",
        "    [[maybe_unused]] const int64_t j = begin + k;",
        *(f"    {_element(printer, view, '[slot]')}" for view in views),
        *(f"    {printer.computed(inner)}" for inner in steps),
        f"    return {printer.operand(operand, compute)};",
        "});",
    ]


def _stored(
    printer: StepPrinter,
    results: list[tuple[View, Step]],
    reads: list[View],
    steps: list[Step],
    slot: str,
) -> list[str]:
    """A pack of each result from the packs of what is read."""
    lines = []
    for view, _ in results:
        lines.append(f"kernels::Pack<{STORAGE[view.dtype]}, kWidth> {printer.views[id(view)][0]}s;")
    lines += [
        "DIOPI_UNROLL",
        "for (int k = 0; k < kWidth; ++k) {",
        "    [[maybe_unused]] const int64_t j = begin + k;",
    ]
    lines += [f"    {_element(printer, view, slot)}" for view in reads]
    lines += [f"    {printer.computed(step)}" for step in steps]
    for view, step in results:
        name, _ = printer.views[id(view)]
        lines.append(f"    {name}s.at[k] = kernels::cast<{STORAGE[view.dtype]}>({printer.names[id(step)]});")
    lines.append("}")
    for view, _ in results:
        name, _ = printer.views[id(view)]
        lines.append(f"kernels::store_pack<{STORAGE[view.dtype]}, kWidth>({name}_row + begin, {name}s);")
    return lines


def _packs_of(printer: StepPrinter, view: View) -> str:
    return f"{printer.names[id(view)]}s"


def _fetched(printer: StepPrinter, view: View) -> str:
    name, _ = printer.views[id(view)]
    return f"kernels::load_pack<{STORAGE[view.dtype]}, kWidth>({name}_row + begin)"


def _element(printer: StepPrinter, view: View, slot: str) -> str:
    kind, name = STORAGE[compute_dtype(view.dtype)], printer.names[id(view)]
    return f"const {kind} {name} = load<{kind}>({name}s{slot}.at[k]);"

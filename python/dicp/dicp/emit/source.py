"""The source of a program, and what the executor must know of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dicp.emit.kernels import KernelPrinter
from dicp.emit.numbers import Numbers
from dicp.emit.order import Order
from dicp.emit.steps import functor, number_literal
from dicp.operators import Table
from dicp.program import CallArgument, Instruction, Island, Kernel, LibraryCall, Program, Root, View

_HEAD = """\
// A program compiled by dicp. It speaks to the vendor's library, and to the executor through program_abi.h.
#include "program_abi.h"
#include "program_arguments.h"
#include "rows.h"

extern "C" {
{declarations}}

inline namespace DIOPI_PROGRAM_SPACE {

using namespace diopi::compiled;
using diopi::kernels::BFloat16;
using diopi::kernels::Half;
namespace kernels = diopi::kernels;
namespace math = diopi::math;

{definitions}}  // namespace DIOPI_PROGRAM_SPACE

DIOPI_PROGRAM_EXPORT int32_t diopi_program_version() { return kProgramVersion; }

DIOPI_PROGRAM_EXPORT void diopi_program_numbers([[maybe_unused]] const int64_t* s, [[maybe_unused]] int64_t* t) {
    using namespace diopi::compiled;
{numbers}}

DIOPI_PROGRAM_EXPORT diopiError_t diopi_program_run(const Run* run) {
    [[maybe_unused]] const int64_t* const t = run->numbers;
    [[maybe_unused]] diopiContextHandle_t ctx = run->context;
    [[maybe_unused]] diopiStreamHandle_t stream = run->stream;
    diopiError_t status = diopiSuccess;
{body}    return status;
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """A program's source, and its specification without the path of the library."""

    source: str
    specification: dict[str, Any]
    watched: tuple[int, ...]  # the numbers of views that are watched while the program runs


class _Emitter:
    def __init__(self, program: Program, table: Table) -> None:
        self._program, self._table = program, table
        self._signatures = table.signatures()
        self._order = Order(program.schedule)
        self._numbers = Numbers(tuple(program.symbols))
        self._roots: dict[int, int] = {}
        self._root_list: list[Root] = []
        self._views: dict[int, int] = {}
        self._view_list: list[View] = []
        self._islands: list[tuple[Any, ...]] = []
        self._substitutes: list[tuple[Any, ...]] = []

    def emitted(self, watched: Sequence[View]) -> Emitted:
        definitions: dict[str, str] = {}  # names by what they stand for: layers that repeat have one kernel
        declarations: dict[str, str] = {}
        body: list[str] = []
        kernels: dict[str, None] = {}
        for index, instruction in enumerate(self._program.instructions):
            body.append(f"    // {index}: {', '.join(instruction.names)}\n")
            body.append(self._order.before(index))
            match instruction:
                case Kernel():
                    printer = KernelPrinter(instruction, self._numbers)
                    kernels |= {
                        step.kernel: None for step in instruction.steps if step.kernel != "copy" and not step.fold
                    }
                    name = definitions.setdefault(printer.definition, f"Kernel{index}")
                    body.append(self._checked(index, self._with_roots(printer.launch(name), instruction)))
                case LibraryCall():
                    declarations[instruction.symbol] = self._signatures[instruction.symbol]
                    body.append(self._call(index, instruction))
                case Island():
                    body.append(self._checked(index, f"run->island(run->executor, {len(self._islands)})"))
                    self._islands.append(self._island(instruction))
            body.append(self._order.after(index))
        functors = [functor(name, self._table.kernels[name]) for name in kernels]
        looked_at = tuple(self._view(view) for view in watched)
        specification = self._specification()  # it asks for more numbers
        source = _HEAD
        for name, text in (
            ("declarations", "".join(f"{line};\n" for line in declarations.values())),
            ("definitions", "\n".join([*functors, *(f"struct {n} {text}" for text, n in definitions.items()), ""])),
            ("numbers", "".join(f"    {line}\n" for line in self._numbers.lines())),
            ("body", "".join(body)),
        ):
            source = source.replace("{" + name + "}", text, 1)
        specification["numbers"] = self._numbers.count
        return Emitted(source=source, specification=specification, watched=looked_at)

    def _checked(self, index: int, call: str, refused: str = "") -> str:
        return (
            f"    *run->at = {index};\n"
            f"    status = {call};\n"
            f"{refused}"
            f"    if (status == diopiSuccess && run->watch != nullptr) status = run->watch(run->executor, {index});\n"
            f"    if (status != diopiSuccess) return status;\n"
        )

    def _with_roots(self, text: str, instruction: Instruction) -> str:
        for view in (*instruction.reads, *instruction.writes):
            text = text.replace(f"{{root:{id(view.root)}}}", str(self._root(view.root)))
        return text

    def _root(self, root: Root) -> int:
        if id(root) not in self._roots:
            self._roots[id(root)] = len(self._root_list)
            self._root_list.append(root)
        return self._roots[id(root)]

    def _view(self, view: View | None) -> int:
        if view is None:
            return -1
        if id(view) not in self._views:
            self._views[id(view)] = len(self._view_list)
            self._view_list.append(view)
            self._root(view.root)
        return self._views[id(view)]

    def _call(self, index: int, call: LibraryCall) -> str:
        lines: list[str] = []
        operands = ["ctx", *(self._argument(at, argument, lines) for at, argument in enumerate(call.arguments))]
        text = "".join(f"        {line}\n" for line in lines)
        refused = ""
        if call.random:
            text += "        run->begin_draw(run->executor);\n"
            seed, offset = map(self._view, call.state)
            refused = f"    status = run->end_draw(run->executor, {seed}, {offset}, status);\n"
        if call.substitute is not None:
            place = len(self._substitutes)
            refused += f"    if (status != diopiSuccess) status = run->refused(run->executor, {place}, status);\n"
            self._substitutes.append(self._island(call.substitute))
        made = self._checked(index, f"{call.symbol}({', '.join(operands)})", refused)
        checked = made.replace("\n    ", "\n        ")
        return f"    {{\n{text}    {checked}    }}\n"

    def _argument(self, at: int, argument: CallArgument, lines: list[str]) -> str:
        value: Any = argument.value
        local = f"a{at}"
        match argument.kind:
            case "null":
                return "nullptr"
            case "generator" | "undrawn":
                return "run->generator"
            case "stored generator":
                return f"run->stored_generator(run->executor, {self._view(value[0])}, {self._view(value[1])})"
            case "word":
                return str(value)
            case "tensor":
                return f"run->tensors[{self._view(value)}]"
            case "tensors":
                items = ", ".join(f"run->tensors[{self._view(item)}]" for item in value)
                lines.append(f"diopiConstTensorHandle_t {local}[] = {{{items}}};")
                return local
            case "Scalar":
                lines.append(f"diopiScalar_t {local} = scalar({self._number(value)});")
                return f"&{local}"
            case "text":
                return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
            case "sizes" | "sizes*":
                items = ", ".join(self._number(item) for item in value) or "0"
                lines.append(f"const int64_t {local}_values[] = {{{items}}};")
                const = "const " if argument.kind == "sizes" else ""
                lines.append(f"{const}diopiSize_t {local}{{{local}_values, {len(value)}}};")
                return local if argument.kind == "sizes" else f"&{local}"
        kind = {"int": "int64_t", "Dim": "int64_t", "int32": "int32_t", "float": "double", "float32": "float"}
        plain = kind.get(argument.kind.removesuffix("?"), "bool")
        if argument.kind.endswith("?"):
            lines.append(f"const {plain} {local} = static_cast<{plain}>({self._number(value)});")
            return f"&{local}"
        return f"static_cast<{plain}>({self._number(value)})"

    def _number(self, value: Any) -> str:
        return number_literal(value) if isinstance(value, bool | int | float) else self._numbers.text(value)

    def _island(self, island: Island) -> tuple[Any, ...]:
        arguments: list[tuple[str, Any]] = []
        for argument in island.arguments:
            value: Any = argument.value
            match argument.kind:
                case "tensor":
                    arguments.append(("tensor", self._view(value)))
                case "tensors":
                    arguments.append(("tensors", [self._view(item) for item in value]))
                case "number" | "fraction":
                    arguments.append((argument.kind, self._numbers.specified(value)))
                case "numbers":
                    arguments.append(("numbers", [self._numbers.specified(item) for item in value]))
                case _:
                    arguments.append(("value", value))
        results = [self._view(view) for view in island.results]
        return (island.operator, island.overload, arguments, results)

    def _specification(self) -> dict[str, Any]:
        program, specified = self._program, self._numbers.specified
        results: list[tuple[str, Any]] = []
        for result in program.results:
            match result.kind:
                case "view":
                    assert isinstance(result.value, View)
                    results.append(("view", self._view(result.value)))
                case "number":
                    assert not isinstance(result.value, View) and result.value is not None
                    results.append(("number", specified(result.value)))
                case "argument":
                    results.append(("argument", result.value))
                case _:
                    results.append(("nothing", 0))
        views = [
            (
                self._root(view.root),
                view.dtype,
                [specified(size) for size in view.sizes],
                [specified(stride) for stride in view.strides],
                specified(view.offset),
                view.conjugate,
                view.negative,
                view.slot,
            )
            for view in self._view_list
        ]
        roots = [
            (root.kind.value, root.index, specified(root.bytes), specified(root.offset)) for root in self._root_list
        ]
        return {
            "device": program.device.index or 0,
            "arguments": program.arguments,
            "symbols": list(program.symbols.values()),
            "arena_bytes": specified(program.arena_bytes),
            "roots": roots,
            "views": views,
            "islands": self._islands,
            "substitutes": self._substitutes,
            "results": results,
            "constants": program.constants,
            "streams": self._order.streams,
            "events": self._order.events,
            "replays": False,  # who compiles asks for them, and knows what they must know
            "held": [],
            "fixed": [],
            "visible": 0,
            "written": sorted({self._root(view.root) for i in program.instructions for view in i.writes}),
            "slots": program.slots,
            "instructions": [_title(instruction) for instruction in program.instructions],
        }


def _title(instruction: Instruction) -> str:
    names = ", ".join(instruction.names)
    match instruction:
        case Kernel():
            return f"kernel ({names})"
        case LibraryCall():
            return f"{instruction.symbol} ({names})"
        case Island():
            return f"{instruction.operator} ({names})"


def emit(program: Program, table: Table, watched: Sequence[View] = ()) -> Emitted:
    """Raises KeyError where a size follows from something that is no argument."""
    return _Emitter(program, table).emitted(watched)

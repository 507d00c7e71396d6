"""What docs/adaptor.md says of a call, as a model of its own: the transcript that the lab must give."""

from dataclasses import dataclass, field
from functools import lru_cache

from diopigen.model.op import Role
from tests.cpp.adaptor.lab.calls import Call
from tests.cpp.adaptor.lab.contract import Parameter, signatures
from tests.cpp.adaptor.lab.elements import SIZES, decoded, encoded

Sizes = tuple[int, ...]

UNWRITTEN = 0x2B  # of a new temporary, each byte


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one parameter's rule asks for."""

    casts: tuple[tuple[str, str], ...] = ()
    orders: tuple[tuple[int, tuple[str, ...]], ...] = ()  # e.g. ((4, ("last", "first")),): by rank, the first is made
    contiguous: bool = False

    def dtype(self, dtype: str) -> str:
        return dict(self.casts).get(dtype, dtype)

    def order(self, rank: int) -> tuple[str, ...]:
        """The orders that the function takes for this rank; empty: any."""
        return dict(self.orders).get(rank) or (("first",) if self.contiguous else ())


Reading = dict[tuple[str, str], Wanted]  # by function and parameter


# -- memory ----------------------------------------------------------------------------------------------------


@lru_cache(100_000)
def offsets(sizes: Sizes, strides: Sizes) -> Sizes:
    """Where each element lies, in logical order."""
    found = [0]
    for size, stride in zip(sizes, strides, strict=True):
        found = [at + i * stride for at in found for i in range(size)]
    return tuple(found)


def axes(order: str, rank: int) -> Sizes:
    """The dimensions from the slowest to the fastest."""
    return (0, *range(2, rank), 1) if order == "last" and rank >= 3 else tuple(range(rank))


@lru_cache(100_000)
def lies(order: str, sizes: Sizes, strides: Sizes) -> bool:
    """Whether a walk in this order meets one element after the other."""
    walk = axes(order, len(sizes))
    met = offsets(tuple(sizes[d] for d in walk), tuple(strides[d] for d in walk))
    return met == tuple(range(len(met)))


@lru_cache(100_000)
def dense(sizes: Sizes, strides: Sizes) -> bool:
    """Whether each element has a place of its own and none lies between."""
    places = offsets(sizes, strides)
    return sorted(places) == list(range(len(places))) and len(places) > 0


def ordered(order: str, sizes: Sizes) -> Sizes:
    """The strides of a new tensor."""
    strides = dict[int, int]()
    step = 1
    for d in reversed(axes(order, len(sizes))):
        strides[d] = step
        step *= max(sizes[d], 1)
    return tuple(strides[d] for d in range(len(sizes)))


@dataclass(slots=True, eq=False)
class View:
    """A tensor: the caller's, or a temporary."""

    name: str  # e.g. "x0", "t0"
    memory: bytearray
    dtype: str
    sizes: Sizes
    strides: Sizes
    offset: int = 0
    host: bool = False

    def _places(self) -> list[int]:
        return [(self.offset + at) * SIZES[self.dtype] for at in offsets(self.sizes, self.strides)]

    def raw(self) -> list[bytes]:
        size = SIZES[self.dtype]
        return [bytes(self.memory[at : at + size]) for at in self._places()]

    def read(self) -> list[complex]:
        return [decoded(self.dtype, data) for data in self.raw()]

    def write(self, values: list[complex]) -> None:
        size = SIZES[self.dtype]
        for at, value in zip(self._places(), values, strict=True):
            self.memory[at : at + size] = encoded(self.dtype, value)

    def same(self, other: "View") -> bool:
        """The same memory, dtype, shape and strides."""
        if self is other:
            return True
        mine = (self.offset * SIZES[self.dtype], self.dtype, self.sizes, self.strides)
        theirs = (other.offset * SIZES[other.dtype], other.dtype, other.sizes, other.strides)
        return self.memory is other.memory and mine == theirs

    def form(self) -> str:
        return f"{self.dtype} {_shown(self.sizes)} {_shown(self.strides)}"

    def contents(self) -> str:
        return b"".join(self.raw()).hex()


def _shown(numbers: Sizes) -> str:
    return f"[{','.join(map(str, numbers))}]"


# -- a call ----------------------------------------------------------------------------------------------------


class Failed(Exception):
    """The call ends with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(slots=True, eq=False)
class Converted:
    """What stands in for a tensor."""

    original: View
    temporary: View
    order: tuple[str, ...]
    filled: bool = False
    destination: View | None = None  # the tensor that is written after a success


@dataclass(slots=True)
class Model:
    """One call as it goes."""

    call: Call
    reading: Reading
    lines: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)  # how often each kind of step was taken
    converted: list[Converted] = field(default_factory=list)
    temporaries: int = 0
    replaced: list[str] = field(default_factory=list)  # tensors in the place of which others stand now

    def transcript(self) -> str:
        memories = [bytearray(storage) for storage in self.call.storages]
        handles = [
            View(f"x{i}", memories[t.storage], t.dtype, t.sizes, t.strides, t.offset, t.host)
            for i, t in enumerate(self.call.tensors)
        ]
        results: dict[str, View | None] = dict.fromkeys(sorted(self.call.results))
        status = 0
        try:
            self._run(handles, results)
        except Failed as failed:
            status = failed.status
        self.lines.append(f"status {status}")
        returned = sorted(
            [each.temporary.name for each in self.converted] + self.replaced, key=lambda name: int(name[1:])
        )
        if returned:
            self.lines.append(f"returned {' '.join(returned)}")
        self.lines += [f"storage {memory.hex()}" for memory in memories]
        for name, made in results.items():
            shown = "-" if made is None else f"{made.name} {made.form()} {made.contents()}"
            self.lines.append(f"result {name} {shown}")
        return "\n".join([*self.lines, ""])

    def _run(self, handles: list[View], results: dict[str, View | None]) -> None:
        given: list[tuple[Parameter, str, View | None]] = []  # what the function gets, lists spread out
        for parameter in signatures()[self.call.function].parameters:
            for shown, index in self._entries(parameter):
                original = None if index is None else handles[index]
                given.append((parameter, shown, self._converted(parameter, original)))
        self._function(given, results)
        for each in self.converted:
            if each.destination is not None:
                self._move(each.temporary, each.destination)
        for parameter in signatures()[self.call.function].parameters:
            made = results.get(parameter.name)
            if parameter.role is Role.CALLEE_OUT and made is not None:
                results[parameter.name] = self._expected(parameter, made, handles)

    def _entries(self, parameter: Parameter) -> list[tuple[str, int | None]]:
        """The tensors of one parameter by the names that the function shows."""
        if not parameter.many:
            return [(parameter.name, self.call.arguments.get(parameter.name))]
        if parameter.name not in self.call.lists:
            return [(parameter.name, None)]
        return [(f"{parameter.name}[{i}]", index) for i, index in enumerate(self.call.lists[parameter.name])]

    def _wanted(self, parameter: Parameter) -> Wanted:
        return self.reading.get((self.call.function, parameter.name), Wanted())

    def _converted(self, parameter: Parameter, original: View | None) -> View | None:
        """What the function gets for a tensor."""
        if original is None or original.host or parameter.role is Role.CALLEE_OUT:
            return original
        wanted = self._wanted(parameter)
        dtype, order = wanted.dtype(original.dtype), wanted.order(len(original.sizes))
        suits = not order or any(lies(each, original.sizes, original.strides) for each in order)
        if suits and dtype == original.dtype:
            return original
        for each in self.converted:
            if each.original.same(original) and (each.temporary.dtype, each.order) == (dtype, order):
                break
        else:
            keeps = suits and dense(original.sizes, original.strides)
            strides = original.strides if keeps else ordered(order[0] if order else "first", original.sizes)
            each = Converted(original, self._required(dtype, original.sizes, strides), order)
            self.converted.append(each)
        if parameter.role is not Role.OUT and not each.filled:
            self._move(each.original, each.temporary)
            each.filled = True
        if parameter.role is not Role.IN and each.destination is None:
            each.destination = original
        return each.temporary

    def _function(self, given: list[tuple[Parameter, str, View | None]], results: dict[str, View | None]) -> None:
        self.lines.append(f"call {self.call.function}")
        for parameter, shown, view in given:
            if view is not None:
                self.lines.append(f"  {shown} {view.name} {view.form()} {view.contents()}")
            elif parameter.role is not Role.CALLEE_OUT or parameter.name not in results:
                self.lines.append(f"  {shown} -")
        self._due("function", "")
        read = [v.read() for p, _, v in given if v is not None and p.role in (Role.IN, Role.INOUT)]
        position = 0
        for parameter, _, view in given:
            if parameter.role is Role.CALLEE_OUT and parameter.name in results:
                position += 1
                view = results[parameter.name] = self._made(parameter.name)
            elif view is None or parameter.role is Role.IN:
                continue
            else:
                position += 1
            if view is not None:
                many = len(offsets(view.sizes, view.strides))
                view.write([position + sum((r[i % len(r)] for r in read if r), 0j) for i in range(many)])
        for parameter, _, view in given:
            if parameter.scratch and view is not None:
                view.write([99 + 0j] * len(offsets(view.sizes, view.strides)))

    def _made(self, name: str) -> View | None:
        """The tensor that the function allocates."""
        wanted = self.call.results[name]
        return None if wanted.dtype is None else self._required(wanted.dtype, wanted.sizes, wanted.strides)

    def _expected(self, parameter: Parameter, made: View, handles: list[View]) -> View:
        """An allocated tensor in the dtype that the caller expects."""
        dtype = parameter.dtypes[0]
        if not parameter.fixed:
            source = None if parameter.like is None else self.call.arguments.get(parameter.like)
            if source is None:
                return made
            dtype = handles[source].dtype
        target = self._wanted(parameter).dtype(dtype)
        if target == dtype or made.dtype != target:
            return made
        strides = made.strides if dense(made.sizes, made.strides) else ordered("first", made.sizes)
        restored = self._required(dtype, made.sizes, strides)
        try:
            self._move(made, restored)
        except Failed:
            self.replaced.append(restored.name)
            raise
        self.replaced.append(made.name)
        return restored

    # -- steps that can fail -----------------------------------------------------------------------------------

    def _due(self, kind: str, line: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        fault = self.call.fault
        fails = fault is not None and fault[:2] == (kind, self.counts[kind])
        if line:
            self.lines.append(f"{line} fails {fault[2]}" if fault is not None and fails else line)
        if fault is not None and fails:
            raise Failed(fault[2])

    def _required(self, dtype: str, sizes: Sizes, strides: Sizes) -> View:
        view = View(f"t{self.temporaries}", bytearray(), dtype, sizes, strides)
        self._due("require", f"require {view.name} {view.form()}")
        self.temporaries += 1
        last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True) if size > 0)
        view.memory = bytearray([UNWRITTEN] * (last + 1) * SIZES[dtype])
        return view

    def _move(self, source: View, target: View) -> None:
        """The conversion there or back: a cast where the dtype changes, else a copy."""
        if source.dtype != target.dtype:
            self._due("cast", f"cast {source.name} {source.dtype} {target.name} {target.dtype}")
        else:
            self._due("copy", f"copy {source.name} {target.name}")
        target.write(source.read())

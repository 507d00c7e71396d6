"""The calls of the matrix: every rule, every role, every way in which a tensor can fail to suit, every failure."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from diopigen.model.op import Role
from tests.cpp.adaptor.lab.bench import Vendor
from tests.cpp.adaptor.lab.calls import Allocation, Call, Tensor
from tests.cpp.adaptor.lab.contract import Parameter, Signature, signatures
from tests.cpp.adaptor.lab.elements import SIZES, encoded
from tests.cpp.adaptor.lab.oracle import Model, Sizes, ordered

Pair = tuple[Vendor, Call]

# Every level and every property, alone and together.
CONFIGS = (
    "",
    "- common_config: {dtype: (float64)->float32}",
    "- common_config: {dtype: '(float64)->float32, (int64)->int32'}",
    "- common_config: {dtype: '(float64, float16, bfloat16)->float32, (int64, bool)->int32, (complex128)->complex64'}",
    "- common_config: {dtype: (float32)->float16}",
    "- common_config: {dtype: '(int64)->int32', contiguous: true}",
    "- common_config: {contiguous: true}",
    "- common_config: {layout: NCHW}",
    "- common_config: {layout: NHWC}",
    "- common_config: {layout: 'NHWC, NCHW'}",
    "- common_config: {layout: 'NCHW, NHWC'}",
    "- common_config: {layout: ND}",
    *(f"- common_config: {{layout: {word}}}" for word in ("NCL", "NLC", "NCDHW", "NDHWC")),
    "- common_config: {layout: 'NLC, NCDHW, NDHWC'}",
    "- common_config: {layout: 'NCHW, NLC', dtype: (float64)->float32}",
    "- common_config: {layout: 'NLC, NHWC, NDHWC'}",
    "- common_config: {layout: 'NCL, NLC, NCHW, NDHWC, NCDHW'}",
    "- common_config: {layout: NHWC, contiguous: true}",
    "- common_config: {layout: 'NHWC, NCHW', contiguous: true, dtype: (float64)->float32}",
    "- common_config: {layout: NHWC, dtype: '(float64)->float32, (int64)->int32'}",
    "- common_config: {layout: NCHW, dtype: (float64)->float32}",
    "- common_config: {layout: NDHWC, contiguous: true, dtype: '(float64)->float32, (int64)->int32'}",
    """
- common_config: {dtype: '(float64)->float32, (int64)->int32', layout: NHWC, contiguous: true}
- diopiEverything: {tensor_dtype: {states: (int64)->int16, input: none}, layout: NCHW, contiguous: false}
- diopiPick: {dtype: none}
- diopiLayered: {dtype: (float64)->float16, layout: ND}
- ops: [diopiMomentum, diopiPool]
  layout: NCHW, NHWC
""",
    """
- common_config: {dtype: (float64)->float32, layout: NHWC}
- diopiEverything:
    tensor_dtype: {input: (float64)->float16, out: (float32)->float64, states: (int64)->int32}
    layout: NHWC, state(NCHW), tensors(NCHW, NHWC), outs(ND)
    contiguous: scratch, extra
- diopiLayered:
    tensor_dtype: input:(float32)->float64 weight:(float64)->bfloat16, (int64)->int8
    layout: weight(NCHW), input(NHWC, NCHW)
- diopiAdd: {tensor_dtype: {input: (float64)->float32}, contiguous: other}
- diopiAddInp: {tensor_dtype: {other: (float64)->float32}, contiguous: input}
- diopiSgd: {tensor_dtype: {dw: (float64)->float16}, contiguous: true}
- diopiMomentum: {layout: 'params(NHWC), grads(NCHW)'}
- diopiDistinct: {tensor_dtype: {positions: (int64)->int32}}
- diopiMaskedSelect: {dtype: '(bool)->uint8, (int64)->int32'}
- diopiPick: {tensor_dtype: {index: (int64)->int32}, contiguous: weights}
""",
)

SHAPES: dict[int, Sizes] = {
    0: (),
    1: (3,),
    2: (2, 3),
    3: (2, 3, 2),
    4: (2, 3, 2, 2),
    5: (1, 2, 2, 3, 2),
    6: (1, 2, 1, 2, 2, 1),
}

FORMS = (
    "contiguous",
    "last",  # channels last
    "reversed",  # dense, the first dimension fastest
    "gaps",
    "offset",
    "offset last",
    "expanded",
    "overlapping",
    "ones",  # dimension 1 has size 1, and a stride that nobody needs
    "ones last",
    "single",  # a batch of one, with a stride that nobody needs
    "single last",
    "apart",  # gaps between the parts of the batch only
    "apart last",
    "empty",
    "empty channels",
    "host",
)

DTYPES = ("float32", "float64", "int64", "bfloat16", "complex128", "bool")

_STATUSES = {"require": 7, "cast": 1000, "copy": 12, "function": 14}


@dataclass(slots=True)
class Composer:
    """Puts one call together: storages and tensors as they are needed."""

    storages: list[bytes]
    tensors: list[Tensor]

    def add(self, dtype: str, rank: int, form: str) -> int:
        """A new tensor in memory of its own."""
        sizes, strides, offset = shaped(SHAPES[rank], form)
        self.storages.append(memory(dtype, sizes, strides, offset, len(self.storages)))
        self.tensors.append(Tensor(len(self.storages) - 1, dtype, sizes, strides, offset, form == "host"))
        return len(self.tensors) - 1

    def view(self, index: int, **changes: object) -> int:
        """Another handle of a tensor's memory."""
        self.tensors.append(replace(self.tensors[index], **changes))  # type: ignore[arg-type]
        return len(self.tensors) - 1


def shaped(sizes: Sizes, form: str) -> tuple[Sizes, Sizes, int]:
    """Sizes, strides and offset of a tensor that lies like this."""
    rank = len(sizes)
    if form.startswith("ones"):
        sizes = tuple(1 if d in (1, rank - 1) else size for d, size in enumerate(sizes))
    if form.startswith("single"):
        sizes = (1, *sizes[1:])[:rank]
    if form.startswith("empty"):
        sizes = tuple(0 if d == (rank > 1 and form == "empty channels") else size for d, size in enumerate(sizes))
    strides = ordered("last" if form.endswith("last") else "first", sizes)
    match form.split()[0]:
        case "reversed":
            strides = tuple(reversed(ordered("first", tuple(reversed(sizes)))))
        case "gaps":
            strides = tuple(2 * stride for stride in strides)
        case "expanded":
            strides = tuple(0 if d == 0 else stride for d, stride in enumerate(strides))
        case "overlapping":
            strides = (1,) * rank
        case "apart":
            strides = tuple(2 * stride if d == 0 else stride for d, stride in enumerate(strides))
        case "ones" | "single":
            strides = tuple(7 if size == 1 else stride for size, stride in zip(sizes, strides, strict=True))
        case "empty":
            strides = tuple(3 * stride for stride in strides)
        case _:
            pass
    return sizes, strides, 3 if form.startswith("offset") else 0


def memory(dtype: str, sizes: Sizes, strides: Sizes, offset: int, seed: int) -> bytes:
    """Small numbers that every dtype holds, complex where it can be; two elements more than the tensor needs."""
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True) if size > 0)
    complexes = dtype.startswith("complex")
    numbers = [complex(1 + (5 * i + 3 * seed) % 7, 0.5 * (i % 3) if complexes else 0) for i in range(last + 3)]
    return b"".join(encoded(dtype, number) for number in numbers)


def first_dtype(parameter: Parameter) -> str:
    return "float32" if "float32" in parameter.dtypes else parameter.dtypes[0]


def composed(
    signature: Signature,
    chosen: dict[str, tuple[str, int, str] | None],
    vendor: Vendor,
    rank: int = 2,
    many: int = 2,
) -> tuple[Call, Composer]:
    """A call with the tensors that are chosen, by parameter; the others are plain. None: the tensor is absent."""
    made = Composer([], [])
    call = Call(signature.symbol, (), ())
    for parameter in signature.parameters:
        plain = (first_dtype(parameter), rank, "contiguous")
        one = chosen.get(parameter.name, plain)
        if parameter.role is Role.CALLEE_OUT:
            continue
        if not parameter.many:
            call.arguments[parameter.name] = None if one is None else made.add(*one)
            continue
        ends = (None if one is None else made.add(*one), made.add(*plain))
        call.lists[parameter.name] = tuple(ends[i % 2] if i < 2 else made.add(*plain) for i in range(many))
    allocate(call, signature, made, vendor)
    return finished(call, made), made


def allocate(call: Call, signature: Signature, made: Composer, vendor: Vendor) -> None:
    """What the function allocates: in the dtype that it computes in."""
    for parameter in signature.parameters:
        if parameter.role is not Role.CALLEE_OUT:
            continue
        dtype = parameter.dtypes[0]
        source = call.arguments.get(parameter.like or "")
        if source is not None:
            dtype = made.tensors[source].dtype
        target = vendor.reading[signature.symbol, parameter.name].dtype(dtype)
        call.results[parameter.name] = Allocation(target, (2, 3), (1, 2))


def finished(call: Call, made: Composer) -> Call:
    return replace(call, storages=tuple(made.storages), tensors=tuple(made.tensors))


# -- families --------------------------------------------------------------------------------------------------


def single(vendors: list[Vendor]) -> Iterator[Pair]:
    """Each tensor of each function alone: all forms of rank 4, and all ranks, in each dtype that it can have."""
    places = [(4, form) for form in FORMS]
    some = ("contiguous", "last", "reversed", "gaps", "expanded", "ones", "ones last", "empty")
    places += [(r, form) for r in SHAPES if r != 4 for form in some]
    for signature in signatures().values():
        for parameter in signature.parameters:
            for vendor in vendors:
                yield from _alone(signature, parameter, vendor, places)


def _alone(signature: Signature, parameter: Parameter, vendor: Vendor, places: list[tuple[int, str]]) -> Iterator[Pair]:
    if parameter.role is Role.CALLEE_OUT:
        return
    wanted = vendor.reading[signature.symbol, parameter.name]
    cast = [source for source, _ in wanted.casts]
    dtypes = dict.fromkeys([first_dtype(parameter), *cast[:1]])
    for dtype, (rank, form) in itertools.product(dtypes, places):
        yield vendor, composed(signature, {parameter.name: (dtype, rank, form)}, vendor)[0]
    for dtype in parameter.dtypes:
        yield vendor, composed(signature, {parameter.name: (dtype, 1, "gaps")}, vendor)[0]
    if parameter.optional or parameter.many:
        yield vendor, composed(signature, {parameter.name: None}, vendor)[0]
    if parameter.many:
        call, made = composed(
            signature, {parameter.name: (cast[0] if cast else first_dtype(parameter), 4, "gaps")}, vendor
        )
        call.lists.pop(parameter.name)
        yield vendor, finished(call, made)


def lists(vendors: list[Vendor]) -> Iterator[Pair]:
    """Lists of many lengths, with the tensor that does not suit at each place, and all of them unsuited."""
    for signature, vendor in itertools.product(signatures().values(), vendors):
        for parameter in signature.parameters:
            if not parameter.many:
                continue
            casts = vendor.reading[signature.symbol, parameter.name].casts
            dtype = casts[0][0] if casts else first_dtype(parameter)
            for length, at in ((0, 0), (1, 0), (2, 1), (8, 7), (9, 0), (9, 8), (20, -1)):
                call, made = composed(signature, {}, vendor, 4, length)
                entries = list(call.lists[parameter.name])
                for i in range(length):
                    if at in (i, -1):
                        entries[i] = made.add(dtype, 4, "gaps")
                call.lists[parameter.name] = tuple(entries)
                yield vendor, finished(call, made)


def aliased(vendors: list[Vendor]) -> Iterator[Pair]:
    """Two parameters of one memory: one handle, two of one view, another order, overlapping, another dtype."""
    for signature, vendor in itertools.product(signatures().values(), vendors):
        taken = [p for p in signature.parameters if p.role is not Role.CALLEE_OUT]
        for one, other in itertools.combinations(taken, 2):
            shared = [d for d in DTYPES if d in one.dtypes and d in other.dtypes]
            for dtype, form in itertools.product(shared[:2], ("contiguous", "gaps")):
                yield from _two(signature, one, other, vendor, dtype, form)


def _two(
    signature: Signature, one: Parameter, other: Parameter, vendor: Vendor, dtype: str, form: str
) -> Iterator[Pair]:
    for how in ("handle", "view", "transposed", "shifted", "reinterpreted"):
        call, made = composed(signature, {one.name: (dtype, 4, form)}, vendor, 4)
        index = call.lists[one.name][0] if one.many else call.arguments[one.name]
        assert index is not None
        tensor = made.tensors[index]
        match how:
            case "view":
                index = made.view(index)
            case "transposed":
                n, c, h, w = tensor.strides
                index = made.view(index, strides=(n, c, w, h))
            case "shifted":
                made.storages[tensor.storage] += bytes(2 * SIZES[dtype])
                index = made.view(index, offset=tensor.offset + 2)
            case "reinterpreted":
                same_size = {"float32": "int32", "float64": "int64", "int64": "float64", "bfloat16": "float16"}
                if same_size.get(dtype) not in other.dtypes or dtype == "int64":
                    continue
                index = made.view(index, dtype=same_size[dtype])
                made.storages[tensor.storage] = bytes(len(made.storages[tensor.storage]))
            case _:
                pass
        if other.many:
            call.lists[other.name] = (*call.lists[other.name][:-1], index)
        else:
            call.arguments[other.name] = index
        call.results.clear()
        allocate(call, signature, made, vendor)
        yield vendor, finished(call, made)


def wide(vendors: list[Vendor]) -> Iterator[Pair]:
    """Numbers that the narrower dtype does not hold: whoever is converted without need shows it."""
    numbers = {"float64": 1 + 2.0**-30, "int64": 2.0**33 + 7}
    for signature, vendor in itertools.product(signatures().values(), vendors):
        if not {target for wanted in vendor.reading.values() for _, target in wanted.casts} <= {"float32", "int32"}:
            continue
        for dtype, number in numbers.items():
            able = {p.name: (dtype, 2, "gaps") for p in signature.parameters if dtype in p.dtypes}
            if not able:
                continue
            call, made = composed(signature, dict(able), vendor)
            for tensor in made.tensors:
                if tensor.dtype == dtype:
                    start = encoded(dtype, complex(number))
                    made.storages[tensor.storage] = start + made.storages[tensor.storage][8:]
            yield vendor, finished(call, made)


def allocations(vendors: list[Vendor]) -> Iterator[Pair]:
    """What functions allocate: the dtype of a cast or any other, every form, nothing, and a null pointer."""
    for signature, vendor in itertools.product(signatures().values(), vendors):
        for parameter in signature.parameters:
            if parameter.role is not Role.CALLEE_OUT:
                continue
            for given, made_of, form in itertools.product(
                ("float32", "float64", "int64"),
                ("float32", "float64", "int64", "int32"),
                ("contiguous", "gaps", "empty"),
            ):
                chosen = {} if parameter.like is None else {parameter.like: (given, 3, "contiguous")}
                call, _ = composed(signature, dict(chosen), vendor)
                sizes, strides, _ = shaped(SHAPES[3], form)
                call.results[parameter.name] = Allocation(made_of, sizes, strides)
                yield vendor, call
            for nothing in (True, False):
                call, _ = composed(signature, {}, vendor)
                if nothing:
                    call.results[parameter.name] = Allocation(None)
                else:
                    del call.results[parameter.name]
                yield vendor, call


def failing(pairs: list[Pair]) -> Iterator[Pair]:
    """Each of these calls once for every step of it, which fails."""
    for vendor, call in pairs:
        model = Model(call, vendor.reading)
        model.transcript()
        for kind, status in _STATUSES.items():
            for nth in range(1, model.counts.get(kind, 0) + 1):
                yield vendor, replace(call, fault=(kind, nth, status))


def silent(pairs: list[Pair]) -> Iterator[Pair]:
    """Each of these calls with a tensor that cannot be asked, at each of the first questions."""
    for vendor, call in pairs:
        for kind, nth in itertools.product(("dtype", "shape", "stride"), range(1, 5)):
            yield vendor, replace(call, fault=(kind, nth, 1))


def mixed(vendors: list[Vendor], many: int, random: Random) -> Iterator[Pair]:
    """Calls whose every tensor is drawn: dtype, rank, form, sharing, absence, and now and then a failure."""
    for _ in range(many):
        vendor = random.choice(vendors)
        signature = random.choice(list(signatures().values()))
        chosen = {p.name: drawn(random, p) for p in signature.parameters}
        call, made = composed(signature, chosen, vendor, random.choice((2, 3, 4, 5)), random.choice((1, 2, 3)))
        if random.random() < 0.5:
            share(random, signature, call, made)
        call.results.clear()
        allocate(call, signature, made, vendor)
        fault = random.choice(list(_STATUSES.items())) if random.random() < 0.3 else None
        done = finished(call, made)
        yield vendor, done if fault is None else replace(done, fault=(fault[0], random.randint(1, 4), fault[1]))


def drawn(random: Random, parameter: Parameter) -> tuple[str, int, str] | None:
    if (parameter.optional or parameter.many) and random.random() < 0.2:
        return None
    return random.choice(parameter.dtypes), random.choice((0, 1, 2, 3, 4, 4, 4, 5, 6)), random.choice(FORMS)


def share(random: Random, signature: Signature, call: Call, made: Composer) -> None:
    """Gives one parameter the tensor of another."""
    names = [n for n, index in call.arguments.items() if index is not None]
    if len(names) < 2:
        return
    one, other = random.sample(names, 2)
    index = call.arguments[one]
    assert index is not None
    if made.tensors[index].dtype in signature.parameter(other).dtypes:
        call.arguments[other] = index if random.random() < 0.5 else made.view(index)

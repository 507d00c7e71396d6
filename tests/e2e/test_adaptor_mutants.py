"""Plants faults in the adaptor, one at a time: in its run time, its templates, its generator. The lab must see each.

A mutant is one file with one place changed. The lab is built with it and asked the calls of the matrix; what it answers
must differ from what docs/adaptor.md says, or it must not end well.
"""

import importlib
import itertools
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest

from tests.cpp.adaptor.lab import matrix
from tests.cpp.adaptor.lab.bench import END, Vendor, vendor
from tests.cpp.adaptor.lab.calls import text
from tests.cpp.adaptor.lab.oracle import Model
from tests.cpp.adaptor.lab.program import (
    HERE,
    RUNTIME,
    Adaptor,
    Parts,
    bench_parts,
    compile_objects,
    link,
)
from tests.unit.vendor.small_project import ROOT

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="no g++"),
]

FLAGS = ("-O0", "-w")

CONFIG = """
- common_config: {dtype: '(float64)->float32, (int64)->int32', layout: NHWC}
- diopiLayered:
    layout: NLC, NHWC, NCHW, NDHWC, weight(NCHW)
    tensor_dtype: {input: (float64)->float32, bias: (float64)->float16}
- diopiEverything: {layout: 'NHWC, state(NCHW), outs(NCHW)', contiguous: scratch}
- diopiMomentum: {layout: 'params(NCHW)', contiguous: true}
- ops: [diopiAdd, diopiSgd]
  contiguous: true
- diopiPool: {layout: ND}
"""

RUN_TIME = "runtime_cpp/adaptor"
CONTRACT = "runtime_cpp/contract"
TARGET = "generators/diopigen/targets/adaptor"
TEMPLATES = "templates/adaptor"
CALLED = '{{ function.call | join("\\n") | indent(8) }}\n    });'


@dataclass(frozen=True, slots=True)
class Mutant:
    """One place of one file, before and after."""

    kind: str
    folder: str
    file: str  # e.g. "call.cpp"
    before: str
    after: str


def in_call(kind: str, before: str, after: str) -> Mutant:
    return Mutant(kind, RUN_TIME, "call.cpp", before, after)


def in_order(kind: str, before: str, after: str) -> Mutant:
    return Mutant(kind, CONTRACT, "memory_order.h", before, after)


def in_layout(kind: str, before: str, after: str) -> Mutant:
    return Mutant(kind, RUN_TIME, "layout.cpp", before, after)


MUTANTS = (
    in_call(
        "layouts are not copied back",
        "return move(slot, slot.destination, slot.temporary);",
        "return slot.dtype == slot.target ? diopiSuccess : move(slot, slot.destination, slot.temporary);",
    ),
    in_call("copied back after a failure", "status == diopiSuccess && i < used_", "i < used_"),
    in_call(
        "unchecked status of a conversion",
        "check(move(slot, slot.temporary, slot.original))",
        "(move(slot, slot.temporary, slot.original), true)",
    ),
    in_call("another handle of a tensor is not known", "if (same_form(description, theirs)) return &slot;", ""),
    in_call("an output loses the input that it is", "slot.original != nullptr &&", "slot.filled &&"),
    in_call("shared although the order differs", " && slot.order == order", ""),
    in_call("shared although the dtype differs", "slot.target == target && ", ""),
    in_call("shared although the strides differ", " &&\n           equal(a.strides, b.strides, a.rank)", ""),
    in_call("shared although the memory differs", "place == other_place && ", ""),
    in_call("converts tensors of the host", "if (on_host(tensor)) return unchanged;", ""),
    in_call("does not fill an inout", "use != Use::out && !slot->filled", "use == Use::in && !slot->filled"),
    in_call("fills an output", "use != Use::out && !slot->filled", "!slot->filled"),
    in_call("fills a shared tensor twice", "!slot->filled && !fill", "!fill"),
    in_call("an allocated output is not replaced", "*slot.allocated = restored;", ";"),
    in_call(
        "an allocated output keeps its dtype",
        "require(description, slot.dtype, Order::any)",
        "require(description, slot.target, Order::any)",
    ),
    in_call("an allocated output of any dtype is cast", " || description.dtype != slot.target", ""),
    in_call(
        "a temporary keeps strides that do not suit",
        "lies_in(order, description.sizes, description.strides, rank) &&\n        ",
        "",
    ),
    in_call(
        "a temporary keeps expanded strides",
        " &&\n        is_dense(description.sizes, description.strides, rank)",
        "",
    ),
    in_call(
        "temporaries are kept after a failure",
        "give_back(slots_[i].temporary);",
        "if (status == diopiSuccess) give_back(slots_[i].temporary);",
    ),
    in_call(
        "unchecked status of a temporary",
        "if (!check(diopiRequireTensor(ctx_, &tensor, &sizes, &strides, dtype, diopi_device))) return nullptr;",
        "static_cast<void>(diopiRequireTensor(ctx_, &tensor, &sizes, &strides, dtype, diopi_device));",
    ),
    Mutant(
        "calls the function after a failure",
        RUN_TIME,
        "call.h",
        "status_ == diopiSuccess ? guarded(function_, function) : status_",
        "function()",
    ),
    Mutant(
        "an output is known by nobody", RUN_TIME, "call.h", "convert(tensor, tensor, rule, Use::out, name)", "tensor"
    ),
    in_order("the stride of a size of 1 matters", "sizes_[dim] == 1 || ", ""),
    in_order("an empty tensor has an order", "return packed_ || block_ == 0;", "return packed_;"),
    in_order("the batch lies anywhere", "packing.visit(0);\n", ""),
    in_order("rows lie anywhere", "dim >= 2; --dim", "dim >= 3; --dim"),
    Mutant(
        "takes one order only",
        RUN_TIME,
        "layout.h",
        "return diopi_order_contiguous | diopi_order_channels_last;",
        "return diopi_order_contiguous;",
    ),
    Mutant("any known order suits", RUN_TIME, "rule.h", "(tensor.orders & suiting) != 0", "tensor.orders != 0"),
    Mutant(
        "images lie as all others do",
        RUN_TIME,
        "rule.h",
        "rank == 4) return kNamed<Rank4>",
        "rank == 4) return kOthers",
    ),
    in_layout("swaps the orders", "if (!is_last(order) || rank < 3)", "if (is_last(order) || rank < 3)"),
    in_layout("a size of 1 makes gaps", "if (sizes[d] != 1) dims", "dims"),
    Mutant("contiguous is forgotten", RUN_TIME, "rule.h", "order == Order::any ? others_ : order", "order"),
    Mutant(
        "planes of one dimension are forgotten", RUN_TIME, "rule.h", "rank >= 3 && rank <= 5", "rank >= 4 && rank <= 5"
    ),
    Mutant(
        "the last entry of a list is missed",
        RUN_TIME,
        "list.h",
        "tensors != nullptr && i < count",
        "tensors != nullptr && i + 1 < count",
    ),
    Mutant(
        "the caller's list is written",
        RUN_TIME,
        "list.h",
        "if (data_ == tensors && !own(call, tensors, count)) return;",
        "",
    ),
    Mutant(
        "a long list loses its end",
        RUN_TIME,
        "list.h",
        "i < count; ++i) data_[i]",
        "i < count && i < kInline; ++i) data_[i]",
    ),
    Mutant("an inout is taken for an output", TARGET, "view.py", 'Role.INOUT: "inout"}', 'Role.INOUT: "out"}'),
    Mutant("an output is taken for an inout", TARGET, "view.py", 'Role.OUT: "out"', 'Role.OUT: "inout"'),
    Mutant("an inout is taken for an input", TARGET, "view.py", 'Role.INOUT: "inout"}', 'Role.INOUT: "in"}'),
    Mutant("the function gets the originals", TARGET, "view.py", "renamed.get(arg.name, arg.name)", "arg.name"),
    Mutant("the last layout is made", TARGET, "rules.py", "orders[0] == CONTIGUOUS", "orders[-1] == CONTIGUOUS"),
    Mutant("two layouts are one", TARGET, "rules.py", ' if len(orders) == 1 else f"prefer_{first}"', ""),
    Mutant(
        "contiguous tensors of some ranks only",
        TARGET,
        "rules.py",
        "conversion.contiguous or of_rank(conversion.layouts, None)",
        "conversion.contiguous",
    ),
    Mutant(
        "the status is lost",
        TEMPLATES,
        "adaptor.cpp.j2",
        "return {{ function.call_name }}.run([&] {\n        " + CALLED,
        "{{ function.call_name }}.run([&] {\n        " + CALLED + "\n    return diopiSuccess;",
    ),
)


@dataclass(frozen=True, slots=True)
class Bench:
    """What all mutants share: compiled parts, the calls, and what they must answer."""

    parts: Parts
    objects: dict[str, Path]  # of the adaptor as it is, by the names of the sources
    vendor: Vendor
    asked: Path
    expected: Path


def pairs(vendor_: Vendor) -> list[matrix.Pair]:
    """A part of the matrix for one configuration."""
    vendors = [vendor_]
    drawn = [(v, replace(call, fault=None)) for v, call in matrix.mixed(vendors, 400, Random(5))]
    families = (matrix.single(vendors), matrix.lists(vendors), matrix.aliased(vendors), matrix.allocations(vendors))
    return [*itertools.chain(*families), *matrix.failing(drawn)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """What all mutants share: the lab without a fault, calls, and what it should answer."""
    folder = tmp_path_factory.mktemp("bench")
    made = vendor(CONFIG, tmp_path_factory.mktemp("vendor"), Adaptor())
    parts = bench_parts(folder, FLAGS)
    sources = [HERE / "whole.cpp", *sorted((RUNTIME / "adaptor").glob("*.cpp"))]
    for path, text_ in made.texts.items():
        sources.append(folder / Path(path).name)
        sources[-1].write_text(text_, encoding="utf-8")
    objects = compile_objects(sources, [parts.headers, HERE, RUNTIME], FLAGS)
    calls = pairs(made)
    asked, expected = folder / "asked.txt", folder / "expected.txt"
    asked.write_text("".join(text(call, {}) for _, call in calls), encoding="utf-8")
    expected.write_text("".join(Model(call, v.reading).transcript() + END for v, call in calls), encoding="utf-8")
    return Bench(parts, {s.name: o for s, o in zip(sources, objects, strict=True)}, made, asked, expected)


def answers(bench: Bench, objects: dict[str, Path], folder: Path) -> str | None:
    """What the lab of these objects answers; None if it does not end well."""
    lab = link([*bench.parts.objects, *objects.values()], folder / "lab", FLAGS)
    with bench.asked.open(encoding="utf-8") as asked:
        try:
            ran = subprocess.run([str(lab)], stdin=asked, capture_output=True, text=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            return None
    return ran.stdout if ran.returncode == 0 else None


def mutated(mutant: Mutant, folder: Path) -> Path:
    """A copy of the mutant's folder with the fault; the adaptor includes the contract's headers from beside itself."""
    copied = folder / "mutant" / Path(mutant.folder).name
    for name in {RUN_TIME, CONTRACT} if mutant.folder in (RUN_TIME, CONTRACT) else {mutant.folder}:
        shutil.copytree(ROOT / name, copied.parent / Path(name).name, ignore=shutil.ignore_patterns("__pycache__"))
    source = (copied / mutant.file).read_text(encoding="utf-8")
    assert source.count(mutant.before) == 1, f"'{mutant.before}' is not one place in {mutant.file}; choose another"
    (copied / mutant.file).write_text(source.replace(mutant.before, mutant.after), encoding="utf-8")
    return copied


def generator_of(copied: Path, folder: Path) -> Adaptor:
    """The generator's target from the copied folder."""
    package = f"mutant_{abs(hash(str(folder)))}"
    renamed = folder / package
    copied.rename(renamed)
    for module in renamed.glob("*.py"):
        source = module.read_text(encoding="utf-8")
        module.write_text(source.replace("diopigen.targets.adaptor", package), encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        return Adaptor(outputs=importlib.import_module(package).outputs)
    finally:
        sys.path.remove(str(folder))


def objects_of(mutant: Mutant, bench: Bench, folder: Path) -> dict[str, Path]:
    """The objects of the adaptor with the fault; what it does not reach is not compiled again."""
    copied = mutated(mutant, folder)
    runtime, texts = RUNTIME, {}
    changed = [copied / mutant.file]
    if mutant.folder in (RUN_TIME, CONTRACT):
        runtime = copied.parent
        if mutant.file.endswith(".h"):
            changed, texts = sorted((runtime / "adaptor").glob("*.cpp")), bench.vendor.texts
        if mutant.folder == CONTRACT:
            changed.append(HERE / "whole.cpp")  # the framework: of two inline functions the linker takes the first
    else:
        adaptor = Adaptor(templates=copied.parent) if mutant.folder == TEMPLATES else generator_of(copied, folder)
        changed, texts = [], vendor(CONFIG, folder, adaptor).texts
    for path, text_ in texts.items():
        changed.append(folder / Path(path).name)
        changed[-1].write_text(text_, encoding="utf-8")
    compiled = compile_objects(changed, [bench.parts.headers, HERE, runtime], FLAGS)
    return {**bench.objects, **{source.name: object_ for source, object_ in zip(changed, compiled, strict=True)}}


def test_the_adaptor_answers_as_it_should(bench: Bench, tmp_path: Path) -> None:
    assert answers(bench, bench.objects, tmp_path) == bench.expected.read_text(encoding="utf-8")


OTHERS = pytest.mark.deep("mutants", "each fifth fault; the lab that sees them runs in tests/cpp/adaptor as it is")


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(mutant, marks=OTHERS if number % 5 else ()) for number, mutant in enumerate(MUTANTS)],
    ids=lambda m: f"{m.file}-{m.kind}".replace(" ", "-"),
)
def test_the_lab_sees_the_mutant(mutant: Mutant, bench: Bench, tmp_path: Path) -> None:
    expected = bench.expected.read_text(encoding="utf-8")
    found = answers(bench, objects_of(mutant, bench, tmp_path), tmp_path)
    seen = 0 if found is None else sum(a != b for a, b in zip(found.split(END), expected.split(END), strict=False))
    print(f"{mutant.file}, {mutant.kind}: {'does not end well' if found is None else f'{seen} calls differ'}")
    assert found != expected

"""Each word of the vocabulary is said once, and a new element type is one row of dtypes.yaml."""

import ast
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from diopi_conformance.values import elements
from diopigen.cli import cli
from diopigen.project import Project
from diopigen.records.codec import OtherVersion, record_of, record_text
from diopigen.records.operators import Operators
from diopigen.records.patterns import Patterns
from diopigen.records.target import TargetFile
from diopigen.vocabulary.checks import CHECKS
from diopigen.vocabulary.codec import dtypes_of, vocabulary_text
from diopigen.vocabulary.draws import DRAWS
from diopigen.vocabulary.layouts import LAYOUTS
from diopigen.vocabulary.loaded import DTYPE, DTYPES

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "generators/diopigen",
    "conformance/diopi_conformance",
    "python/dicp/dicp",
    "python/op_tools/op_tools",
)
LISTED = Path(__file__).with_name("quoted_words.yaml")

# What the words of checks and draws mean that have no underscore depends on the place: "index" is an argument, too.
WORDS = frozenset(
    {
        *(word for dtype in DTYPES.types for word in (dtype.name, dtype.word)),
        *(word for layout in LAYOUTS for word in (layout.name, layout.word)),
        *(each.name for each in (*CHECKS, *DRAWS) if "_" in each.name),
    }
)


def quoted(path: Path) -> int:
    """The strings of a Python file that are words of the vocabulary."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return sum(isinstance(node, ast.Constant) and node.value in WORDS for node in ast.walk(tree))


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def test_words_of_the_vocabulary_are_quoted_where_the_list_says_and_nowhere_else() -> None:
    """The list may only shrink: what is quoted no longer leaves it."""
    outside = (path for path in sources() if "vocabulary" not in path.parts)
    found = {path.relative_to(ROOT).as_posix(): count for path in outside if (count := quoted(path))}
    assert found == yaml.safe_load(LISTED.read_text(encoding="utf-8"))


ROW = (
    "  f8: {word: float8_e5m2, value: 17, size: 1, kind: float, digits: 3, exponent: 5, cpp: Float8, "
    "torch: float8_e5m2, scalar_type: Float8_e5m2, numpy: uint8}\n"
)
OPS = """
negated:
  doc: The negative of `input`.
  args: {input: Tensor<T>}
  out: Tensor<T> like input
  where: {T: [f8, f32]}
  kernel: -input
  aten: neg
  cases: [{input: [4]}]
"""
TYPE = """
namespace diopi::kernels {
struct Float8 {
    uint8_t bits;
    Float8() = default;
    explicit Float8(float) : bits(0) {}
    operator float() const { return bits; }
};
}  // namespace diopi::kernels
"""
USE = """
#include "adaptor/range.cpp"
#include "composite/number.h"
#include "core/tensor.h"

using namespace diopi;
static_assert(kernels::dtype_of<kernels::Float8> == diopi_dtype_float8_e5m2);
static_assert(kernels::is_in<kernels::Storable>(diopi_dtype_float8_e5m2));
static_assert(composite::is_float(diopi_dtype_float8_e5m2) && composite::width(diopi_dtype_float8_e5m2) == 8);
static_assert(composite::promote(diopi_dtype_float8_e5m2, diopi_dtype_int32) == diopi_dtype_float8_e5m2);
double read(const kernels::TensorView& tensor) { return kernels::load_as<double>(tensor, 0); }
void write(const kernels::TensorView& tensor) { kernels::store_as(tensor, 0, 1.0); }
"""


@pytest.fixture
def with_new_type(miniature: Callable[..., Project], monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with an operator of an element type that no other file names."""
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(ROOT / ".cache" / "diopigen"))
    project = miniature({"tests.yaml": OPS}, {"chip": {"vendor.yaml": "doc: A chip.\n"}})
    path = project.schemas / "dtypes.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("sets:\n", ROW + "sets:\n"), encoding="utf-8")
    project.runtime.unlink()
    shutil.copytree(ROOT / "runtime_cpp", project.runtime)
    with (project.runtime / "kernels" / "core" / "half.h").open("a", encoding="utf-8") as types:
        types.write(TYPE)
    return project


def test_a_new_element_type_is_one_row(with_new_type: Project) -> None:
    root = with_new_type.root
    result = CliRunner().invoke(cli, ["--project", str(root), "all", "--vendor", "chip"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    plan = json.loads((root / "generated/chip/conformance/plan.json").read_text(encoding="utf-8"))
    assert "negated/f8/0" in {case["id"] for case in plan["cases"]}
    assert "_(float8_e5m2, Float8_e5m2)" in (root / "generated/include/diopi/dtypes.h").read_text(encoding="utf-8")
    folders = (root / f for f in ("generated/include", "runtime_cpp", "runtime_cpp/kernels", "runtime_cpp/adaptor"))
    command = ["g++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *(f"-I{f}" for f in folders)]
    compiled = subprocess.run([*command, "-x", "c++", "-"], input=USE, text=True, capture_output=True)
    assert compiled.returncode == 0, compiled.stderr


@pytest.mark.parametrize(
    "row",
    [
        {"torch": "float8_e5m2", "digits": 3, "exponent": 5},
        {"torch": "float8_e4m3fn", "digits": 4, "exponent": 4, "finite": True},
        {"torch": "bfloat16", "digits": 8, "exponent": 8, "size": 2, "numpy": "uint16"},
    ],
    ids=lambda row: row["torch"],
)
def test_numbers_of_a_float_that_numpy_lacks_are_rounded_as_torch_rounds_them(
    row: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    usual = {"name": "new", "word": "new", "value": 17, "size": 1, "kind": "float", "numpy": "uint8", "also": []}
    dtype = dtypes_of({"types": [{**usual, **row}], "sets": {}}).types[0]
    stored = np.dtype(dtype.numpy)
    monkeypatch.setitem(DTYPE, "new", dtype)
    monkeypatch.setitem(elements._STORAGE, "new", stored)
    elements._numbers.cache_clear()
    there, bits = getattr(torch, row["torch"]), getattr(torch, stored.name)
    words = np.arange(1 << 8 * dtype.size).astype(stored)
    held = torch.from_numpy(words).view(there).double().numpy()
    np.testing.assert_array_equal(elements.decode(words, "new"), held)
    drawn = np.random.default_rng(0).standard_normal(20000) * np.logspace(-45, 37, 20000)
    drawn = np.concatenate([drawn, [0.0, -0.0, np.inf, -np.inf, dtype.largest, -1.01 * dtype.largest]])
    with np.errstate(over="ignore"):
        single = drawn.astype(np.float32)
    if row.get("finite") and torch.tensor(np.inf).to(there).isnan():
        single = single[np.abs(single) <= dtype.largest]  # torch 2.11 makes NaN of what lies beyond
    expected = torch.from_numpy(single).to(there).view(bits).numpy()
    np.testing.assert_array_equal(elements.encode(single, "new"), expected)
    assert dtype.largest == torch.finfo(there).max
    elements._numbers.cache_clear()


def test_the_vocabulary_is_as_it_was_written(checkout: Project) -> None:
    text = (checkout.schemas / "vocabulary.json").read_text(encoding="utf-8")
    assert vocabulary_text(dtypes_of(json.loads(text))) == text
    assert dtypes_of(json.loads(text)) == DTYPES


@pytest.mark.parametrize(
    ("kind", "name", "sort_keys"), [(Operators, "operators.json", True), (Patterns, "patterns.json", False)]
)
@pytest.mark.parametrize("vendor", ["chip", "card", "mirror"])
def test_a_record_is_as_it_was_written(kind: type, name: str, sort_keys: bool, vendor: str) -> None:
    text = (ROOT / "tests/golden/expected" / vendor / "compiler" / name).read_text(encoding="utf-8")
    assert record_text(record_of(kind, json.loads(text)), sort_keys=sort_keys) == text


def test_a_record_of_another_form_is_refused() -> None:
    document = {"functions": {}, "kernels": {}, "operators": {}, "separate_elements": []}
    with pytest.raises(OtherVersion, match="it is of version 0, not 7"):
        record_of(Operators, {"version": 0, **document})
    with pytest.raises(ValueError, match=r"'kernels': Input should be a valid dictionary"):
        record_of(Operators, {"version": 7, **document, "kernels": 1})
    with pytest.raises(ValueError, match=r"'compiler': Field required"):
        record_of(TargetFile, {"vendor": "chip"})


def test_nobody_else_reads_what_records_read() -> None:
    """What crosses a border is parsed by the codec; json.loads is for files of a package's own."""
    named = ("operators.json", "patterns.json", "vocabulary.json")
    files = [
        path for path in sources() if "json.load" in (text := path.read_text("utf-8")) and any(n in text for n in named)
    ]
    allowed = {
        "generators/diopigen/vocabulary/loaded.py",
        "python/dicp/dicp/target.py",
    }  # target.json, for its "@FOLDER@"
    assert {path.relative_to(ROOT).as_posix() for path in files} <= allowed

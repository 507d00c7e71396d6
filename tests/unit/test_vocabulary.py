"""Each word of the vocabulary is said once, and a new element type is one row of dtypes.yaml."""

import ast
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

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
USE = """
#include <cstdint>
namespace diopi::kernels {
struct Float8 {
    uint8_t bits;
    Float8() = default;
    explicit Float8(float) : bits(0) {}
    operator float() const { return bits; }
};
}  // namespace diopi::kernels
#include "adaptor/range.cpp"
#include "composite/number.h"
#include "kernels/core/tensor.h"

using namespace diopi;
static_assert(kernels::dtype_of<kernels::Float8> == diopi_dtype_float8_e5m2);
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
    return project


def test_a_new_element_type_is_one_row(with_new_type: Project) -> None:
    root = with_new_type.root
    result = CliRunner().invoke(cli, ["--project", str(root), "all", "--vendor", "chip"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    plan = json.loads((root / "generated/chip/conformance/plan.json").read_text(encoding="utf-8"))
    assert "negated/f8/0" in {case["id"] for case in plan["cases"]}
    assert "_(float8_e5m2, Float8_e5m2)" in (root / "generated/include/diopi/dtypes.h").read_text(encoding="utf-8")
    folders = (root / "generated/include", ROOT / "runtime_cpp", ROOT / "runtime_cpp/adaptor")
    command = ["g++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *(f"-I{f}" for f in folders)]
    compiled = subprocess.run([*command, "-x", "c++", "-"], input=USE, text=True, capture_output=True)
    assert compiled.returncode == 0, compiled.stderr


def test_numbers_of_a_new_float_are_rounded_as_torch_rounds_them(
    with_new_type: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    row = dict(yaml.safe_load(ROW)["f8"], name="f8", also=[], signed=True)
    dtype = dtypes_of({"types": [row], "sets": {}}).types[0]
    monkeypatch.setitem(DTYPE, "f8", dtype)
    monkeypatch.setitem(elements._STORAGE, "f8", np.dtype(np.uint8))
    words = np.arange(256, dtype=np.uint8)
    held = torch.from_numpy(words).view(torch.float8_e5m2).double().numpy()
    np.testing.assert_array_equal(elements.decode(words, "f8"), held)
    drawn = np.random.default_rng(0).standard_normal(10000) * np.logspace(-6, 5, 10000)
    expected = torch.from_numpy(drawn).float().to(torch.float8_e5m2).view(torch.uint8).numpy()
    np.testing.assert_array_equal(elements.encode(drawn.astype(np.float32), "f8"), expected)
    assert dtype.largest == torch.finfo(torch.float8_e5m2).max


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
    document = {"functions": {}, "kernels": {}, "operators": {}}
    with pytest.raises(OtherVersion, match="it is of version 0, not 4"):
        record_of(Operators, {"version": 0, **document})
    with pytest.raises(ValueError, match=r"'kernels': Input should be a valid dictionary"):
        record_of(Operators, {"version": 4, **document, "kernels": 1})
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

"""Entries read from a header give its functions again, say what is guessed, and touch nothing that is there."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from diopigen import pipeline
from diopigen.c_spelling import c_args
from diopigen.cli import cli
from diopigen.diagnostics import Diagnostics
from diopigen.model.op import Role
from diopigen.model.program import Program
from diopigen.project import Project
from diopigen.source.cpp.c_interface import read_interface
from diopigen.source.guess.ops import guess_op
from diopigen.targets import header
from diopigen.targets.output import renderer

HEADERS = ("functions", "functions_ext", "functions_lmdeploy", "functions_mmcv", "functions_sparse")

LIBRARY = """\
#include "diopirt.h"
extern "C" {
/**
 * @brief Shrinks `input`: towards zero, that is.
 * @param[in] lambd how far
 */
DIOPI_API diopiError_t diopiShrink(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                   const diopiScalar_t* lambd);
DIOPI_API diopiError_t diopiShrinkInp(diopiContextHandle_t ctx, diopiTensorHandle_t input, const diopiScalar_t* lambd);
DIOPI_API diopiError_t diopiPickNMSV2(diopiContextHandle_t ctx, diopiTensorHandle_t* kept, int64_t* count,
                                      diopiConstTensorHandle_t* boxes, int64_t num_boxes,
                                      diopiConstTensorHandle_t box_ids, const double threshold, const int64_t* dim);
DIOPI_API diopiError_t diopiUnnamed(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, int64_t);
DIOPI_API diopiError_t diopiWait(diopiContextHandle_t ctx, int64_t milliseconds);
/**
 * @param[in]      ctx    Context environment.
 * @param[in,out]  state  the state
 * @param[in]      grad   the gradient, which is not const
 * @param[out]     norm   its norm
 */
DIOPI_API diopiError_t diopiStep(diopiContextHandle_t ctx, diopiTensorHandle_t state, diopiTensorHandle_t grad,
                                 diopiTensorHandle_t norm);
int32_t chipTemperature(void);
}
"""
IMPORTED = """\
# yaml-language-server: $schema=../op.schema.json
# Read from functions_ext.h. What stands after "guessed:" is to be checked, and the remark removed.
shrink:
  doc: >-  # guessed
    Shrinks input: towards zero, that is.
  header: functions_ext
  args:
    input: Tensor<T>  # guessed: of the common type, never null
    lambd: Scalar
  out:
    out: Tensor<T> like input  # guessed: written and not read, its shape
  where: {T: any}  # guessed
  variants: [out, inplace]

pick_nmsv2:
  doc: >-  # guessed
    To be described: PickNMSV2.
  header: functions_ext
  name: PickNMSV2
  args:
    boxes: Tensor<T>[num_boxes]  # guessed: of the common type, never null
    box_ids: Tensor<i64>  # guessed: i64, by its name, never null
    threshold: float
    dim: Dim?  # guessed: a dimension, by its name
  out:
    kept: new Tensor<T> like any  # guessed: allocated by the function, its shape
    count: host int  # guessed: written by the function
  where: {T: any}  # guessed
  c: {threshold: "const double"}  # as the header spells it

unnamed:
  doc: >-  # guessed
    To be described: Unnamed.
  header: functions_ext
  args:
    arg2: Tensor<T>  # guessed: of the common type, never null
    arg3: int
  out:
    arg1: Tensor<T> like arg2  # guessed: written and not read, its shape
  where: {T: any}  # guessed

step:
  doc: >-  # guessed
    To be described: Step.
  header: functions_ext
  args:
    state: inout Tensor<T>
    grad: Tensor<T>  # guessed: of the common type, never null
  out:
    norm: Tensor<T> like grad  # guessed: its shape
  where: {T: any}  # guessed
  order: [state, grad, norm]  # as the header has it
  c: {grad: "diopiTensorHandle_t"}  # as the header spells it
"""


@pytest.fixture
def empty(miniature: Callable[..., Project], monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project without an op."""
    project = miniature({})
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(project.root / ".cache"))
    return project


def run(project: Project, *words: object) -> Result:
    return CliRunner().invoke(cli, ["--project", str(project.root), "import-header", *map(str, words)])


def contract(project: Project) -> Program:
    diagnostics = Diagnostics()
    program = pipeline.run(project, diagnostics)
    assert program is not None and not diagnostics.found
    return program


def signatures(program: Program) -> dict[str, tuple[str, list[str]]]:
    return {f.symbol: (f.header, [str(arg) for arg in c_args(f)]) for f in program.functions}


def write_headers(program: Program, templates: Path, folder: Path) -> Path:
    for output in header.outputs(program, renderer(templates)):
        path = folder / output.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(output.text, encoding="utf-8")
    return folder / "include" / "diopi"


def test_the_whole_contract_comes_back_from_its_headers(empty: Project, checkout: Project, tmp_path: Path) -> None:
    program = contract(checkout)
    include = write_headers(program, checkout.templates, tmp_path)
    for name in HEADERS:
        result = run(empty, include / f"{name}.h", "--out", empty.schemas / "ops" / f"{name}.yaml")
        assert result.exit_code == 0, result.stderr
    assert signatures(contract(empty)) == signatures(program)


def test_what_was_taken_out_is_put_back(empty: Project, checkout: Project, tmp_path: Path) -> None:
    program = contract(checkout)
    include = write_headers(program, checkout.templates, tmp_path)
    topic = checkout.schemas / "ops" / "reduction.yaml"
    entries = topic.read_text(encoding="utf-8").split("\n\n")
    gone = random.Random(3).sample(range(1, len(entries)), 5)
    kept = "\n\n".join(entry for at, entry in enumerate(entries) if at not in gone)
    for path in sorted((checkout.schemas / "ops").glob("*.yaml")):
        text = kept if path == topic else path.read_text(encoding="utf-8")
        (empty.schemas / "ops" / path.name).write_text(text, encoding="utf-8")
    before = contract(empty)
    assert len(before.ops) == len(program.ops) - len(gone)
    assert run(empty, include / "functions.h", "--out", empty.schemas / "ops" / "imported.yaml").exit_code == 0
    assert signatures(contract(empty)) == signatures(program)


def test_what_is_written_and_what_is_said(empty: Project, tmp_path: Path) -> None:
    library = tmp_path / "functions_ext.h"
    library.write_text(LIBRARY, encoding="utf-8")
    result = run(empty, library)
    assert result.stdout == IMPORTED
    assert result.exit_code == 1
    assert result.stderr == f"""\
{library}:14:24: error[not-importable]: no entry gives 'diopiWait': 'wait' writes nothing
    14 | DIOPI_API diopiError_t diopiWait(diopiContextHandle_t ctx, int64_t milliseconds);
       |                        ^^^^^^^^^ write its entry by hand
{library}:23:9: warning[not-an-operator]: 'chipTemperature' is no operator, and no entry is written for it
    23 | int32_t chipTemperature(void);
       |         ^^^^^^^^^^^^^^^ an operator takes a diopiContextHandle_t first and returns a diopiError_t
1 error, 1 warning
{library}: 6 of 7 functions are in no schema; 4 entries give 5 of them
"""


@pytest.mark.parametrize(("comments", "share"), [(True, 1.0), (False, 0.95)])
def test_roles_are_guessed_well(comments: bool, share: float, checkout: Project, tmp_path: Path) -> None:
    """With comments as Doxygen has them every role is right; by names and const alone nearly all are."""
    program = contract(checkout)
    include = write_headers(program, checkout.templates, tmp_path)
    diagnostics = Diagnostics()
    read = read_interface(sorted(include.glob("functions*.h")), [include.parent], str, diagnostics)
    assert read is not None
    right, total = 0, 0
    for function in read.functions:
        meant = program.function(function.name)
        if meant is None:
            continue
        guess = guess_op(function if comments else replace(function, directions=()), "functions", [])
        written = {line.name: line.written for line in (*guess.args, *guess.outs)}
        results = {line.name for line in guess.outs}
        for param in meant.params:
            if param.tensor is not None:
                found = (written[param.name], param.name in results)
                right += found == (param.role is not Role.IN, param.role in (Role.OUT, Role.CALLEE_OUT))
                total += 1
    assert total > 1500
    assert right / total >= share


def test_nothing_is_lacking(empty: Project, checkout: Project, tmp_path: Path) -> None:
    include = write_headers(contract(empty), checkout.templates, tmp_path)
    result = run(empty, include / "functions.h")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "0 of 3 functions are in no schema" in result.stderr


def test_a_broken_header_gives_no_entries(empty: Project, tmp_path: Path) -> None:
    library = tmp_path / "functions.h"
    library.write_text(LIBRARY.replace("diopirt.h", "chip.h"), encoding="utf-8")
    result = run(empty, library, "--out", tmp_path / "ops.yaml")
    assert result.exit_code == 1
    assert f"{library}:1:10: error[broken-header]" in result.stderr
    assert not (tmp_path / "ops.yaml").exists()


def test_no_file_is_overwritten(empty: Project, tmp_path: Path) -> None:
    library, mine = tmp_path / "functions.h", tmp_path / "mine.yaml"
    library.write_text(LIBRARY, encoding="utf-8")
    mine.write_text("mine\n", encoding="utf-8")
    result = run(empty, library, "--out", mine)
    assert result.exit_code == 2
    assert f"{mine} is there already; name a new file" in " ".join(result.stderr.split())
    assert mine.read_text(encoding="utf-8") == "mine\n"


DECLARATORS = """\
#include "diopirt.h"
extern "C" {
diopiError_t diopiShaped(diopiContextHandle_t ctx, diopiTensorHandle_t out, const int64_t shape[4]);
diopiError_t diopiCalled(diopiContextHandle_t ctx, diopiTensorHandle_t out, void (*callback)(int, const char*));
diopiError_t diopiRows(diopiContextHandle_t ctx, diopiTensorHandle_t out, int64_t rows[2][3]);
diopiError_t diopiTable(diopiContextHandle_t ctx, diopiTensorHandle_t out, float (*table)[3], char name[]);
diopiError_t diopiListed(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t x[], int64_t num);
diopiError_t diopiWide(diopiContextHandle_t ctx, diopiTensorHandle_t out, unsigned long n, const float* const w);
}
"""
REFUSED = """\
#include "diopirt.h"
typedef int (*callback)(void*);
struct opaque;
diopiError_t diopiMore(diopiContextHandle_t ctx, diopiTensorHandle_t out, int64_t n, ...);
diopiError_t diopiUnknown(diopiContextHandle_t ctx, diopiTensorHandle_t out, callback call);
diopiError_t diopiHidden(diopiContextHandle_t ctx, diopiTensorHandle_t out, struct opaque* state);
diopiError_t diopiReserved(diopiContextHandle_t ctx, diopiTensorHandle_t out, int64_t requires);
diopiError_t diopiPicked(diopiContextHandle_t ctx, diopiTensorHandle_t out, int (*(*pick)(int))(void));
"""


def test_declarators_come_back(empty: Project, checkout: Project, tmp_path: Path) -> None:
    path = tmp_path / "functions.h"
    path.write_text(DECLARATORS, encoding="utf-8")
    out = empty.schemas / "ops" / "imported.yaml"
    done = run(empty, str(path), "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "6 entries give 6 of them" in done.output
    diagnostics = Diagnostics()
    program = pipeline.run(empty, diagnostics)
    assert program is not None and not diagnostics.failed
    text = next(o.text for o in header.outputs(program, renderer(empty.templates)) if o.path.endswith("functions.h"))
    declared = " ".join(text.split())
    assert "const int64_t* shape);" in declared and "void (*callback)(int, const char*));" in declared
    assert "int64_t (*rows)[3]);" in declared and "float (*table)[3], char* name);" in declared
    assert "diopiConstTensorHandle_t* x, int64_t num);" in declared
    assert "unsigned long n, const float*const w);" in declared


def test_what_no_entry_can_declare_is_told_and_not_counted(empty: Project, tmp_path: Path) -> None:
    path = tmp_path / "functions.h"
    path.write_text(REFUSED, encoding="utf-8")
    done = run(empty, str(path))
    assert done.exit_code == 1
    for symbol, reason in (
        ("diopiMore", "it takes more arguments, by '...'"),
        ("diopiUnknown", "'call' cannot be declared in C11: unknown type name 'callback'"),
        ("diopiHidden", "'state' cannot be declared in C11"),
        ("diopiReserved", "'requires' is a keyword of C++20"),
        ("diopiPicked", "'pick' cannot be declared in C11"),
    ):
        assert f"no entry gives '{symbol}': {reason}" in done.output
    assert "5 of 5 functions are in no schema; 0 entries give 0 of them" in done.output

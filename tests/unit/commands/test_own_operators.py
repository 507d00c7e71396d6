"""Operators that only a vendor has: where their entries stand, and what is said of mistakes in them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from diopigen.cli import cli
from diopigen.project import Project
from diopigen.records.codec import read_record
from diopigen.records.own_operators import OwnOperators, OwnResult

ENTRY = """\
{name}:
  doc: The squared difference of `input` and `other`.
  args: {{input: Tensor<T>, other: Tensor<T>}}
  out: Tensor<T> like broadcast(input, other)
  where: {{T: float}}
  kernel: (input - other) * (input - other)
"""
VENDOR = "doc: A chip.\nschemas: [own]\n"


def run(project: Project, *words: str) -> Result:
    return CliRunner().invoke(cli, ["--project", str(project.root), *words])


def made(miniature: Callable[..., Project], vendor: str = VENDOR, **files: str) -> Project:
    """A contract of `gap`, and a chip with files of its own."""
    own = {f"{name.replace('__', '/')}.yaml": text for name, text in files.items()}
    return miniature({"pairs.yaml": ENTRY.format(name="gap")}, {"chip": {"vendor.yaml": vendor, **own}})


def errors(result: Result) -> list[str]:
    return [line for line in result.output.splitlines() if ": error[" in line]


@pytest.mark.parametrize("way", ["vendor.yaml", "option"])
def test_one_header_beside_the_contract(miniature: Callable[..., Project], way: str) -> None:
    vendor, words = (VENDOR, ()) if way == "vendor.yaml" else ("doc: A chip.\n", ("--schemas", "{own}"))
    project = made(miniature, vendor, own__more=ENTRY.format(name="own_gap"))
    words = tuple(word.format(own=project.vendors / "chip" / "own") for word in words)
    assert run(project, "header").exit_code == 0
    before = {path.name: path.read_bytes() for path in project.headers.rglob("*.h")}
    done = run(project, "all", "--vendor", "chip", *words)
    assert done.exit_code == 0, done.output
    assert {path.name: path.read_bytes() for path in project.headers.rglob("*.h")} == before
    out = project.generated / "chip"
    header = (out / "include" / "diopi" / "functions_chip.h").read_text(encoding="utf-8")
    assert "DIOPI_API diopiError_t diopiOwnGap(" in header and "diopiGap" not in header
    assert " * The squared difference of `input` and `other`.\n" in header
    assert "impl::generated::diopiOwnGap(" in (out / "adaptor" / "adaptor_chip_more.cpp").read_text(encoding="utf-8")
    assert not any("Gap" in path.read_text(encoding="utf-8") for path in project.generated.glob("torch_dipu-*/aten/*"))
    assert run(project, "all", "--vendor", "chip", "--check", *words).exit_code == 0


def test_an_edit_is_seen_wherever_the_folder_is(miniature: Callable[..., Project]) -> None:
    project = made(miniature, "doc: A chip.\nschemas: ../../beside\n")
    entries = project.root / "beside" / "more.yaml"
    entries.parent.mkdir()
    entries.write_text(ENTRY.format(name="own_gap"), encoding="utf-8")
    assert run(project, "all", "--vendor", "chip").exit_code == 0
    entries.write_text(ENTRY.format(name="other_gap"), encoding="utf-8")
    assert run(project, "all", "--vendor", "chip").exit_code == 0
    header = project.generated / "chip" / "include" / "diopi" / "functions_chip.h"
    assert "diopiOtherGap(" in header.read_text(encoding="utf-8")
    assert str(entries) in (project.generated / "chip" / ".depfile").read_text(encoding="utf-8")


@pytest.mark.parametrize("words", [("lint",), ("explain", "own_gap"), ("coverage",)], ids=str)
def test_every_command_knows_them(miniature: Callable[..., Project], words: tuple[str, ...]) -> None:
    project = made(miniature, own__more=ENTRY.format(name="own_gap"))
    done = run(project, *words, "--vendor", "chip")
    assert done.exit_code == 0, done.output
    assert ("OwnGap" in done.output) == (words[0] != "lint")
    assert words[0] != "lint" or "2 ops, 2 functions: no problems found" in done.output


@pytest.mark.parametrize(
    ("vendor", "files", "said"),
    [
        (
            VENDOR,
            {"own__more": ENTRY.format(name="gap")},
            ["vendors/chip/own/more.yaml:1:1: error[duplicate-op]: the op 'gap' is defined twice"],
        ),
        (
            "doc: A chip.\nschemas: [own, other]\n",
            {"own__more": ENTRY.format(name="own_gap"), "other__more": ENTRY.format(name="own_gap")},
            ["vendors/chip/other/more.yaml:1:1: error[duplicate-op]: the op 'own_gap' is defined twice"],
        ),
        (
            VENDOR,
            {"own__more": ENTRY.format(name="own_gap") + "  name: Gap\n"},
            ["vendors/chip/own/more.yaml:1:1: error[duplicate-function]: 'diopiGap' is declared twice"],
        ),
        (
            VENDOR,
            {"own__more": ENTRY.format(name="own_gap") + "  header: functions\n"},
            [
                "vendors/chip/own/more.yaml:7:11: error[header-of-own]: 'own_gap' is declared in functions_chip.h, "
                "as every operator of the vendor's own"
            ],
        ),
        (
            VENDOR,
            {"own__more": "{}\n"},
            ["vendors/chip/vendor.yaml:2:11: error[no-entries]: there is no entry in vendors/chip/own"],
        ),
        (VENDOR, {}, ["vendors/chip/vendor.yaml:2:11: error[missing-folder]: there is no vendors/chip/own"]),
    ],
    ids=["of the contract", "of another folder", "a function's", "a header", "no entry", "no folder"],
)
def test_mistakes(miniature: Callable[..., Project], vendor: str, files: dict[str, str], said: list[str]) -> None:
    done = run(made(miniature, vendor, **files), "lint", "--vendor", "chip")
    assert (errors(done), done.exit_code) == (said, 1), done.output


def test_a_folder_without_its_vendor(miniature: Callable[..., Project], tmp_path: Path) -> None:
    done = run(made(miniature, own__more=ENTRY.format(name="own_gap")), "lint", "--schemas", str(tmp_path))
    said = f"whose operators are in {tmp_path}? name the vendor by --vendor"
    assert said in " ".join(done.output.split()) and done.exit_code == 2


def test_an_empty_folder_of_the_command_line(miniature: Callable[..., Project]) -> None:
    project = made(miniature, own__more=ENTRY.format(name="own_gap"))
    (project.root / "beside").mkdir()
    done = run(project, "lint", "--vendor", "chip", "--schemas", str(project.root / "beside"))
    assert errors(done) == ["beside:1:1: error[no-entries]: there is no entry in beside"]


def test_a_gradient_is_no_operator_of_torch(miniature: Callable[..., Project]) -> None:
    text = ENTRY.format(name="own_gap") + "  backward: {grads: [input], kernel: grad_output}\n"
    done = run(made(miniature, own__more=text), "lint", "--vendor", "chip")
    said = (
        "vendors/chip/own/more.yaml:7:3: warning[no-torch-operator]: torch has no operator for 'diopiOwnGapBackward': "
        "gradients of a vendor's own operators are not registered"
    )
    assert said in done.output and done.exit_code == 0, done.output


def test_an_operator_that_torch_has(miniature: Callable[..., Project]) -> None:
    text = ENTRY.format(name="hypot") + "  aten: hypot\n"
    done = run(made(miniature, own__more=text), "lint", "--vendor", "chip")
    said = (
        "vendors/chip/own/more.yaml:7:9: warning[aten-of-own]: 'hypot' serves no operator that torch has: only the "
        "contract's operators do"
    )
    assert said in done.output and done.exit_code == 0, done.output


def test_the_schemas_of_torch(miniature: Callable[..., Project]) -> None:
    text = """\
blend:
  doc: A mix of `input` and `other`.
  args: {input: Tensor<T>, other: Tensor<T> | Scalar, weight: float = 0.5, mode: str = plain, bins: "int[] = [1, 2]"}
  out: Tensor<T> like input
  where: {T: float}
  variants: [out, inplace]

hits:
  doc: Where `input` is at least `least`.
  args: {input: Tensor<T>, least: float, mask: Tensor<bool>?}
  out: {counts: Tensor<i64> like input, found: Tensor<bool> like input}
  where: {T: float}
"""
    source = """\
#include <diopi/functions_chip.h>
namespace impl::chip {
diopiError_t diopiBlend(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, diopiConstTensorHandle_t,
                        double, const char*, diopiSize_t) { return diopiSuccess; }
diopiError_t diopiBlendInpScalar(diopiContextHandle_t, diopiTensorHandle_t, const diopiScalar_t*, double, const char*,
                                 diopiSize_t) { return diopiSuccess; }
diopiError_t diopiHits(diopiContextHandle_t, diopiTensorHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, double,
                       diopiConstTensorHandle_t) { return diopiSuccess; }
}
"""
    project = made(miniature, own__more=text)
    (project.vendors / "chip" / "functions.cpp").write_text(source, encoding="utf-8")
    done = run(project, "all", "--vendor", "chip", "--only", "torch_operators")
    assert done.exit_code == 0 and done.output.endswith("1 files: 1 written, 0 removed, 0 unchanged\n"), done.output
    record = read_record(OwnOperators, project.generated / "chip" / "torch" / "own_operators.json")
    assert [operator.schema for operator in record.operators] == [
        'blend(Tensor input, Tensor other, float weight=0.5, str mode="plain", SymInt[] bins=[1, 2]) -> Tensor',
        'blend_.Scalar(Tensor(a!) input, Scalar other, float weight=0.5, str mode="plain", SymInt[] bins=[1, 2]) -> ()',
        "hits(Tensor input, float least, Tensor? mask) -> (Tensor, Tensor)",
    ]
    assert record.operators[2].results == {
        "counts": OwnResult(shapes=("input",), dtype="int64"),
        "found": OwnResult(shapes=("input",), dtype="bool"),
    }

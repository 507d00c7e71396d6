"""The generated C++: what a wrapper of each kind does, and that every binding of the schemas has one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.aten.catalog import Catalog
from diopigen.diagnostics import Diagnostics, render_human
from diopigen.model.program import Program
from diopigen.passes.aten.bind import bind_aten
from diopigen.project import Project
from diopigen.targets.aten import outputs
from diopigen.targets.aten.view import SHARDS, file_view, registration_view, shard, shards, unservable
from diopigen.targets.output import renderer
from tests.unit.aten.conftest import ADD, Bound

Bind = Callable[[str], Bound]
ROOT = Path(__file__).resolve().parents[3]


def code(program: Program) -> str:
    """All generated sources with white space folded, so that a test does not care where lines break."""
    texts = (output.text for output in outputs(program, renderer(ROOT / "templates")))
    return " ".join(" ".join(texts).split()).replace("( ", "(")


def test_the_three_forms_of_a_structured_operator(bound: Bind) -> None:
    text = code(bound(ADD).program)
    meta = "at::meta::structured_add_Tensor"
    assert f"Functional<{meta}, 1> op; op.meta(self, other, alpha);" in text
    assert f"OutVariant<{meta}, 1> op(out); op.meta(self, other, alpha);" in text
    assert f"Inplace<{meta}> op(self); op.meta(self, other, alpha);" in text
    assert "return at::_ops::add_Tensor::redispatch(kFallback, self, other, alpha);" in text


def test_inputs_meet_in_the_common_dtype(bound: Bind) -> None:
    text = code(bound(ADD).program)
    assert "const Out out_arg(out, common);" in text
    assert "const In other_arg(other, common, out.device());" in text
    assert "call_add_Tensor(self, other, alpha, op.output(0), op.compute_dtype(self))" in text


def test_scalars_on_the_host_take_the_scalar_function(bound: Bind) -> None:
    text = code(bound(ADD).program)
    assert "if (is_host_scalar(other)) {" in text
    assert "const ScalarArg other_arg(other.item());" in text
    assert "if (!supported(other_arg, alpha_arg)) { return false; }" in text


def test_a_number_beyond_the_dtype_is_left_to_torch(bound: Bind) -> None:
    assert "if (!is_number_of(common, alpha)) { return false; } Context context(out);" in code(bound(ADD).program)


def test_outputs_of_an_iterator_are_checked_by_torch_and_others_here(checkout_bound: Program) -> None:
    text = code(checkout_bound)
    assert "if (is_apart(out, self, mat2)) { OutVariant<at::meta::structured_mm, 1> op(out);" in text
    assert "is_apart(values, indices, self) && is_apart(indices, self)" in text
    assert "is_apart(self, mask, source)" in text and "if (is_apart<true>(out, self)" in text
    assert "is_apart(out, self, other)" not in text.partition("// add: ")[2].partition("// ")[0]


def test_operands_of_one_dtype_are_asked_for_where_torch_has_a_kernel_on_the_host(checkout_bound: Program) -> None:
    text = code(checkout_bound)
    assert "if (!(one_dtype(self, mat2) && is_fraction(out.scalar_type()))) { return false; }" in text
    assert "if (!(one_dtype(self, mat1, mat2) && is_fraction(out.scalar_type()) && is_number_of(out" in text
    assert "one_dtype(input, mean, invstd" not in text  # synchronized batch norms take float32 beside halves
    assert "one_dtype(self, growth_tracker)" not in text


def test_statistics_that_are_wider_than_their_input_keep_their_dtype(checkout_bound: Program) -> None:
    text = code(checkout_bound)
    assert "if (!(one_dtype(grad_out, input, weight, bias) && is_fraction(" in text
    assert "const In mean_arg(mean, promoted(grad_out.scalar_type(), at::kFloat), grad_out.device());" in text
    assert "const In counts_arg(counts, promoted(input.scalar_type(), at::kFloat), mean_out.device());" in text


def test_a_function_of_floats_gets_no_whole_numbers(bound: Bind) -> None:
    assert "is_fraction(common)" in code(bound(ADD.replace("{T: any, U: any}", "{T: float, U: float}")).program)


def test_a_function_of_other_numbers_gets_whole_ones(bound: Bind) -> None:
    assert "is_fraction" not in code(bound(ADD.replace("{T: any, U: any}", "{T: number, U: float}")).program)


def test_numbers_that_a_clause_names_are_rounded(bound: Bind) -> None:
    clause = "{forward: add, rounds: [other]}"
    text = code(bound(ADD.replace("aten: add", f"aten: {clause}")).program)
    assert "const ScalarArg other_arg(other, common);" in text and "const ScalarArg alpha_arg(alpha);" in text


def test_equal_floats_and_numbers_take_the_fast_path(bound: Bind) -> None:
    assert "if (fast_inputs(self, other) || fast_scalar(self, other)) {" in code(bound(ADD).program)


def test_an_operator_of_integers_has_no_fast_path(bound: Bind) -> None:
    integers = ADD.replace("{T: any, U: any}", "{T: integer, U: integer}")
    assert "fast_inputs" not in code(bound(integers).program)


def test_a_function_without_a_kernel_line_has_no_fast_path(bound: Bind) -> None:
    assert "fast_inputs" not in code(bound(ADD.replace("  kernel: input + alpha * other\n", "")).program)


def test_checks_come_first_and_need_all_of_their_arguments(bound: Bind) -> None:
    clause = '{forward: add, checks: ["distance(alpha)", "complex_output(self, out)"]}'
    text = code(bound(ADD.replace("aten: add", f"aten: {clause}")).program)
    one, two = "checks::distance(alpha)", "checks::complex_output(self, out)"
    assert f"if (!checks::asked({one})) {{ return at::_ops::add_Tensor::redispatch(kFallback" in text
    assert f"if (!checks::asked({one} && {two})) {{ return at::_ops::add_out::redispatch(kFallback" in text
    assert text.index(f"checks::asked({one})") < text.index("if (fast_inputs(self, other)")
    assert text.count(one) == 3 * text.count(two)  # of the three forms, one has an output


@pytest.mark.parametrize(
    ("raised", "spelled"),
    [("IndexError", "Raises::kIndexError"), ("selection_raises(self, alpha)", "derive::selection_raises(self, alpha)")],
)
def test_the_schema_or_the_arguments_tell_what_is_raised(bound: Bind, raised: str, spelled: str) -> None:
    text = code(bound(ADD.replace("aten: add", f"aten: {{forward: add, raises: '{raised}'}}")).program)
    assert f'"diopiAdd", {spelled})' in text


def test_a_plain_operator_is_allocated_by_its_shape(bound: Bind) -> None:
    schema = """\
embedding:
  doc: Looks rows up.
  args: {weight: Tensor<T>, indices: Tensor<I>}
  out: Tensor<T> like embedding(weight, indices)
  where: {T: any, I: [i32, i64]}
  aten: {forward: embedding, ignore: [padding_idx, scale_grad_by_freq, sparse]}
"""
    text = code(bound(schema).program)
    assert (
        "at::Tensor out = new_contiguous(shape::embedding(weight.sizes(), indices.sizes()), "
        "weight.scalar_type(), device_of(weight, indices).index());" in text
    )
    assert "const In indices_arg(indices, out.device());" in text


def test_what_is_not_taken_falls_back_before_anything_is_allocated(bound: Bind) -> None:
    schema = """\
same:
  doc: Copies.
  args: {input: Tensor<T>}
  out: Tensor<T> like input
  where: {T: float}
  aten: {forward: repeat, require: {repeats: [1, 1]}}
"""
    text = code(bound(schema).program)
    assert "if (repeats.equals({1, 1})) { at::Tensor out = new_preserved(self, self.scalar_type());" in text


def test_an_output_without_a_shape_is_reported(
    miniature: Callable[..., Project], catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = """\
gather_rows:
  doc: Gathers.
  args: {input: Tensor<T>}
  out: Tensor<T> like input
  where: {T: float}
  backward:
    grads: [input]
    keeps: {}
  aten: {backward: relu, rename: {grad_output: self}}
"""
    project, diagnostics = miniature({"a.yaml": schema}), Diagnostics()
    program = pipeline.run(project, diagnostics)
    assert program is not None
    monkeypatch.setattr(pipeline, "loading", lambda cache, found: lambda: catalog)
    bound = pipeline.run(project, diagnostics, pipeline.Stage.ATEN, program=program)
    assert list(render_human(diagnostics, project.root)) == [
        "schemas/ops/a.yaml:9:20: error[aten-unservable]: "
        "the shape or dtype of 'grad_input' is not to be had from 'relu'",
        "     9 |   aten: {backward: relu, rename: {grad_output: self}}",
        "       |                    ^^^^ give the output a shape that the operator tells",
    ]
    # In place there is nothing to shape.
    assert [b.overload.name for b in bound.bindings] == ["relu_"]


def test_masked_gradients_are_left_out(checkout_bound: Program) -> None:
    text = code(checkout_bound)
    assert "at::Tensor grad_bias = output_mask[2] ? new_contiguous(derive::" in text


@pytest.fixture(scope="module")
def checkout_bound(catalog: Catalog) -> Program:
    diagnostics = Diagnostics()
    project = Project(root=ROOT)
    program = pipeline.run(project, diagnostics)
    assert program is not None and not diagnostics.failed
    program = bind_aten(program, catalog, pipeline.Context(project=project, diagnostics=diagnostics).drift)
    assert not diagnostics.failed
    return program


def test_every_binding_of_the_schemas_has_a_wrapper(checkout_bound: Program) -> None:
    assert not list(unservable(checkout_bound))
    written = {w.overload for index, part in shards(checkout_bound) for w in file_view(part, index).wrappers}
    by_hand = {b.overload.name for b in checkout_bound.bindings if b.wrapper is not None}
    assert written | by_hand == {b.overload.name for b in checkout_bound.bindings}


def test_wrappers_stay_short(checkout_bound: Program) -> None:
    lines = sum(output.text.count("\n") for output in outputs(checkout_bound, renderer(ROOT / "templates")))
    assert lines / len(checkout_bound.bindings) <= 40


def test_no_line_of_them_is_too_long(checkout_bound: Program) -> None:
    texts = [o.text for o in outputs(checkout_bound, renderer(ROOT / "templates"))]
    declared = ("DIOPI_API", "constinit", "registrar.add", "// ")
    long = [n for text in texts for n in text.splitlines() if len(n) > 120 and not n.strip().startswith(declared)]
    assert not long


def test_an_op_stays_in_its_file(checkout_bound: Program) -> None:
    assert len(list(shards(checkout_bound))) == SHARDS
    assert shard("add") == shard("add") and {shard(op.name) for op in checkout_bound.ops} == set(range(SHARDS))


def test_hand_written_wrappers_are_registered_and_exist(checkout_bound: Program) -> None:
    named = [f.removeprefix("register_") for f in registration_view(checkout_bound).files if "operators" not in f]
    folder = ROOT / "runtime_cpp" / "torch" / "ops"
    assert named and all(f"void register_{n}(Registrar" in (folder / f"{n}.cpp").read_text() for n in named)


def test_what_torchs_schema_does_not_say_is_written(checkout_bound: Program) -> None:
    silent = {(w.overload, w.argument) for w in registration_view(checkout_bound).silent}
    statistics = ("running_mean", "running_var")
    assert {("native_batch_norm", name) for name in statistics} <= silent
    assert {("batch_norm_gather_stats_with_counts", name) for name in statistics} <= silent
    assert not any(overload.startswith("add") for overload, _ in silent)  # add_ says that it writes self


def test_only_overloads_that_the_hand_written_wrappers_register(checkout_bound: Program) -> None:
    """An overload bound to a hand-written wrapper is registered by it, and no other."""
    for name in {b.wrapper for b in checkout_bound.bindings if b.wrapper is not None}:
        text = (ROOT / "runtime_cpp" / "torch" / "ops" / f"{name}.cpp").read_text()
        bound = {b.overload.name for b in checkout_bound.bindings if b.wrapper == name}
        assert {o for o in bound if f'_control{{"{o}"}}' in text} == bound
        assert text.count("constinit OperatorControl") == len(bound)

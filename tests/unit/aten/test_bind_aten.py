"""Which overloads an `aten:` line binds, to what, and what it says when it cannot."""

from collections.abc import Callable

import pytest

from diopigen.model.aten import Absent, FromArg, FromLiteral, FromReturn
from tests.unit.aten.conftest import ADD, Bound

Bind = Callable[[str], Bound]

MM = """\
mm:
  doc: Multiplies two matrices.
  args: {input: Tensor<T>, mat2: Tensor<T>}
  out: Tensor<T> like matmul(input, mat2)
  where: {T: number}
"""


def test_a_packet_binds_what_keeps_its_derivative(bound: Bind) -> None:
    found = bound(ADD)
    # torch would turn add.Scalar into add.Tensor; a function that takes the number is one call
    scalars = {"add.Scalar", "add.Scalar_out", "add_.Scalar"}
    assert found.overloads() == {"add.Tensor", "add.out", "add_.Tensor"} | scalars
    assert found.routes("add.Scalar") == ["diopiAddScalar"]
    assert not found.diagnostics.found


def test_a_hand_written_packet_leaves_torchs_decompositions_alone(bound: Bind) -> None:
    found = bound(ADD.replace("aten: add", "aten: {forward: add, wrapper: arithmetic}"))
    assert found.overloads() == {"add.Tensor", "add.out", "add_.Tensor"}


def test_a_scalar_on_the_cpu_takes_the_scalar_form(bound: Bind) -> None:
    found = bound(ADD)
    assert found.routes("add.out") == ["diopiAddScalar(other on the CPU)", "diopiAdd"]
    assert found.routes("add_.Tensor") == ["diopiAddInpScalar(other on the CPU)", "diopiAddInp"]


def test_self_is_the_first_tensor(bound: Bind) -> None:
    binding = next(b for b in bound(ADD).program.bindings if b.overload.name == "add.Tensor")
    assert binding.routes[-1].args == (
        ("out", FromReturn(index=0)),
        ("input", FromArg(name="self")),
        ("other", FromArg(name="other")),
        ("alpha", FromArg(name="alpha")),
    )
    assert binding.symbols == ("diopiAddScalar", "diopiAdd")


def test_an_exact_name_brings_its_structured_group(bound: Bind) -> None:
    assert bound(MM + "  aten: mm.out\n").overloads() == {"mm", "mm.out"}


def test_a_function_that_allocates_its_output_serves_no_out_overload(bound: Bind) -> None:
    schema = """\
nonzero:
  doc: Finds where `input` is not zero.
  args: {input: Tensor<T>}
  out: new Tensor<i64> like any
  where: {T: number}
  aten: nonzero
"""
    assert bound(schema).overloads() == {"nonzero"}


def test_an_inplace_form_that_the_contract_lacks_takes_the_out_form(bound: Bind) -> None:
    schema = ADD.replace("[out, inplace]", "[out]")
    assert bound(schema).routes("add_.Tensor") == ["diopiAddScalar(other on the CPU)", "diopiAdd"]


def test_rename_changes_sides(bound: Bind) -> None:
    schema = ADD.replace("aten: add", "aten: {forward: rsub.Tensor, rename: {input: other, other: self}}")
    binding = bound(schema).program.bindings[0]
    assert binding.routes[-1].args[1:3] == (("input", FromArg(name="other")), ("other", FromArg(name="self")))
    assert binding.routes[0].scalar_tensor == "self"


def test_what_aten_does_not_give_is_absent_or_the_default(bound: Bind) -> None:
    schema = """\
scaled:
  doc: Scales `input`.
  args: {input: Tensor<T>, weight: "Tensor<T>?", factor: Scalar = 2}
  out: Tensor<T> like input
  where: {T: any}
  aten: relu
"""
    binding = bound(schema).program.bindings[0]
    assert binding.routes[0].args[2:] == (("weight", Absent()), ("factor", FromLiteral(value=2)))


def test_an_exact_name_goes_before_a_packet(bound: Bind) -> None:
    other = "plus:\n" + ADD.partition("\n")[2].replace("aten: add", "aten: [add.out]")
    found = bound(ADD.replace("aten: add", "aten: add") + "\n" + other)
    ops = {b.overload.name: b.op for b in found.program.bindings}
    assert ops["add.out"] == ops["add.Tensor"] == "plus"
    assert ops["add.Scalar"] == "add"
    assert not found.diagnostics.found


@pytest.mark.parametrize(
    ("aten", "code", "words"),
    [
        ("mmm", "aten-unknown", "this torch has no operator 'mmm'"),
        ("mm.outt", "aten-unknown", "did you mean 'mm.out'?"),
        ("einsum", "aten-composite", "would lose its derivative"),
        ("linear", "aten-unprovided", "no argument of 'linear' gives 'mat2'"),
        ("{forward: addmm}", "aten-unconsumed", "does not use"),
        ("{forward: addmm, ignore: [mat3]}", "aten-argument", "did you mean 'mat2'?"),
        ("{forward: mm, checks: [distance(mat3)]}", "aten-argument", "did you mean 'mat2'?"),
        ("{forward: mm, raises: 'selection_raises(self, mat3)'}", "aten-argument", "'raises' names 'mat3'"),
        ("{forward: mm, promote: [mat3]}", "aten-argument", "'promote' names 'mat3'"),
        ("tanh", "aten-unprovided", "no argument of 'tanh' gives 'mat2' of 'diopiMm'"),
        ("aminmax", "aten-returns", "returns 2 values, but 'diopiMm' writes 1"),
        ("{backward: mm}", "aten-form", "'mm' has no backward function"),
        ("{forward: mm, function: diopiMn}", "aten-function", "did you mean 'diopiMm'?"),
        ("{forward: cat, rename: {input: tensors, mat2: dim}}", "aten-type", "is Tensor<T>, but"),
    ],
)
def test_messages(bound: Bind, aten: str, code: str, words: str) -> None:
    found = bound(MM + f"  aten: {aten}\n")
    assert code in [d.code for d in found.diagnostics.found], found.text()
    assert any(words in line for line in found.text()), found.text()
    assert all(d.span.path == "schemas/ops/a.yaml" and d.span.line == 6 for d in found.diagnostics.found)


def test_two_ops_cannot_have_one_overload(bound: Bind) -> None:
    first = MM + "  aten: mm.out\n"
    second = "mn:\n" + MM.partition("\n")[2] + "  aten: mm.out\n"
    found = bound(first + "\n" + second)
    assert {d.code for d in found.diagnostics.found} == {"aten-bound-twice"}
    assert "'mm' is already bound to 'mm'" in "\n".join(found.text())


@pytest.mark.parametrize(
    ("operator", "routes"),
    [
        ("dot, rename: {mat2: tensor}", ["diopiMm", "diopiMn"]),
        ("mm", None),  # structured: the shape of its output is one meta function's
    ],
)
def test_two_ops_have_one_overload_where_their_conditions_exclude_each_other(
    bound: Bind, operator: str, routes: list[str] | None
) -> None:
    clause = f"  aten: {{forward: {operator}, rank: {{self: %d}}}}\n"
    found = bound(MM + clause % 2 + "\nmn:\n" + MM.partition("\n")[2] + clause % 3)
    if routes is None:
        assert {d.code for d in found.diagnostics.found} == {"aten-bound-twice"}
    else:
        assert found.text() == [] and found.routes("dot") == routes


def test_a_bad_line_leaves_the_others_bound(bound: Bind) -> None:
    found = bound(ADD + "\n" + MM + "  aten: mmm\n")
    assert {"add.Tensor", "add.out", "add_.Tensor"} <= found.overloads()
    assert found.diagnostics.failed


NORM = """\
batch_norm:
  doc: Normalizes channels.
  args:
    input: Tensor<T>
    weight: Tensor<T>?
    bias: Tensor<T>?
    running_mean: inout Tensor<T>?
    running_var: inout Tensor<T>?
    training: bool
    momentum: float
    eps: float
  out:
    out: Tensor<T> like input
    save_mean: Tensor<T> like channels(input)
    save_invstd: Tensor<T> like channels(input)
  where: {T: float}
  aten:
    - forward: native_batch_norm
      wrapper: batch_norm
      compiled: {forward: _native_batch_norm_legit_functional, rank: {input: 4}}
    - {derive: {training: 0}, compiled: {forward: _native_batch_norm_legit_no_training}}
"""


def test_operators_of_graphs_are_bound_apart(bound: Bind) -> None:
    found = bound(NORM)
    assert not found.diagnostics.found
    assert found.overloads() == {"native_batch_norm", "native_batch_norm.out"}
    functional, fixed = found.program.compiled
    assert [b.overload.name for b in (functional, fixed)] == [
        "_native_batch_norm_legit_functional",
        "_native_batch_norm_legit_no_training",
    ]
    # the function writes over the statistics; torch's operator returns them anew
    assert functional.routes[0].updates == (("running_mean", 3), ("running_var", 4))
    assert functional.routes[0].ranks == (("input", 4),)
    assert fixed.routes[0].updates == ()
    assert str(dict(fixed.routes[0].args)["training"]) == "0"


@pytest.mark.parametrize(
    ("written", "changed", "message"),
    [
        ("functional", "functionale", "this torch has no operator '_native_batch_norm_legit_functionale'"),
        (
            "derive: {training: 0}, ",
            "",
            "no argument of '_native_batch_norm_legit_no_training' gives 'training' of 'diopiBatchNorm'",
        ),
        ("rank: {input", "rank: {inpu", "'rank' names 'inpu', which none of the operators has"),
    ],
)
def test_what_graphs_lack_is_an_error_there(bound: Bind, written: str, changed: str, message: str) -> None:
    assert message in bound(NORM.replace(written, changed)).text()[0]


def test_what_an_operator_of_graphs_is_given_is_not_derived(bound: Bind) -> None:
    schema = """\
convolution2d:
  doc: Convolves planes.
  args: {input: Tensor<T>, weight: Tensor<T>, bias: "Tensor<T>?", stride: "int[2] = 1", padding: "int[2] = 0"}
  out: Tensor<T> like input
  where: {T: float}
  backward:
    grads: [input?, weight?, bias?]
    keeps: {input: , weight: , bias_sizes: "int[]?"}
  aten:
    backward: convolution_backward_overrideable
    ignore: [output_padding, transposed, dilation, groups, output_mask]
    derive: {bias_sizes: "conv_bias_sizes(grad_output, output_mask)"}
    wrapper: convolution
    compiled: {backward: convolution_backward}
"""
    found = bound(schema)
    assert not found.diagnostics.found
    assert dict(found.program.compiled[0].routes[0].args)["bias_sizes"] == FromArg(name="bias_sizes")


ATTENTION = """\
attention:
  doc: Mixes `v` by the products of `q` and `k`.
  args: {gen: Generator, q: Tensor<T>, k: Tensor<T>, v: Tensor<T>, dropout: float = 0, scale: float}
  out:
    out: Tensor<T> like q
    lse: Tensor<f32> like shape(size(q, 0), size(q, 2), size(q, 1))
    mask: Tensor<bool>? like q
  where: {T: float}
  aten:
    rename: {q: query, k: key, v: value, dropout: dropout_p}
    ignore: [attn_bias, is_causal, return_debug_mask]
    compiled:
      forward: _scaled_dot_product_fused_attention_overrideable
      rank: {query: 4}
      permute: [0, 2, 1, 3]
      derive: {scale: "given(scale, 1 / sqrt(size(query, 3)))"}
      results: {out: 0, lse: 1}
      draws: {gen: [dropout_p, philox_seed, philox_offset]}
      when: ["same(key, value) and size(key, 2) > 0"]
"""
OWNED = """\
    forward: _scaled_dot_product_fused_attention_overrideable
    wrapper: attention
    compiled:
"""


def test_an_operator_of_graphs_with_another_order_and_more_results(bound: Bind) -> None:
    found = bound(ATTENTION)
    assert not found.diagnostics.found
    (binding,) = found.program.compiled
    (route,) = binding.routes
    sources = dict(route.args)
    assert (sources["out"], sources["lse"], sources["mask"]) == (FromReturn(index=0), FromReturn(index=1), Absent())
    assert str(sources["scale"]) == "given(scale, 1 / sqrt(size(query, 3)))"
    assert (route.permute, route.ranks) == ((0, 2, 1, 3), (("query", 4),))
    assert route.draws == (("gen", (FromArg(name="dropout_p"), FromReturn(index=6), FromReturn(index=7))),)
    assert [str(condition) for condition in route.when] == ["same(key, value) and (size(key, 2) > 0)"]


def test_two_ops_serve_an_operator_and_the_one_that_is_registered_speaks_for_both(bound: Bind) -> None:
    plain = """\
attention_of_all:
  doc: Mixes `v` by the products of `q` and `k`.
  args: {q: Tensor<T>, k: Tensor<T>, v: Tensor<T>, is_causal: bool = false}
  out: {out: Tensor<T> like q}
  where: {T: float}
  aten:
    rename: {q: query, k: key, v: value}
    ignore: [attn_bias, dropout_p, return_debug_mask, scale]
    compiled:
      forward: _scaled_dot_product_fused_attention_overrideable
      results: {out: 0}
      when: ["size(query, 1) == size(key, 1)"]
"""
    owner = ATTENTION.replace("    compiled:\n", OWNED).replace(
        "    ignore:", "    require: {attn_bias: null}\n    ignore:"
    )
    found = bound(plain + owner)
    assert not found.diagnostics.found
    (binding,) = found.program.compiled
    assert binding.op == "attention"
    first, second = binding.routes
    assert (first.symbol, second.symbol) == ("diopiAttention", "diopiAttentionOfAll")
    assert (second.permute, second.ranks, second.require) == (first.permute, first.ranks, first.require)
    assert second.when[: len(first.when)] == first.when and len(second.when) == len(first.when) + 1


@pytest.mark.parametrize(
    ("written", "changed", "message"),
    [
        ("ignore: [", "ignore: [attn_mask, ", "'ignore' names 'attn_mask', which none of the operators has"),
        ("size(key, 2)", "size(keys, 2)", "'when' names 'keys', which none of the operators has"),
        ("size(query, 3)", "size(queri, 3)", "'derive' names 'queri', which none of the operators has"),
        ("sqrt(", "square_root(", "'compiled' names 'square_root', which expressions of graphs do not have"),
        ("lse: 1}", "lse: 1, ls: 2}", "'results' names 'ls', which is no output of the functions"),
        ("draws: {gen:", "draws: {gene:", "'draws' names 'gene', which is no generator of the functions"),
        (
            "[dropout_p, ",
            "[dropout, ",
            "'draws' names 'dropout', which '_scaled_dot_product_fused_attention_overrideable' neither",
        ),
        (
            "philox_seed, ",
            "seed, ",
            "'draws' names 'seed', which '_scaled_dot_product_fused_attention_overrideable' neither",
        ),
        ("lse: 1}", "lse: 4}", "result 4 of '_scaled_dot_product_fused_attention_overrideable' is not a tensor"),
        ("out: 0, lse: 1}", "out: 0}", "'results' does not say which result 'lse' of 'diopiAttention' is"),
        ('scale: "given', 'scales: "given', "'derive' names 'scales', which 'diopiAttention' does not have"),
    ],
)
def test_a_mistake_about_an_operator_of_graphs(bound: Bind, written: str, changed: str, message: str) -> None:
    assert written in ATTENTION
    assert message in "\n".join(bound(ATTENTION.replace(written, changed)).text())


def test_an_order_names_each_dimension_once(bound: Bind) -> None:
    found = bound(ATTENTION.replace("[0, 2, 1, 3]", "[0, 2, 2, 3]"))
    assert [d.code for d in found.diagnostics.found] == ["aten-permute"]
    assert "'permute' is [0, 2, 2, 3], which does not name each dimension once" in found.text()[0]

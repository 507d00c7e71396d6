"""What every entry of schemas/ops owes its reader, beyond what the generator checks."""

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.project import Project

KEY = re.compile(r"^  (\w+):")
DEVIATION = re.compile(r"^(  |    )(name|names|order|c):(?=\s)")

# Runs without a kernel of the backend: the run time's own operators.
RUNTIME = set(
    [
        "_copy_from",
        "_local_scalar_dense",
        "_reshape_alias",
        "as_strided",
        "empty.memory_format",
        "empty_strided",
        "view",
    ]
)

# What an MLP, a ResNet and a LLaMA call when SGD and AdamW train them (torch 2.13).
TRAINING = """
    _fused_adamw_ _fused_sgd_ _log_softmax.out _log_softmax_backward_data.out _softmax.out _softmax_backward_data.out
    add.out addcdiv.out addcmul.out addmm.out all.out bmm.out cat.out clamp.out convolution_backward_overrideable
    convolution_overrideable div.out embedding_dense_backward fill_.Scalar gelu.out gelu_backward.grad_input
    index_select isneginf.out lerp.Scalar_out linalg_vector_norm.out max_pool2d_with_indices.out
    max_pool2d_with_indices_backward.grad_input mean.out mm.out mul.out native_batch_norm native_batch_norm_backward
    native_layer_norm_backward neg.out nll_loss_backward.grad_input nll_loss_forward.output pow.Tensor_Scalar_out
    reciprocal.out relu relu_ rsqrt.out sigmoid.out silu.out sqrt.out sub.out sum.IntList_out
    threshold_backward.grad_input tril.out where.self where.self_out zero_
"""


@pytest.fixture(scope="module")
def program(checkout: Project) -> Program:
    diagnostics = Diagnostics()
    bound = pipeline.run(checkout, diagnostics, pipeline.Stage.ATEN)
    assert bound is not None
    assert not diagnostics.failed
    return bound


def uncommented(text: str) -> Iterator[int]:
    """Lines that deviate from a rule of the contract without a comment on them or right above."""
    above = key = ""
    for number, line in enumerate(text.splitlines(), 1):
        key = found[1] if (found := KEY.match(line)) else key
        # Arguments and outputs may be called `order` or `c`.
        deviates = DEVIATION.match(line) and key not in ("args", "out")
        if deviates and "#" not in line and not above.lstrip().startswith("#"):
            yield number
        above = line


def test_a_deviation_says_why(checkout: Project) -> None:
    found = [
        f"{path.name}:{number}"
        for path in sorted((checkout.schemas / "ops").glob("*.yaml"))
        for number in uncommented(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_a_bare_deviation_is_seen() -> None:
    assert list(uncommented("op:\n  doc: Says.\n  name: Other\n  # why\n  c: {a: b}\n  order: [a]  # why\n")) == [3]


def test_an_argument_may_have_the_name_of_a_key() -> None:
    assert list(uncommented("op:\n  args:\n    order: Tensor<T>\n  backward:\n    order: [a]\n")) == [5]


def test_a_doc_is_made_of_sentences(program: Program) -> None:
    assert [op.name for op in program.ops if not (op.doc.endswith(".") and op.doc[0].isupper())] == []


def test_a_doc_names_only_arguments_and_ops(program: Program) -> None:
    ops = {op.name for op in program.ops}
    for op in program.ops:
        known = {arg.name for arg in (*op.args, *op.outs)} | ops | {"1 - p", "1 - dampening", "trunc", "floor"}
        assert set(re.findall(r"`([^`]+)`", op.doc)) <= known, op.name


LEFT_BY_A_FORWARD = ("ctc_loss_backward",)  # takes what only its forward leaves, which no row can draw


def test_an_op_has_rows_that_differ(program: Program) -> None:
    for op in program.ops:
        rows = Counter(repr((row.values, row.data)) for row in op.cases)
        # what no operator of torch computes may have no reference yet, and so nothing to run
        assert 2 <= len(rows) <= 10 or (not rows and (not op.aten or op.name in LEFT_BY_A_FORWARD)), op.name
        assert max(rows.values(), default=1) == 1, op.name


def test_the_training_steps_are_bound(program: Program) -> None:
    bound = {binding.overload.name for binding in program.bindings}
    assert sorted(set(TRAINING.split()) - bound) == []
    assert not bound & RUNTIME

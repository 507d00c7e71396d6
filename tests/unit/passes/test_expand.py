"""Names, order and roles of the C functions that follow from an entry."""

from collections.abc import Callable

from diopigen import pipeline
from diopigen.c_spelling import c_signature
from diopigen.diagnostics import Diagnostics
from diopigen.project import Project

Miniature = Callable[..., Project]

ENTRY = """\
lerp_to:
  doc: Moves `input` towards `end` by `weight`.
  args: {input: Tensor<T>, end: "Tensor<U> | Scalar", weight: Scalar = 0.5, sizes: "int[2]? = null"}
  out: Tensor<promote(T, U)> like broadcast(input, end)
  where: {T: any, U: any}
  variants: [out, inplace]
"""


def signatures(project: Project) -> list[str]:
    diagnostics = Diagnostics()
    program = pipeline.run(project, diagnostics)
    assert not diagnostics.found, diagnostics.found
    assert program is not None
    return [c_signature(f) for f in program.functions]


def test_forms_of_one_entry(miniature: Miniature) -> None:
    ctx = "diopiContextHandle_t ctx"
    rest = "const diopiScalar_t* weight, diopiSize_t* sizes)"
    assert signatures(miniature({"a.yaml": ENTRY})) == [
        f"diopiError_t diopiLerpTo({ctx}, diopiTensorHandle_t out, diopiConstTensorHandle_t input, "
        f"diopiConstTensorHandle_t end, {rest}",
        f"diopiError_t diopiLerpToInp({ctx}, diopiTensorHandle_t input, diopiConstTensorHandle_t end, {rest}",
        f"diopiError_t diopiLerpToScalar({ctx}, diopiTensorHandle_t out, diopiConstTensorHandle_t input, "
        f"const diopiScalar_t* end, {rest}",
        f"diopiError_t diopiLerpToInpScalar({ctx}, diopiTensorHandle_t input, const diopiScalar_t* end, {rest}",
    ]


def test_names_order_and_c_override_the_rules(miniature: Miniature) -> None:
    entry = """\
copy:
  doc: Copies `src` to `dest`.
  name: CopyInp
  args: {src: Tensor<T>, dest: inout Tensor<U>, flag: bool}
  where: {T: any, U: any}
  order: [flag, src, dest]
  c: {flag: const bool}
"""
    assert signatures(miniature({"a.yaml": entry})) == [
        "diopiError_t diopiCopyInp(diopiContextHandle_t ctx, const bool flag, diopiConstTensorHandle_t src, "
        "diopiTensorHandle_t dest)"
    ]


def test_a_list_is_followed_by_its_count(miniature: Miniature) -> None:
    entry = """\
step:
  doc: Steps.
  args: {params: "inout Tensor<T>[nums]", grads: "Tensor<T>[nums]", lr: float, max: "Tensor<T>?[k]"}
  where: {T: float}
"""
    assert signatures(miniature({"a.yaml": entry})) == [
        "diopiError_t diopiStep(diopiContextHandle_t ctx, diopiTensorHandle_t* params, "
        "diopiConstTensorHandle_t* grads, int64_t nums, double lr, diopiConstTensorHandle_t* max, int64_t k)"
    ]


def test_backward_is_derived(miniature: Miniature) -> None:
    entry = """\
norm_rows:
  doc: Normalizes `input`.
  args: {input: Tensor<T>, weight: "Tensor<T>?", eps: float = 1e-5, training: bool, generator: Generator}
  out:
    out: Tensor<T> like input
    save_mean: Tensor<T> like input
  where: {T: float}
  backward:
    grads: [input, weight?]
    keeps: {input: , weight: , mean: save_mean, sizes: "int[]?"}
"""
    assert signatures(miniature({"a.yaml": entry}))[1] == (
        "diopiError_t diopiNormRowsBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input, "
        "diopiTensorHandle_t grad_weight, diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input, "
        "diopiConstTensorHandle_t weight, diopiConstTensorHandle_t mean, diopiSize_t* sizes, double eps, bool training)"
    )

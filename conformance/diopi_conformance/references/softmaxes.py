"""Gradients of the softmax functions, from the outputs that the calls are given: those have been rounded already."""

from typing import TYPE_CHECKING, Any

from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for("diopiSoftmaxBackward")
def softmax_backward(call: "ReferenceCall") -> Outputs:
    """y (g - sum y g), the derivative of y_i = e^{x_i} / sum e^{x_j}."""
    grad, output, dim = call["grad_output"], call["output"], call["dim"]
    return {"grad_input": output * (grad - (output * grad).sum(dim, keepdim=True))}


@reference_for("diopiLogSoftmaxBackward")
def log_softmax_backward(call: "ReferenceCall") -> Outputs:
    """g - e^y sum g, the derivative of y_i = x_i - ln sum e^{x_j}."""
    grad, output, dim = call["grad_output"], call["output"], call["dim"]
    return {"grad_input": grad - output.exp() * grad.sum(dim, keepdim=True)}

"""What a backend is asked for where the CPU is asked for something else.

The recorder runs on the CPU. Some operators reach another backend under a second name, or taken apart by PyTorch; each
rule here turns one call into the calls that such a backend gets. What no rule names goes on as it is.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from diopi_conformance.capture.recorder import AtenCall, Tensor

Rule = Callable[[AtenCall], tuple[AtenCall, ...]]


def on_device(call: AtenCall) -> tuple[AtenCall, ...]:
    """The calls behind `call`, in order; empty where there is nothing to compute."""
    rule = _RULES.get(call.overload)
    return (call,) if rule is None else rule(call)


def _convolution(call: AtenCall) -> tuple[AtenCall, ...]:
    """One dimension is convolved as two of which the first has length 1."""
    name = f"{call.overload}_overrideable"
    if len(call.args["input"].sizes) != 3:
        return (replace(call, overload=name),)
    args = {key: _flat_image(value) for key, value in call.args.items()}
    for key, filler in (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0)):
        args[key] = [filler, *call.args[key]]
    # The mask and the shape of a bias are no images, and stay; so does a gradient of a bias.
    args |= {key: call.args[key] for key in ("bias", "bias_sizes", "output_mask") if key in call.args}
    return (replace(call, overload=name, args=args, results=tuple(map(_flat_image, call.results))),)


def _flat_image(value: Any) -> Any:
    """(N, C, L) as (N, C, 1, L); anything else as it is."""
    if not isinstance(value, Tensor) or len(value.sizes) != 3:
        return value
    (n, c, length), (image, channel, step) = value.sizes, value.strides
    return replace(value, sizes=(n, c, 1, length), strides=(image, channel, length * step, step))


def _floor_divide(call: AtenCall) -> tuple[AtenCall, ...]:
    which = "div_.Tensor_mode" if call.overload.startswith("floor_divide_.") else "div.Tensor_mode"
    return (replace(call, overload=which, args={**call.args, "rounding_mode": "floor"}),)


def _reduce_all(call: AtenCall) -> tuple[AtenCall, ...]:
    named = {"sum": "sum.dim_IntList", "mean": "mean.dim"}
    return (replace(call, overload=named[call.overload], args={**call.args, "dim": [], "keepdim": False}),)


def _filled(call: AtenCall) -> tuple[AtenCall, ...]:
    """Fresh memory, then a fill."""
    (made,) = call.results
    value = call.args.get("fill_value", 1 if "ones" in call.overload else 0)
    if value == 0:
        return (AtenCall(overload="zero_", args={"self": made}, results=(made,)),)
    return (AtenCall(overload="fill_.Scalar", args={"self": made, "value": value}, results=(made,)),)


def _rsub(call: AtenCall) -> tuple[AtenCall, ...]:
    """The number as a tensor without dimensions, in the other's type."""
    number = Tensor(sizes=(), strides=(), offset=0, dtype=call.args["self"].dtype, contiguous=True, channels_last=False)
    if isinstance(call.args["other"], Tensor):
        return (call,)
    return (replace(call, overload="rsub.Tensor", args={**call.args, "other": number}),)


def _padded(call: AtenCall) -> tuple[AtenCall, ...]:
    """Fresh memory is filled, then what is padded is copied into the middle of it."""
    source, (made,) = call.args["self"], call.results
    (fill,) = _filled(replace(call, overload="full", args={"fill_value": call.args["value"]}))
    middle = replace(made, sizes=source.sizes, contiguous=made.sizes == source.sizes)
    return (fill, AtenCall(overload="copy_", args={"self": middle, "src": source}, results=(middle,)))


def _copied(call: AtenCall) -> tuple[AtenCall, ...]:
    """A cast where the element type changes, else a copy."""
    source, (made,) = call.args["self"], call.results
    if source.dtype != made.dtype:
        return (replace(call, overload="_to_copy", args={"self": source}),)
    return (AtenCall(overload="copy_", args={"self": made, "src": source}, results=(made,)),)


def _copy(call: AtenCall) -> tuple[AtenCall, ...]:
    target, source = call.args["self"], call.args["src"]
    if target.sizes != source.sizes:
        source = replace(source, sizes=target.sizes)  # expanded by PyTorch before it reaches a backend
    return (replace(call, args={"self": target, "src": source}),)


def _sgd(call: AtenCall) -> tuple[AtenCall, ...]:
    """The contract steps one parameter at a time, and has no first step: there is no dampening then."""
    shared = {k: v for k, v in call.args.items() if k not in ("self", "grads", "momentum_buffer_list")}
    if shared["is_first_step"]:
        shared["dampening"] = 0.0
    lists = (call.args["self"], call.args["grads"], call.args["momentum_buffer_list"])
    return tuple(
        AtenCall(overload=call.overload, args={**shared, "self": param, "grads": grad, "buffer": buffer}, results=())
        for param, grad, buffer in zip_longest(*lists)
    )


def _adamw(call: AtenCall) -> tuple[AtenCall, ...]:
    """Without greatest averages the list of them is as long as the others, and empty inside."""
    greatest = call.args["max_exp_avg_sqs"] or [None] * len(call.args["self"])
    return (replace(call, args={**call.args, "max_exp_avg_sqs": greatest}),)


def _arange(call: AtenCall) -> tuple[AtenCall, ...]:
    bounds = {name: call.args.get(name, usual) for name, usual in (("start", 0), ("end", None), ("step", 1))}
    return (replace(call, overload="arange.start_out", args=bounds),)


_RULES: dict[str, Rule] = {
    "convolution": _convolution,
    "convolution_backward": _convolution,
    "floor_divide": _floor_divide,
    "floor_divide_.Tensor": _floor_divide,
    "sum": _reduce_all,
    "mean": _reduce_all,
    "zeros": _filled,
    "zeros_like": _filled,
    "new_zeros": _filled,
    "ones": _filled,
    "ones_like": _filled,
    "new_ones": _filled,
    "full": _filled,
    "full_like": _filled,
    "new_full": _filled,
    "rsub.Scalar": _rsub,
    "rsub.Tensor": _rsub,
    "constant_pad_nd": _padded,
    "clone": _copied,
    "_to_copy": _copied,
    "copy_": _copy,
    "arange": _arange,
    "arange.start": _arange,
    "arange.start_step": _arange,
    "_fused_adamw_": _adamw,
    "_fused_sgd_": _sgd,
}

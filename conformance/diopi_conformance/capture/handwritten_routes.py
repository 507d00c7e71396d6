"""Routes of the overloads that PyTorch's backend serves by hand-written code, which the schemas cannot describe."""

from diopigen.model.aten import FromArg, FromReturn, Route, Source


def _route(symbol: str, **sources: str | int) -> Route:
    """Of each parameter the argument that it takes, or the place of the result that it writes."""
    args: tuple[tuple[str, Source], ...] = tuple(
        (param, FromReturn(index=source) if isinstance(source, int) else FromArg(name=source))
        for param, source in sources.items()
    )
    return Route(symbol=symbol, args=args, require=())


_INDEX_PUT = {"input": "self", "values": "values", "indices": "indices", "accumulate": "accumulate"}

HAND_ROUTES: dict[str, Route] = {
    "index.Tensor": _route("diopiIndex", out=0, input="self", indices="indices"),
    "rsub.Tensor": _route("diopiSub", out=0, input="other", other="self", alpha="alpha"),
    "index_put": _route("diopiIndexPut", out=0, **_INDEX_PUT),
    "index_put_": _route("diopiIndexPutInp", **_INDEX_PUT),
    "_index_put_impl_": _route("diopiIndexPutInp", **_INDEX_PUT),
    "masked_select": _route("diopiMaskedSelect", out=0, input="self", mask="mask"),
    "nonzero": _route("diopiNonzero", out=0, input="self"),
    "_to_copy": _route("diopiCastDtype", out=0, input="self"),
    "copy_": _route("diopiCopyInp", src="src", dest="self"),
    "_fused_sgd_": _route(
        "diopiSgd",
        param="self",
        grad="grads",
        buf="buffer",
        lr="lr",
        momentum="momentum",
        dampening="dampening",
        weight_decay="weight_decay",
        nesterov="nesterov",
    ),
    "_fused_adamw_": _route(
        "diopiFusedAdamW",
        params="self",
        grads="grads",
        exp_avgs="exp_avgs",
        exp_avg_sqs="exp_avg_sqs",
        max_exp_avg_sqs="max_exp_avg_sqs",
        state_steps="state_steps",
        lr="lr",
        beta1="beta1",
        beta2="beta2",
        eps="eps",
        weight_decay="weight_decay",
        amsgrad="amsgrad",
        maximize="maximize",
    ),
}

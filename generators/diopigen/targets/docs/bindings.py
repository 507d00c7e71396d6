"""Which PyTorch operators reach the functions of an op, and how."""

from dataclasses import dataclass

from diopigen.model.aten import Binding, Provision, Route
from diopigen.targets.docs.markdown import code

_PROVISION = {
    Provision.STRUCTURED: "structured",
    Provision.DELEGATE: "by the structured form",
    Provision.COMPOSITE: "composite",
    Provision.PLAIN: "a kernel of its own",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingView:
    overload: str  # e.g. "`add.out`"
    provision: str  # e.g. "structured"
    routes: tuple[str, ...]  # e.g. ("`diopiAdd(out=result 0, input=self)`",), in the order they are tried
    place: str  # where the schema says so


def binding_view(binding: Binding, place: str) -> BindingView:
    """One overload as its page shows it."""
    by_hand = () if binding.wrapper is None else (f"by hand in `runtime_cpp/torch/ops/{binding.wrapper}.cpp`",)
    return BindingView(
        overload=code(binding.overload.name),
        provision=_PROVISION[binding.overload.provision],
        routes=(*by_hand, *(_route(route) for route in binding.routes)),
        place=place,
    )


def _route(route: Route) -> str:
    args = ", ".join(f"{name}={source}" for name, source in route.args)
    conditions = [f"{code(name)} {condition}" for name, condition in route.conditions]
    return code(f"{route.symbol}({args})") + (f" if {' and '.join(conditions)}" if conditions else "")

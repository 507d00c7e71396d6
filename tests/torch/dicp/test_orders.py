"""Values between functions that take channels innermost only lie so, and nobody outside of the graph notices."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dicp.operators import Table
from dicp.program import LibraryCall, Program, View
from dicp.target import Target
from diopigen.records.operators import Function

POOLS = ("diopiAvgPool2d", "diopiAvgPool2dBackward")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip(Target):
    """The built vendor as one whose average pooling converts what has not its channels innermost."""

    @property
    def table(self) -> Table:
        given = Target.table.fget(self)  # type: ignore[attr-defined]
        changed = {name: _innermost(given.functions[name]) for name in POOLS}
        return replace(given, functions={**given.functions, **changed})


def _innermost(function: Function) -> Function:
    params = tuple(replace(p, layouts=("NHWC",) if p.kind == "tensor" else ()) for p in function.params)
    return replace(function, params=params)


@pytest.fixture
def pooled(torch: Any, compiler: Any) -> Callable[..., Callable[..., Any]]:
    """torch.compile for such a chip."""
    from dicp.backend import backend, vendor_target

    target = vendor_target()
    fields = {name: getattr(target, name) for name in Target.__slots__}
    chip = backend("pooled", lambda: Chip(**fields))
    return lambda function, **options: torch.compile(function, backend=chip, fullgraph=True, **options)


def conversions(program: Program) -> int:
    """Tensors that the pooling of the chip converts."""
    calls = [i for i in program.instructions if isinstance(i, LibraryCall) and i.symbol in POOLS]
    views = [view for call in calls for view in (*call.reads, *call.writes)]
    return sum(1 for view in views if not lies_innermost(view))


def lies_innermost(view: View) -> bool:
    _, channels, _, width = view.sizes
    return view.strides[1] == 1 and view.strides[3] == channels and view.strides[2] == channels * width


def chain(torch: Any) -> Callable[[Any], Any]:
    """Poolings with loops between them; only the input and the output have to be converted."""
    pool = torch.nn.functional.avg_pool2d

    def run(x: Any) -> Any:
        y = pool(x, 3, 1, 1)
        z = pool(torch.relu(y) * 2 + y, 3, 1, 1)
        return pool(z.sigmoid(), 3, 1, 1)

    return run


def seen_by_a_view(torch: Any) -> Callable[[Any], Any]:
    """The value between is read as rows, too: it keeps its order."""
    pool = torch.nn.functional.avg_pool2d

    def run(x: Any) -> Any:
        y = pool(x, 3, 1, 1)
        return pool(y, 3, 1, 1), y.view(y.shape[0], -1).softmax(-1)

    return run


def beside_others(torch: Any) -> Callable[[Any], Any]:
    """The loop between reads two values that cannot change: reading across costs more than the conversion."""
    pool = torch.nn.functional.avg_pool2d

    def run(x: Any) -> Any:
        y = pool(x, 3, 1, 1)
        return y * x + x.flip(0)

    return run


CASES: dict[str, tuple[Callable[[Any], Callable[[Any], Any]], int]] = {
    "a chain": (chain, 2),
    "seen by a view": (seen_by_a_view, 4),
    "beside others": (beside_others, 2),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_conversions_between_calls_are_gone(torch: Any, pooled: Any, reports: Any, name: str, dynamic: bool) -> None:
    make, left = CASES[name]
    x = torch.randn(2, 5, 8, 6)
    with torch.no_grad():
        found = pooled(make(torch), dynamic=dynamic)(x.to("dipu"))
    expected = make(torch)(x)
    for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, expected)), strict=True):
        torch.testing.assert_close(one.cpu(), other)
        assert one.stride() == other.stride()  # what the caller gets lies as in eager mode
    if not dynamic:
        (report,) = reports()
        assert conversions(report.program) == left, report.text()


@pytest.mark.parametrize("checked", ["0", "1"])
def test_saved_values_lie_as_the_backward_functions_take_them(
    torch: Any, pooled: Any, reports: Any, monkeypatch: pytest.MonkeyPatch, checked: str
) -> None:
    monkeypatch.setenv("DICP_CHECK", checked)
    pool = torch.nn.functional.avg_pool2d

    def run(x: Any, w: Any) -> Any:
        y = pool(x * w, 3, 1, 1)
        z = pool(y * y.sigmoid(), 3, 1, 1)
        return (z.view(z.shape[0], -1) * z.flatten(1)).sum()

    leaves = [torch.randn(2, 5, 8, 6).requires_grad_(), torch.randn(2, 5, 8, 6).requires_grad_()]
    there = [leaf.detach().to("dipu").requires_grad_() for leaf in leaves]
    run(*leaves).backward()
    step = pooled(run, dynamic=False)
    for _ in range(3):
        for leaf in there:
            leaf.grad = None
        step(*there).backward()
        for one, other in zip(there, leaves, strict=True):
            torch.testing.assert_close(one.grad.cpu(), other.grad, rtol=1e-5, atol=1e-5)
    forward, backward = reports()
    given = {node.name: node.meta["val"] for node in backward.graph.graph.nodes if node.op == "placeholder"}
    assert any(value.dim() == 4 and not value.is_contiguous() for value in given.values()), forward.text()
    # Beside the arguments, which are read as they lie, and what is read as rows, conversions stay.
    assert (conversions(forward.program), conversions(backward.program)) == (2, 3), backward.text()


@pytest.mark.parametrize(
    ("layouts", "ranks"),
    [
        ((), ()),
        (("NHWC",), (4,)),
        (("NLC", "NHWC", "NDHWC"), (3, 4, 5)),
        (("NCHW",), ()),
        (("NHWC", "NCHW"), ()),
        (("NCL", "NHWC"), ()),  # contiguous tensors of any rank are taken
    ],
)
def test_the_ranks_whose_channels_must_be_innermost(
    torch: Any, compiler: Any, layouts: tuple[str, ...], ranks: tuple[int, ...]
) -> None:
    from dicp.orders import wants_last

    assert tuple(rank for rank in range(7) if wants_last(layouts, rank)) == ranks


def test_the_table_says_what_the_vendor_takes(torch: Any, compiler: Any) -> None:
    """Data, of the vendor's convert_config.yaml: where it says nothing, nothing is preferred."""
    from dicp.backend import vendor_target

    functions = vendor_target().table.functions
    assert "NHWC" in functions["diopiAvgPool2d"].layouts
    assert all(not param.layouts for param in functions["diopiAvgPool2d"].params)


@pytest.mark.parametrize(
    ("visible", "left"),
    [
        (1, ["detach_default"]),
        (None, ["detach_default", "detach_default_2"]),
        (2, ["detach_default", "detach_default_2"]),
    ],
)
def test_other_names_of_values_are_left_only_to_the_caller(torch: Any, visible: int | None, left: list[str]) -> None:
    from dicp.graph_passes.aliases import without_aliases

    aten, graph = torch.ops.aten, torch.fx.Graph()
    given = graph.placeholder("given")
    saved = graph.call_function(aten.detach.default, (given,))
    made = graph.call_function(aten.relu.default, (given,))
    name = graph.call_function(aten.detach.default, (graph.call_function(aten.detach.default, (made,)),))
    result = graph.call_function(aten.neg.default, (name,))
    graph.output((result, name, saved))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    x = torch.randn(5)
    before = module(x)
    without_aliases(module, visible)
    names = [node.name for node in module.graph.nodes if node.target is aten.detach.default]
    assert names == left  # an argument is saved as a tensor of its own
    for one, other in zip(module(x), before, strict=True):
        torch.testing.assert_close(one, other)
    (negated,) = (node for node in module.graph.nodes if node.target is aten.neg.default)
    assert negated.args[0].target is aten.relu.default

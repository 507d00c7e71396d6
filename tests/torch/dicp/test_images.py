"""Networks of images for a vendor that wants channels innermost and the elementwise part of batch norms in loops."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dicp.operators import Table
from dicp.program import Kernel, LibraryCall, Program, View
from dicp.target import Target

ORDERED = ("diopiConvolution2d", "diopiMaxPool2d", "diopiBatchNorm")  # functions of images begin so
KINDS = ("f16", "bf16", "f32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip(Target):
    """The built vendor as one that wants both."""

    @property
    def table(self) -> Table:
        given = Target.table.fget(self)  # type: ignore[attr-defined]
        convolutions = [name for name in given.functions if name.startswith("diopiConvolution2d")]
        changed = {name: replace(given.functions[name], innermost=KINDS) for name in convolutions}
        functions = {**given.functions, **changed}
        return replace(given, functions=functions, separate_elements=("batch_norm", "convolution2d"))


@pytest.fixture
def for_chip(torch: Any, compiler: Any) -> Callable[..., Any]:
    """torch.compile for such a chip."""
    from dicp.backend import backend, vendor_target

    fields = {name: getattr(vendor_target(), name) for name in Target.__slots__}
    chip = backend("chip", lambda: Chip(**fields))
    return lambda function, **options: torch.compile(function, backend=chip, fullgraph=True, **options)


def network(torch: Any) -> Any:
    """A first layer, a block with a plain shortcut, one with a convolution beside it."""
    nn, relu = torch.nn, torch.nn.functional.relu

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int, out: int, stride: int) -> None:
            super().__init__()
            self.one = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
            self.two = nn.Conv2d(out, out, 3, 1, 1, bias=False)
            self.norms = nn.ModuleList([nn.BatchNorm2d(out), nn.BatchNorm2d(out)])
            self.beside = nn.Identity() if stride == 1 else nn.Conv2d(channels, out, 1, stride)

        def forward(self, x: Any) -> Any:
            y = relu(self.norms[0](self.one(x)))
            return relu(self.norms[1](self.two(y)) + self.beside(x))

    first = [nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*first, Block(8, 8, 1), Block(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def images(program: Program, *, weights: bool) -> list[View]:
    """What functions of images read and write: of four dimensions, weights and their gradients or all others."""
    calls = [i for i in program.instructions if isinstance(i, LibraryCall) and i.symbol.startswith(ORDERED)]
    views = [view for call in calls for view in (*call.reads, *call.writes) if len(view.sizes) == 4]
    return [view for view in views if weights == (view.sizes[2:] in ((3, 3), (1, 1)))]


def lies_innermost(view: View) -> bool:
    _, channels, _, width = view.sizes
    return view.strides[1] == 1 and view.strides[3] == channels and view.strides[2] == channels * width


def trained(torch: Any, run: Any, model: Any, x: Any) -> dict[str, Any]:
    """The result of a step, the gradients of parameters, and the statistics after it."""
    result = run(x)
    result.square().mean().backward()
    gradients = {f"gradient of {name}": parameter.grad for name, parameter in model.named_parameters()}
    return {"result": result.detach(), **gradients, **dict(model.named_buffers())}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("checked", ["0", "1"])
def test_images_stay_in_one_order(
    torch: Any, for_chip: Any, reports: Any, monkeypatch: pytest.MonkeyPatch, dtype: str, checked: str
) -> None:
    monkeypatch.setenv("DICP_CHECK", checked)
    torch.manual_seed(0)
    x, kind = torch.randn(4, 3, 20, 20), getattr(torch, dtype)
    model = network(torch).to(kind)
    exact = copy.deepcopy(model).double()
    model = model.to("dipu")
    found = trained(torch, for_chip(model, dynamic=False), model, x.to(kind).to("dipu"))
    for name, value in trained(torch, exact, exact, x.to(kind).double()).items():
        here = found[name].cpu().double()
        if dtype == "float32":
            torch.testing.assert_close(here, value.double(), rtol=1e-3, atol=1e-5, msg=name)
        else:
            assert (here - value).norm() <= 0.3 * value.double().norm() + 1e-3, name
    for name, parameter in model.named_parameters():
        assert parameter.grad.stride() == parameter.stride(), name
    forward, backward = (report.program for report in reports())
    assert not [view for view in images(forward, weights=False) if not lies_innermost(view) and view.sizes[1] > 3]
    assert not [view for view in images(backward, weights=False) if not lies_innermost(view) and view.sizes[1] > 3]
    assert all(not lies_innermost(view) for view in images(backward, weights=True) if view.sizes[2] > 1)
    if dtype == "bfloat16":  # the statistics, in float32, do not halve the accesses
        assert all(report.source.count("kWidth = 8") >= 4 for report in reports())


def test_a_batch_norm_is_read_twice_and_written_once(torch: Any, for_chip: Any, reports: Any) -> None:
    """By the sums and by the loop that also adds the shortcut; there is no other loop over the elements."""
    torch.manual_seed(0)
    model = network(torch).to("dipu")
    run = for_chip(model, dynamic=False)
    run(torch.randn(4, 3, 20, 20).to("dipu")).sum().backward()
    forward, backward = (report.program for report in reports())
    for program, sums in ((forward, "diopiBatchNormStats"), (backward, "diopiBatchNormBackwardReduce")):
        assert len([i for i in program.instructions if isinstance(i, LibraryCall) and i.symbol == sums]) == 5
    loops = [k for k in forward.instructions if isinstance(k, Kernel) and len(k.sizes) == 2]
    assert len(loops) == 5 and all(sum("relu" in name for name in kernel.names) == 1 for kernel in loops)
    convolutions = [i for i in forward.instructions if isinstance(i, LibraryCall) and "Convolution" in i.symbol]
    assert all(len(call.reads) == 2 for call in convolutions)  # the loops have the bias
    # A loop for the gradient of each norm, and one before it for that of the relu, which the shortcut reads, too.
    large = [k for k in backward.instructions if isinstance(k, Kernel) and any(len(v.sizes) > 1 for v in k.writes)]
    assert len([k for k in large if any("batch_norm" in name for name in k.names)]) == 5


@pytest.mark.parametrize(("dtype", "reads"), [("float32", 2), ("bfloat16", 3)])
def test_a_bias_of_halves_is_added_before_they_are_rounded(
    torch: Any, for_chip: Any, reports: Any, dtype: str, reads: int
) -> None:
    torch.manual_seed(0)
    x, weight = (torch.randn(size).to(getattr(torch, dtype)) for size in ((2, 8, 9, 8), (16, 8, 3, 3)))
    sums = torch.nn.functional.conv2d(x.double(), weight.double())
    bias = -sums[0, :, 3, 3].to(x.dtype)  # what is left there is small beside either
    run = for_chip(lambda *given: torch.nn.functional.conv2d(*given).relu(), dynamic=False)
    found = run(*(given.to("dipu") for given in (x, weight, bias)))
    expected = (sums + bias.double().view(-1, 1, 1)).relu()
    torch.testing.assert_close(found.cpu().double(), expected, rtol=2**-8, atol=1e-4)
    (report,) = reports()
    (call,) = (i for i in report.program.instructions if isinstance(i, LibraryCall))
    assert len(call.reads) == reads  # where it is two, the loop has the bias


@pytest.mark.parametrize("options", [{}, {"affine": False}, {"momentum": 0.3}, {"track_running_stats": False}])
@pytest.mark.parametrize("size", [(6, 4, 5, 3), (16, 4), (3, 4, 7), (2, 4, 3, 2, 2)])
def test_separated_norms_give_what_whole_ones_give(
    torch: Any, for_chip: Any, reports: Any, options: dict[str, Any], size: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    kinds = {2: torch.nn.BatchNorm1d, 3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d, 5: torch.nn.BatchNorm3d}
    norm = kinds[len(size)](4, **options)
    for parameter in norm.parameters():
        torch.nn.init.normal_(parameter)
    x = (torch.randn(size) * 3 + 2).requires_grad_()
    there, on_chip = x.detach().to("dipu").requires_grad_(), copy.deepcopy(norm).to("dipu")
    run = for_chip(on_chip, dynamic=False)
    for step in range(2):
        expected, found = norm(x), run(there)
        torch.testing.assert_close(found.detach().cpu(), expected.detach(), rtol=1e-4, atol=1e-5)
        (expected.sin() * (step + 1)).sum().backward()
        (found.sin() * (step + 1)).sum().backward()
    torch.testing.assert_close(there.grad.cpu(), x.grad, rtol=1e-3, atol=1e-4)
    for mine, exact in zip(on_chip.parameters(), norm.parameters(), strict=True):
        torch.testing.assert_close(mine.grad.cpu(), exact.grad, rtol=1e-4, atol=1e-4)
    for mine, exact in zip(on_chip.buffers(), norm.buffers(), strict=True):
        torch.testing.assert_close(mine.cpu(), exact, rtol=1e-4, atol=1e-5)
    calls = [i.symbol for r in reports() for i in r.program.instructions if isinstance(i, LibraryCall)]
    assert calls == ["diopiBatchNormStats", "diopiBatchNormBackwardReduce"]


@pytest.mark.parametrize("spread", [1e-4, 1e-2, 0.0])
def test_the_running_variance_far_below_epsilon(torch: Any, for_chip: Any, spread: float) -> None:
    host = torch.nn.BatchNorm2d(4, momentum=1.0)
    norm = copy.deepcopy(host).to("dipu")
    x = torch.randn(6, 4, 5, 3, generator=torch.Generator().manual_seed(2)) * spread
    found = for_chip(norm, dynamic=False)(x.to("dipu"))
    torch.testing.assert_close(found.detach().cpu(), host(x).detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(norm.running_var.cpu(), host.running_var, rtol=1e-5, atol=0)


def test_a_norm_beside_parameters_of_float32(torch: Any, for_chip: Any, reports: Any) -> None:
    """As autocast leaves them: no function takes both types, the loops do."""
    norm = torch.nn.BatchNorm2d(4)
    x = torch.randn(6, 4, 5, 3).bfloat16()
    on_chip = copy.deepcopy(norm).to("dipu")
    found = for_chip(on_chip, dynamic=False)(x.to("dipu"))
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.detach().cpu().float(), norm(x.float()).detach(), rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(on_chip.running_var.cpu(), norm.running_var, rtol=1e-4, atol=1e-5)
    assert all(report.islands == () for report in reports())


def turning(torch: Any, seen: str) -> Any:
    """Blocks of a ConvNeXt: norms and products over channels, which a view has put last, between convolutions."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.convolution = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
            self.norm, self.product = nn.LayerNorm(channels), nn.Linear(channels, channels)

        def forward(self, x: Any) -> Any:
            turned = self.convolution(x).permute(0, 2, 3, 1)
            if seen == "as rows, too":
                turned = turned + turned.transpose(1, 2).flatten(2).view(turned.shape).softmax(-1)
            return x + self.product(self.norm(turned)).permute(0, 3, 1, 2)

    return nn.Sequential(nn.Conv2d(3, 8, 2, 2), Block(8), Block(8), nn.Conv2d(8, 16, 2, 2), Block(16))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("checked", ["0", "1"])
@pytest.mark.parametrize("seen", ["turned", "as rows, too"])
def test_norms_over_turned_channels_read_rows(
    torch: Any, for_chip: Any, reports: Any, monkeypatch: pytest.MonkeyPatch, seen: str, checked: str, dynamic: bool
) -> None:
    monkeypatch.setenv("DICP_CHECK", checked)
    torch.manual_seed(0)
    host, x = turning(torch, seen), torch.randn(2, 3, 16, 16)
    model = copy.deepcopy(host).to("dipu")
    found = trained(torch, for_chip(model, dynamic=dynamic), model, x.to("dipu"))
    for name, value in trained(torch, host, host, x).items():
        torch.testing.assert_close(found[name].cpu(), value, rtol=1e-3, atol=1e-5, msg=name)
    if seen == "turned" and not dynamic:
        calls = [i for r in reports() for i in r.program.instructions if isinstance(i, LibraryCall)]
        norms = [view for call in calls if "LayerNorm" in call.symbol for view in (*call.reads, *call.writes)]
        assert all(view.strides[-1] == 1 for view in norms if len(view.sizes) == 4 and view.sizes[-1] > 1)


@pytest.mark.parametrize("kind", ["convolution", "norm"])
def test_views_of_what_is_separated(torch: Any, for_chip: Any, reports: Any, kind: str) -> None:
    """As a vision transformer begins: its patches are a convolution's result in another shape."""
    layers = [torch.nn.Conv2d(3, 16, 4, 4), *([torch.nn.BatchNorm2d(16)] if kind == "norm" else [])]
    host = torch.nn.Sequential(*layers, torch.nn.Flatten(2), torch.nn.LayerNorm(16))
    model = copy.deepcopy(host).to("dipu")
    x = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(4))
    found = trained(torch, for_chip(model), model, x.to("dipu"))
    assert [report.whole_graph for report in reports()] == [None, None]
    wanted = trained(torch, host, host, x)
    for name, value in wanted.items():
        torch.testing.assert_close(found[name].cpu(), value, rtol=1e-4, atol=1e-4, msg=name)

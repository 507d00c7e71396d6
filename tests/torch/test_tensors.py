"""Tensors on the device: copies in every layout and dtype, views, storage, saving, against the same on the CPU."""

import copy
import io
import pickle
from typing import Any

import pytest


def same(device: Any, cpu: Any) -> bool:
    import torch

    return device.dtype == cpu.dtype and torch.equal(device.cpu(), cpu)


@pytest.mark.parametrize(
    "view", ["t()", "[1:4]", "[:, ::2]", "[:, 0]", "[1:4, 1:5:2]", "expand(2, 5, 6)", "[2, 3]", "[:0]"]
)
def test_copy_of_views_to_the_host(torch: Any, view: str) -> None:
    x = torch.randn(5, 6)
    assert same(
        eval(f"d.{view}" if view[0] != "[" else f"d{view}", {"d": x.to("dipu")}),
        eval(f"x.{view}" if view[0] != "[" else f"x{view}", {"x": x}),
    )


@pytest.mark.parametrize("index", [(slice(1, 3),), (slice(None), slice(1, 3)), (slice(None), slice(0, 6, 2)), (2,)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool"])
def test_copy_into_views_leaves_their_neighbours(torch: Any, index: tuple[Any, ...], dtype: str) -> None:
    source = torch.randint(0, 2, (5, 6)).to(torch.float64)
    expected = torch.full((5, 6), 1).to(getattr(torch, dtype))
    from_host, on_device = expected.to("dipu"), expected.to("dipu")
    expected[index] = source[index].to(expected.dtype)
    from_host[index].copy_(source[index])
    on_device[index].copy_(source.to("dipu")[index])
    assert same(from_host, expected) and same(on_device, expected)


def test_memory_formats_travel(torch: Any) -> None:
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert x.to("dipu").is_contiguous(memory_format=torch.channels_last)
    assert x.to("dipu").cpu().stride() == x.stride() and same(x.to("dipu"), x)


def test_broadcasting_copy(torch: Any) -> None:
    x = torch.randn(6)
    d = torch.empty(4, 6, device="dipu")
    d.copy_(x)
    assert same(d, x.expand(4, 6).contiguous())
    d.copy_(x.to("dipu").neg().cpu().to("dipu"))
    assert same(d, -x.expand(4, 6))


def test_conj_and_neg_bits(torch: Any) -> None:
    x = torch.randn(3, 4, dtype=torch.complex64)
    d = x.to("dipu")
    assert (
        same(d.conj(), x.conj())
        and same(d.conj().imag, x.conj().imag)
        and same(d.conj().resolve_conj(), x.conj().resolve_conj())
    )
    y = torch.empty(3, 4, dtype=torch.complex64, device="dipu")
    y.conj().copy_(d)
    assert same(y, x.conj().resolve_conj())
    y.conj().copy_(x)
    assert same(y, x.conj().resolve_conj())
    assert same(torch.view_as_complex(torch.view_as_real(d)), x)


def test_resize_and_set(torch: Any) -> None:
    x = torch.arange(4.0, device="dipu")
    x.resize_(8)
    assert x.shape == (8,) and same(x[:4], torch.arange(4.0))
    x.untyped_storage().resize_(64)
    assert x.untyped_storage().nbytes() == 64 and same(x[:4], torch.arange(4.0))
    y = torch.empty(0, device="dipu")
    y.set_(x)
    assert y.is_set_to(x)
    y.set_(x.untyped_storage(), 1, (2,), (2,))
    assert same(y, torch.tensor([1.0, 3.0]))
    y.set_()
    assert y.numel() == 0
    assert same(x[:4].unfold(0, 2, 1), torch.arange(4.0).unfold(0, 2, 1))


def test_items(torch: Any) -> None:
    x = torch.tensor([[1.5, 2.5]]).to("dipu")
    assert x[0, 1].item() == 2.5 and torch.tensor(7).to("dipu").item() == 7
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        x.item()


def test_printing(torch: Any) -> None:
    assert str(torch.tensor([1.0, 2.0]).to("dipu")) == "tensor([1., 2.], device='dipu:0')"


def test_save_load_pickle_deepcopy(torch: Any) -> None:
    state = torch.nn.Linear(3, 4).to("dipu").state_dict()
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    assert torch.load(file)["weight"].device == torch.device("dipu:0")
    file.seek(0)
    assert torch.equal(torch.load(file, map_location="cpu")["weight"], state["weight"].cpu())
    again = pickle.loads(pickle.dumps(state["bias"]))
    assert again.device.type == "dipu" and torch.equal(again.cpu(), state["bias"].cpu())
    assert torch.equal(copy.deepcopy(state["bias"]).cpu(), state["bias"].cpu())


def test_tied_parameters_stay_one(torch: Any) -> None:
    embedding, output = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    output.weight = embedding.weight
    module = torch.nn.ModuleList([embedding, output]).to("dipu")
    assert module[0].weight is module[1].weight
    optimizer = torch.optim.SGD(embedding.parameters())
    assert optimizer.param_groups[0]["params"][0] is module[1].weight


def test_pinned_memory(torch: Any) -> None:
    x = torch.randn(4).pin_memory()
    assert x.is_pinned() and not torch.randn(4).is_pinned()
    d = x.to("dipu", non_blocking=True)
    back = torch.empty(4, pin_memory=True)
    back.copy_(d, non_blocking=True)
    torch.dipu.synchronize()
    assert torch.equal(back, x)
    data = torch.utils.data.TensorDataset(torch.randn(8, 2))
    assert all(batch.is_pinned() for (batch,) in torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True))


def test_peer_copy(torch: Any) -> None:
    if torch.dipu.device_count() < 2:
        pytest.skip("one device")
    x = torch.randn(3, 4)
    other = x.to("dipu:0").t().to("dipu:1")
    assert other.device.index == 1 and same(other, x.t().contiguous())
    assert torch.dipu.current_device() == 0


@pytest.mark.parametrize("module", ["LSTM", "GRU"])
def test_recurrent_cells(torch: Any, module: str) -> None:
    cpu = getattr(torch.nn, module)(3, 4)
    device = copy.deepcopy(cpu).to("dipu")
    x = torch.randn(5, 2, 3)
    results = []
    for net, place in ((cpu, "cpu"), (device, "dipu")):
        leaf = x.clone().to(place).requires_grad_()
        net(leaf)[0].square().sum().backward()
        results.append([leaf.grad.cpu(), *(p.grad.cpu() for p in net.parameters())])
    for expected, got in zip(*results, strict=True):
        torch.testing.assert_close(got, expected)


def test_convolution(torch: Any) -> None:
    cpu = torch.nn.Conv2d(3, 4, 3)
    device = copy.deepcopy(cpu).to("dipu")
    x = torch.randn(2, 3, 8, 8)
    cpu(x).square().sum().backward()
    device(x.to("dipu")).square().sum().backward()
    torch.testing.assert_close(device.weight.grad.cpu(), cpu.weight.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(device.bias.grad.cpu(), cpu.bias.grad, rtol=1e-4, atol=1e-4)

"""Copies: every pair of dtypes, every direction, every layout of both sides, against the same copy on the CPU."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

INTEGERS = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"]
DTYPES = [*INTEGERS, *FLOATS, "complex64", "complex128"]
# torch negates none of these: the CPU refuses to copy a lazily negated tensor to them.
NO_NEGATIVES = ["bool", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"]
# Each gives a tensor of the shape from a base tensor, which holds what lies between its elements too.
LAYOUTS: dict[str, Callable[[Any, tuple[int, ...]], Any]] = {
    "contiguous": lambda torch, shape: torch.zeros(shape),
    "strided": lambda torch, shape: torch.zeros(tuple(2 * n + 1 for n in shape))[
        tuple(slice(1, 2 * n + 1, 2) for n in shape)
    ],
    "offset": lambda torch, shape: torch.zeros(tuple(n + 2 for n in shape))[tuple(slice(1, n + 1) for n in shape)],
    "transposed": lambda torch, shape: torch.zeros(shape[::-1]).permute(tuple(reversed(range(len(shape))))),
    "channels_last": lambda torch, shape: (
        torch.zeros(shape).to(memory_format=torch.channels_last) if len(shape) == 4 else torch.zeros(shape)
    ),
    "sparse span": lambda torch, shape: torch.zeros((*shape, 50))[..., 3],
}


def of_layout(torch: Any, shape: tuple[int, ...], layout: str, dtype: str) -> Any:
    """A tensor of zeros with these strides and a storage of its own on the CPU."""
    template = LAYOUTS[layout](torch, shape)
    elements = template.untyped_storage().nbytes() // 4
    base = torch.zeros(elements, dtype=getattr(torch, dtype))
    return base.as_strided(shape, template.stride(), template.storage_offset())


def on_device(torch: Any, tensor: Any, device: str) -> Any:
    """The same storage, element by element, on a device."""
    base = tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.itemsize,), (1,), 0)
    return base.to(device).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def stored(torch: Any, tensor: Any) -> Any:
    """All of the storage, what lies between the elements too; zeros without a sign, which the CPU's copy may lose."""
    count = tensor.untyped_storage().nbytes()
    found = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    found = found.set_(tensor.untyped_storage(), 0, (count,), (1,)).cpu()
    signed = tensor.is_complex() or (tensor.is_floating_point() and str(tensor.dtype)[6:] not in NO_NEGATIVES)
    if not signed:
        return found
    parts = found.view(tensor.real.dtype if tensor.is_complex() else tensor.dtype)
    return (parts + 0).view(torch.uint8)


def with_bit(tensor: Any, bit: str) -> Any:
    """The tensor seen through a lazy bit, where its dtype has one."""
    if bit == "conj" and tensor.is_complex():
        return tensor.conj()
    if bit == "neg" and tensor.is_complex():
        return tensor.conj().imag
    return tensor


@st.composite
def copies(draw: st.DrawFn) -> dict[str, Any]:
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    return {
        "shape": shape,
        "dtypes": (draw(st.sampled_from(DTYPES)), draw(st.sampled_from(DTYPES))),
        "layouts": (draw(st.sampled_from([*LAYOUTS])), draw(st.sampled_from([*LAYOUTS]))),
        "places": draw(
            st.sampled_from(
                [("cpu", "dipu:0"), ("dipu:0", "cpu"), ("dipu:0", "dipu:0"), ("dipu:0", "dipu:1"), ("dipu:1", "dipu:0")]
            )
        ),
        "bits": (draw(st.sampled_from(["", "conj", "neg"])), draw(st.sampled_from(["", "conj", "neg"]))),
        "expanded": draw(st.booleans()),
        "non_blocking": draw(st.booleans()),
        "seed": draw(st.integers(0, 9)),
    }


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(copy=copies())
@example(  # the CPU loses the sign of this zero
    copy={
        "shape": (),
        "dtypes": ("complex64", "float16"),
        "layouts": ("contiguous", "contiguous"),
        "places": ("dipu:0", "dipu:0"),
        "bits": ("neg", ""),
        "expanded": False,
        "non_blocking": False,
        "seed": 0,
    }
)
def test_a_copy_is_the_copy_of_the_cpu(torch: Any, copy: dict[str, Any]) -> None:
    if torch.dipu.device_count() < 2:
        copy["places"] = tuple(place.replace("dipu:1", "dipu:0") for place in copy["places"])
    generator = torch.Generator().manual_seed(copy["seed"])
    shape = copy["shape"]
    given_shape = tuple(1 if copy["expanded"] and axis == 0 else n for axis, n in enumerate(shape))
    if copy["dtypes"][1] in NO_NEGATIVES and "neg" in copy["bits"]:
        copy["bits"] = ("", "")
    if copy["dtypes"][0] in ("float16", "bfloat16") and all(n == 1 for n in shape) and copy["bits"][1] == "neg":
        copy["bits"] = (copy["bits"][0], "")  # the CPU forgets the bit of a target with one element
    source = of_layout(torch, given_shape, copy["layouts"][0], copy["dtypes"][0])
    source.copy_(torch.randint(0, 2, given_shape, generator=generator))
    if source.is_complex():
        source.mul_(1 + 2j)
    target = of_layout(torch, shape, copy["layouts"][1], copy["dtypes"][1])
    from_place, to_place = copy["places"]
    device_source = source if from_place == "cpu" else on_device(torch, source, from_place)
    device_target = target.clone() if to_place == "cpu" else on_device(torch, target, to_place)
    if to_place == "cpu":
        base = target.as_strided((target.untyped_storage().nbytes() // target.itemsize,), (1,), 0).clone()
        device_target = base.as_strided(target.shape, target.stride(), target.storage_offset())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a complex number loses its imaginary part
        with_bit(target, copy["bits"][1]).copy_(with_bit(source.expand(shape), copy["bits"][0]))
        with_bit(device_target, copy["bits"][1]).copy_(
            with_bit(device_source.expand(shape), copy["bits"][0]), non_blocking=copy["non_blocking"]
        )
    torch.accelerator.synchronize(0)
    assert torch.equal(stored(torch, device_target), stored(torch, target))


@pytest.mark.parametrize("source", DTYPES)
def test_to_converts_each_pair_of_dtypes(torch: Any, source: str) -> None:
    x = torch.tensor([[0, 1, 2], [3, 5, 100]]).to(getattr(torch, source))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for target in DTYPES:
            dtype = getattr(torch, target)
            expected = x.to(dtype)
            for got in (x.to("dipu", dtype), x.to("dipu").to(dtype), x.to("dipu").to("cpu", dtype)):
                same = stored(torch, got), stored(torch, expected)
                assert torch.equal(*same), (source, target, got.device)


ASYNCHRONOUS = """
import torch, torch_dipu; torch_dipu.start()
n = 200_000
x = torch.randn(n).pin_memory()
kept = x.clone()
side = torch.dipu.Stream()
for step in range(20):
    with torch.dipu.stream(side):
        d = x.to("dipu", non_blocking=True)
        y = d * 2
        back = torch.empty(n, pin_memory=True)
        back.copy_(y, non_blocking=True)
        event = side.record_event()
    event.synchronize()
    assert torch.equal(back, kept * 2), step
# memory that is not pinned may be reused at once
for step in range(20):
    host = torch.full((n,), float(step))
    d = host.to("dipu", non_blocking=True)
    host.fill_(-1)
    assert d.max().item() == d.min().item() == step
# a pinned block whose copy is under way is not given to another
addresses = set()
for step in range(20):
    host = torch.full((n,), float(step)).pin_memory()
    addresses.add(host.data_ptr())
    d = host.to("dipu", non_blocking=True)
    del host
    torch.full((n,), -1.0).pin_memory()
    assert d.max().item() == d.min().item() == step
one, two = torch.randn(n, device="dipu:0"), torch.empty(n, device="dipu:1")
for step in range(20):
    one.add_(1)
    two.copy_(one, non_blocking=True)
    one.mul_(2)
    assert torch.equal(two.cpu() * 2, one.cpu()), step
print("done")
"""


def test_copies_keep_the_order_of_streams(run_python: Callable[..., Any], libraries: Path) -> None:
    if not (libraries / "libdroplet_rt.so").exists():
        pytest.skip("droplet is not built")
    result = run_python(ASYNCHRONOUS, DROPLET_ASYNC="1", DROPLET_FAULT="slow-copy:500us")
    assert result.stdout.strip() == "done", result.stderr


LOADER = """
import torch, torch_dipu; torch_dipu.start()
if __name__ == "__main__":
    torch.ones(1, device="dipu")
    data = torch.utils.data.TensorDataset(torch.arange(64.0).view(32, 2), torch.arange(32))
    loader = torch.utils.data.DataLoader(data, batch_size=8, pin_memory=True, num_workers=2)
    for _ in range(2):
        total = 0.0
        for x, y in loader:
            assert x.is_pinned() and y.is_pinned()
            total += (x.to("dipu", non_blocking=True).sum() + y.to("dipu", non_blocking=True).sum()).item()
        print(total)
"""


def test_a_loader_with_workers_and_pinned_memory(run_python: Callable[..., Any]) -> None:
    result = run_python(LOADER)
    assert result.stdout.split() == [str(sum(range(64)) + float(sum(range(32))))] * 2, result.stderr

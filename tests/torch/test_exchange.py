"""Tensors that leave the process or the framework: DLPack, NumPy, storages, saving and loading, copies of modules."""

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def x(torch: Any) -> Any:
    return torch.arange(6.0).view(2, 3).to("dipu")


def test_dlpack_capsules_share_the_memory(torch: Any, x: Any) -> None:
    from torch.utils.dlpack import from_dlpack, to_dlpack

    for capsule in (to_dlpack(x), x.__dlpack__()):
        again = from_dlpack(capsule)
        assert again.device == x.device and again.data_ptr() == x.data_ptr() and again.stride() == x.stride()
        again.add_(1.0)
    assert torch.equal(x.cpu(), torch.arange(6.0).view(2, 3) + 2)
    before = torch.dipu.memory_allocated()
    capsule = to_dlpack(torch.empty(1000, device="dipu"))
    held = from_dlpack(capsule)
    del capsule
    assert torch.dipu.memory_allocated() == before + 4096
    del held
    assert torch.dipu.memory_allocated() == before
    if torch.dipu.device_count() > 1:
        assert from_dlpack(to_dlpack(x.to("dipu:1"))).device.index == 1


def test_what_torch_refuses(torch: Any, x: Any) -> None:
    import numpy

    # torch's own table of DLPack devices has no renamed PrivateUse1, so the protocol without a capsule stops there
    with pytest.raises(ValueError, match="Unknown device type dipu for Dlpack"):
        torch.from_dlpack(x)
    with pytest.raises(RuntimeError, match="Unsupported device in DLTensor"):
        numpy.from_dlpack(x)
    for convert in (x.numpy, lambda: numpy.asarray(x)):
        with pytest.raises(TypeError, match=r"can't convert dipu:0 device type tensor to numpy. Use Tensor.cpu\(\)"):
            convert()
    assert x.numpy(force=True).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(RuntimeError, match="only available on CPU"):
        torch.multiprocessing.reductions.reduce_storage(x.untyped_storage())


def test_storages(torch: Any, x: Any) -> None:
    storage = x.untyped_storage()
    assert (
        storage.device == x.device and storage.nbytes() == 24 and storage.is_dipu and storage.data_ptr() == x.data_ptr()
    )
    assert bytes(storage.cpu().tolist()) == bytes(x.cpu().untyped_storage().tolist())
    copied = torch.UntypedStorage(24, device="dipu").copy_(storage)
    assert copied.data_ptr() != storage.data_ptr() and copied.tolist() == storage.tolist()
    assert storage.clone().device == x.device and x.cpu().untyped_storage().dipu().tolist() == storage.tolist()
    storage.resize_(48)
    assert storage.nbytes() == 48 and torch.equal(x.cpu(), torch.arange(6.0).view(2, 3))
    storage.resize_(0)
    assert storage.nbytes() == 0
    y = torch.ones(4, device="dipu")
    y.untyped_storage().fill_(0)
    assert y.tolist() == [0, 0, 0, 0]


def test_deep_copies_keep_shared_storages_shared(torch: Any, x: Any) -> None:
    first, view = copy.deepcopy([x, x[1:]])
    view.zero_()
    assert first.device == x.device and first[1].tolist() == [0, 0, 0] and x[1].tolist() == [3, 4, 5]
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).to("dipu")
    for again in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert {name: value.device for name, value in again.state_dict().items()} == dict.fromkeys(
            module.state_dict(), x.device
        )
        assert all(torch.equal(a, b) for a, b in zip(again.parameters(), module.parameters(), strict=True))


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("place", [None, "cpu", "dipu", "dipu:1", {"dipu:0": "dipu:1"}, {"dipu:0": "cpu"}])
def test_save_and_load(torch: Any, x: Any, tmp_path: Path, zipped: bool, weights_only: bool, place: Any) -> None:
    if torch.dipu.device_count() < 2 and "dipu:1" in (place, *(place.values() if isinstance(place, dict) else ())):
        pytest.skip("one device")
    file = tmp_path / "x.pt"
    saved = {"whole": x, "row": x[1:], "parameter": torch.nn.Parameter(x.clone()), "half": x.bfloat16()}
    torch.save(saved, file, _use_new_zipfile_serialization=zipped)
    target = place["dipu:0"] if isinstance(place, dict) else place
    expected = torch.device(target or "dipu:0")
    for options in ({}, {"mmap": True}) if zipped else ({},):
        got = torch.load(file, map_location=place, weights_only=weights_only, **options)
        for name, value in got.items():
            assert value.device.type == expected.type and (value.device.index or 0) == (expected.index or 0)
            assert torch.equal(value.cpu(), saved[name].cpu()) and value.dtype == saved[name].dtype
        assert got["whole"].untyped_storage().data_ptr() == got["row"].untyped_storage().data_ptr()
        assert isinstance(got["parameter"], torch.nn.Parameter)


def test_load_onto_the_device(torch: Any, x: Any, tmp_path: Path) -> None:
    file = tmp_path / "x.pt"
    torch.save(x.cpu(), file)
    for options in ({}, {"mmap": True}):
        assert torch.equal(torch.load(file, map_location="dipu", **options).cpu(), x.cpu())
    torch.save(x, file)
    with pytest.raises(RuntimeError, match=r"DIPU device 9 but torch.dipu.device_count\(\) is"):
        torch.load(file, map_location="dipu:9")


def test_state_of_a_module_and_its_optimizer(torch: Any) -> None:
    def made() -> tuple[Any, Any]:
        module = torch.nn.Linear(3, 4).to("dipu")
        return module, torch.optim.AdamW(module.parameters())

    module, optimizer = made()
    module(torch.ones(2, 3, device="dipu")).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"module": module.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state = torch.load(file, map_location="cpu")
    again, its_optimizer = made()
    again.load_state_dict(state["module"])
    its_optimizer.load_state_dict(state["optimizer"])
    for trained, optim in ((module, optimizer), (again, its_optimizer)):
        trained.zero_grad()
        trained(torch.full((2, 3), 2.0, device="dipu")).square().sum().backward()
        optim.step()
    assert torch.equal(again.weight, module.weight)


def test_safetensors(torch: Any, x: Any, tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    file = tmp_path / "x.safetensors"
    safetensors.save_file({"x": x, "half": x.bfloat16()}, file)
    # it loads to devices of its own list only: load to the CPU, then move
    loaded = {name: value.to("dipu") for name, value in safetensors.load_file(file).items()}
    assert torch.equal(loaded["x"], x) and torch.equal(loaded["half"], x.bfloat16())
    assert torch.equal(safetensors.load(safetensors.save({"x": x}))["x"], x.cpu())

"""Saving and loading: where tensors land, storages that are shared, views, large offsets, safe formats."""

import copy
import io
import pickle
import unittest
from collections import OrderedDict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch.testing._internal.common_device_type import dtypes, instantiate_device_type_tests

from op_tools.torch_tests.against_cpu import AgainstCpu, facts

try:
    import safetensors.torch as safetensors
except ImportError:
    safetensors = None

EVERY = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.uint8,
    torch.int64,
    torch.bool,
    torch.complex64,
)


def reloaded(value: Any, where: Any = None, weights_only: bool = True, zipped: bool = True) -> Any:
    buffer = io.BytesIO()
    torch.save(value, buffer, _use_new_zipfile_serialization=zipped)
    buffer.seek(0)
    return torch.load(buffer, map_location=where, weights_only=weights_only)


def shared(first: torch.Tensor, second: torch.Tensor) -> bool:
    return first.untyped_storage()._cdata == second.untyped_storage()._cdata


class TestSaveAndLoad(AgainstCpu):
    @dtypes(*EVERY)
    def test_every_dtype(self, device: str, dtype: torch.dtype) -> None:
        def program(d: str) -> Any:
            tensor = torch.arange(12, device=d).reshape(3, 4).to(dtype)
            found = [reloaded(tensor), reloaded(tensor, zipped=False), reloaded(tensor[1:, ::2]), reloaded(tensor[:0])]
            on_device = [value.device == tensor.device for value in found]
            return [facts(value) for value in found], on_device

        self.same(device, program)

    def test_map_location(self, device: str) -> None:
        def program(d: str, source: str, where: Any) -> Any:
            tensor = torch.arange(4.0, device=d if source == "device" else "cpu")
            where = d if where == "device" else where
            found = reloaded({"a": tensor, "b": [tensor[1:]]}, where)
            expected = d if (where in (d, None) and source == "device") or where == d else "cpu"
            return found, found["a"].device.type == torch.device(expected).type, shared(found["a"], found["b"][0])

        places = {
            "none": None,
            "cpu": "cpu",
            "the device": "device",
            "torch.device": torch.device("cpu"),
            "function": lambda storage, location: storage,
        }
        self.all_same(
            device,
            [
                (f"{source} to {name}", lambda d, s=source, w=where: program(d, s, w))
                for source in ("device", "cpu")
                for name, where in places.items()
            ],
        )
        moved = reloaded(torch.ones(2, device=device), {device: "cpu"})
        self.assertEqual(moved.device.type, "cpu")
        with self.assertRaises(RuntimeError):
            reloaded(torch.ones(2), device.partition(":")[0] + ":99")

    def test_storages_and_views(self, device: str) -> None:
        def program(d: str) -> Any:
            base = torch.arange(10.0, device=d)
            found = reloaded([base, base[2:5], base.view(2, 5).t(), base.clone()])
            same = [shared(found[0], other) for other in found[1:]]
            found[0].zero_()
            return [facts(value) for value in found], same

        self.same(device, program)

    def test_kept_properties(self, device: str) -> None:
        def program(d: str) -> Any:
            leaf = torch.ones(2, device=d, requires_grad=True)
            parameter = torch.nn.Parameter(torch.zeros(3, device=d), requires_grad=False)
            bits = [torch.ones(2, dtype=torch.complex64, device=d).conj(), torch._neg_view(torch.ones(2, device=d))]
            ordered = OrderedDict([("b", leaf), ("a", parameter)])
            found = reloaded([leaf, parameter, bits, ordered, torch.Size([2]), torch.float16])
            return (
                [facts(found[0]), facts(found[1]), type(found[1]).__name__],
                [facts(bit) for bit in found[2]],
                list(found[3]),
                found[4:],
            )

        self.same(device, program)

    def test_gradient_and_copies(self, device: str) -> None:
        def program(d: str) -> Any:
            leaf = torch.ones(2, device=d, requires_grad=True)
            (leaf * 3).sum().backward()
            copied = copy.deepcopy(leaf)
            pickled = pickle.loads(pickle.dumps(leaf.detach()))
            base = torch.arange(4.0, device=d)
            pair = copy.deepcopy([base, base[1:]])
            return copied.grad, shared(copied, leaf), facts(pickled), shared(pair[0], pair[1]), copy.copy(base)

        self.same(device, program)

    def test_far_offsets(self, device: str) -> None:
        def program(d: str) -> Any:
            base = torch.zeros(3_000_000, device=d)
            base[-2:] = torch.tensor([5.0, 6.0], device=d)
            return facts(reloaded(base[-2:])), facts(reloaded(base[-3:].clone()))

        self.same(device, program)

    def test_files_and_maps(self, device: str) -> None:
        def program(d: str) -> Any:
            with TemporaryDirectory() as folder:
                path = Path(folder) / "tensors.pt"
                torch.save({"x": torch.arange(6.0, device=d), "y": torch.ones(2, device=d, dtype=torch.bfloat16)}, path)
                whole = torch.load(path, weights_only=True)
                mapped = torch.load(path, weights_only=True, mmap=True, map_location="cpu")
                with torch.device("meta"):
                    shapes = torch.load(path, weights_only=True)
                with torch.serialization.skip_data():
                    torch.save(whole, Path(folder) / "empty.pt")
                return whole, mapped, [tuple(value.shape) for value in shapes.values()]

        self.same(device, program)

    def test_models_and_optimizers(self, device: str) -> None:
        def program(d: str) -> Any:
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 4)).to(d)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            source = torch.linspace(-1, 1, 15).reshape(5, 3).to(d)

            def step(network: Any, adam: Any) -> None:
                adam.zero_grad()
                network(source).square().sum().backward()
                adam.step()

            step(model, optimizer)
            kept = reloaded({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
            other = copy.deepcopy(model)
            with torch.no_grad():
                for parameter in other.parameters():
                    parameter.fill_(9)
            again = torch.optim.Adam(other.parameters(), lr=0.5)
            other.load_state_dict(kept["model"])
            again.load_state_dict(kept["optimizer"])
            step(other, again)
            step(model, optimizer)
            return model.state_dict(), other.state_dict(), reloaded(model, weights_only=False).state_dict()

        self.same(device, program)

    def test_what_is_refused(self, device: str) -> None:
        def unsafe(d: str) -> Any:
            reloaded([torch.ones(2, device=d), pickle.Unpickler])

        def cut(d: str) -> Any:
            buffer = io.BytesIO()
            torch.save(torch.ones(100, device=d), buffer)
            torch.load(io.BytesIO(buffer.getvalue()[:200]), weights_only=True)

        self.all_same(device, [("unsafe", unsafe), ("cut", cut)])

    def test_storages(self, device: str) -> None:
        def program(d: str) -> Any:
            storage = torch.arange(4, dtype=torch.uint8, device=d).untyped_storage()
            kept = reloaded(storage, weights_only=False)
            back = torch.empty(0, dtype=torch.uint8, device=d).set_(kept)
            there = storage.device.type == torch.device(d).type
            return back, storage.nbytes(), len(storage.clone()), storage.cpu().tolist(), there

        self.same(device, program)

    @unittest.skipIf(safetensors is None, "safetensors is not installed")
    def test_safetensors(self, device: str) -> None:
        def program(d: str) -> Any:
            tensors = {str(kind): torch.arange(6, device=d).to(kind) for kind in EVERY if not kind.is_complex}
            found = safetensors.load(safetensors.save(tensors))
            with TemporaryDirectory() as folder:
                path = Path(folder) / "tensors.safetensors"
                safetensors.save_file(tensors, path)
                # The format's own loader knows the devices of a list of its own.
                there = {name: value.to(d) for name, value in safetensors.load_file(path).items()}
            return sorted(found.items()), sorted(there.items())

        self.same(device, program)


instantiate_device_type_tests(TestSaveAndLoad, globals(), allow_mps=True, allow_xpu=True)

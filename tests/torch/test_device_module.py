"""torch.dipu and torch.accelerator: devices, streams, random numbers, memory, mixed precision, reports."""

import gc
import json
from typing import Any

import pytest


def test_devices(torch: Any) -> None:
    dipu = torch.dipu
    dipu.init()
    assert dipu.is_available() and dipu.is_initialized() and dipu.device_count() >= 1
    assert torch.ones(1, device="dipu").is_dipu and torch.ones(1).dipu().device == torch.device("dipu", 0)
    with dipu.device(0):
        assert dipu.current_device() == 0
    for wrong in (9, "dipu:9"):
        with pytest.raises(RuntimeError, match="there is no device dipu:9; this machine has"):
            dipu.set_device(wrong)
    with pytest.raises(ValueError, match="expected a dipu device, not 'cpu'"):
        dipu.set_device("cpu")


def test_the_current_device_places_tensors(torch: Any) -> None:
    if torch.dipu.device_count() < 2:
        pytest.skip("one device")
    with torch.dipu.device(1):
        assert torch.empty(1, device="dipu").device.index == 1
        assert torch.empty(1, device="dipu:0").device.index == 0
        assert (torch.ones(1, device="dipu:0") + 1).device.index == 0
    assert torch.empty(1, device="dipu").device.index == 0


def test_accelerator(torch: Any) -> None:
    accelerator = torch.accelerator
    assert accelerator.is_available() and accelerator.current_accelerator().type == "dipu"
    assert accelerator.device_count() == torch.dipu.device_count()
    accelerator.set_device_index(0)
    accelerator.synchronize()
    accelerator.empty_cache()
    assert accelerator.current_stream() == torch.dipu.current_stream()
    assert accelerator.memory_allocated() == torch.dipu.memory_allocated()


def test_streams_and_events(torch: Any) -> None:
    stream, default = torch.dipu.Stream(), torch.dipu.current_stream()
    start, end = torch.dipu.Event(enable_timing=True), torch.dipu.Event(enable_timing=True)
    with torch.dipu.stream(stream):
        assert torch.dipu.current_stream() == stream
        start.record()
        x = torch.ones(1000, device="dipu") + 1
        end.record()
    assert torch.dipu.current_stream() == default == torch.dipu.default_stream()
    default.wait_event(end)
    assert x.cpu().sum().item() == 2000
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0 and isinstance(end, torch.dipu.Event)
    assert torch.dipu.Stream(priority=-1) != torch.dipu.Stream(priority=-1)
    torch.dipu.Event().record()


def test_memory_of_another_stream_is_reused_only_when_it_is_done(torch: Any) -> None:
    stream = torch.dipu.Stream()
    x = torch.empty(5000, device="dipu")
    address = x.data_ptr()
    x.record_stream(stream)
    with torch.dipu.stream(stream):
        y = x + 1
    del x
    torch.dipu.synchronize()
    assert y.shape == (5000,) and torch.empty(5000, device="dipu").data_ptr() == address


def test_memory_figures(torch: Any) -> None:
    dipu = torch.dipu
    gc.collect()
    before = dipu.memory_allocated()
    x = torch.empty(1000, 1000, device="dipu")
    assert 4_000_000 <= dipu.memory_allocated() - before <= 5_000_000
    assert dipu.memory_reserved() >= dipu.memory_allocated()
    assert any(block["address"] == x.data_ptr() and block["state"] == "allocated" for block in dipu.memory_snapshot())
    address = x.data_ptr()
    del x
    assert dipu.memory_allocated() == before and dipu.max_memory_allocated() >= before + 4_000_000
    dipu.empty_cache()
    assert all(block["address"] != address for block in dipu.memory_snapshot())
    dipu.reset_peak_memory_stats()
    assert dipu.max_memory_allocated() == before
    assert "out of memory: 0" in dipu.memory_summary()


def test_random_numbers(torch: Any) -> None:
    torch.manual_seed(3)
    first = torch.rand(4, device="dipu").cpu()
    torch.dipu.manual_seed(3)
    assert torch.equal(torch.rand(4, device="dipu").cpu(), first)
    state = torch.dipu.get_rng_state()
    second = torch.rand(4, device="dipu").cpu()
    assert not torch.equal(first, second)
    torch.dipu.set_rng_state(state)
    assert torch.equal(torch.rand(4, device="dipu").cpu(), second)
    generator = torch.Generator(device="dipu").manual_seed(7)
    own = torch.randn(3, device="dipu", generator=generator).cpu()
    assert torch.equal(torch.randn(3, device="dipu", generator=generator.manual_seed(7)).cpu(), own)
    with torch.random.fork_rng(devices=[0], device_type="dipu"):
        torch.rand(3, device="dipu")
    with pytest.raises(RuntimeError, match="16 bytes"):
        torch.dipu.set_rng_state(torch.zeros(3, dtype=torch.uint8))


def test_mixed_precision(torch: Any) -> None:
    module = torch.nn.Linear(4, 4).to("dipu")
    scaler = torch.amp.GradScaler("dipu")
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    with torch.autocast("dipu", dtype=torch.bfloat16):
        y = module(torch.ones(2, 4, device="dipu"))
    assert y.dtype == torch.bfloat16
    before = module.weight.detach().clone()
    scaler.scale(y.float().sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(module.weight.cpu(), before.cpu())


def test_strict_fallback(torch: Any) -> None:
    fallback = torch.dipu.fallback
    x = torch.tensor([1.0, 2.0]).to("dipu")
    with fallback.strict():
        with pytest.raises(NotImplementedError, match=r"aten::lgamma.* would fall back to the CPU \(no kernel\)"):
            torch.lgamma(x)
        fallback.allow("aten::lgamma", "aten::lgamma.out")
        torch.lgamma(x)
        fallback.allow()
    fallback.reset()
    torch.lgamma(x)
    assert [row.count for row in fallback.report() if row.operator.startswith("aten::lgamma")] == [1]


def test_a_fallback_for_the_sake_of_the_arguments_does_not_blame_a_kernel(torch: Any) -> None:
    fallback, x = torch.dipu.fallback, torch.rand(4, 3, device="dipu")
    fallback.reset()
    torch._C._nn.linear(x, x[0], out=torch.empty(4, device="dipu"))  # the contract's weight is a matrix
    torch._C._nn.linear(x, torch.eye(3, device="dipu"), out=x)
    torch.softmax(x, 0, dtype=torch.float64)
    pictures, grid = x.view(1, 1, 4, 3), torch.rand(1, 2, 2, 2, device="dipu")
    torch.nn.functional.grid_sample(pictures, grid, padding_mode="reflection", align_corners=False)
    causes = {row.operator: row.cause for row in fallback.report()}
    assert causes == dict.fromkeys(("aten::linear.out", "aten::grid_sampler_2d"), "no function for these arguments")


def test_forced_fallback(torch: Any) -> None:
    fallback, x = torch.dipu.fallback, torch.ones(3, device="dipu")
    assert "add.Tensor" in fallback.set(r"add\..*, mm")
    fallback.reset()
    assert (x + x).cpu().tolist() == [2, 2, 2]
    [row] = fallback.report()
    assert (row.operator, row.cause, row.count, row.bytes) == ("aten::add.Tensor", "forced", 1, 36)
    assert row.seconds > 0
    assert fallback.set() == []
    fallback.reset()
    x + x
    assert fallback.report() == []
    with pytest.raises(ValueError, match=r"'\(' is not a regular expression"):
        fallback.set("(")


def test_what_a_tool_runs_on_the_cpu_is_counted_beside_the_backend_s_own(torch: Any) -> None:
    fallback, x = torch.dipu.fallback, torch.ones(3, device="dipu")
    fallback.set("add.Tensor")
    fallback.reset()
    x + x
    fallback.set()
    fallback.add("aten::add.Tensor", "forced", bytes=4, seconds=0.5)
    for _ in range(3):
        fallback.add("aten::mm", "forced", bytes=2, seconds=0.25)
    first, second = fallback.report()
    assert (first.operator, first.count, first.bytes, first.seconds) == ("aten::mm", 3, 6, 0.75)
    assert (second.operator, second.count, second.bytes) == ("aten::add.Tensor", 2, 40) and second.seconds > 0.5
    fallback.reset()
    assert fallback.report() == []


def test_a_composite_operator_is_forced_as_a_whole(torch: Any) -> None:
    fallback = torch.dipu.fallback
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, 6, generator=generator)
    weight = torch.randn(6, generator=generator)
    ours = weight.to("dipu").requires_grad_()
    wanted = weight.clone().requires_grad_()
    torch.nn.functional.layer_norm(x, (6,), wanted).square().sum().backward()
    matches = set(fallback.set(" layer_norm , _foreach_mul_.List"))
    assert {"layer_norm", "_foreach_mul_.List", "_foreach_mul.List"} <= matches
    assert {name.partition(".")[0].rstrip("_") for name in matches} == {"layer_norm", "_foreach_mul"}
    try:
        fallback.reset()
        torch.nn.functional.layer_norm(x.to("dipu"), (6,), ours).square().sum().backward()
        assert [row.operator for row in fallback.report()] == ["aten::layer_norm"]
        torch.testing.assert_close(ours.grad.cpu(), wanted.grad)
        fallback.reset()
        values = [torch.ones(2, device="dipu"), torch.ones(3, device="dipu")]
        torch._foreach_mul_(values, [value * 4 for value in values])
        assert [value.cpu().tolist() for value in values] == [[4, 4], [4, 4, 4]]
        assert "aten::_foreach_mul_.List" in [row.operator for row in fallback.report()]
    finally:
        fallback.set()
    fallback.reset()
    torch.nn.functional.layer_norm(x.to("dipu"), (6,), ours).sum().backward()
    assert fallback.report() == []


def test_a_denied_fallback_is_an_error(torch: Any) -> None:
    fallback, x = torch.dipu.fallback, torch.ones(2, device="dipu")
    fallback.deny("lgamma.*")
    try:
        with pytest.raises(NotImplementedError) as raised:
            torch.lgamma(x)
    finally:
        fallback.deny()
    text = "aten::lgamma.out would fall back to the CPU (no kernel), which torch.dipu.fallback.deny forbids"
    assert str(raised.value).splitlines()[0] == text
    assert torch.lgamma(x).cpu().tolist() == [0, 0]


def test_comparison_and_dump(torch: Any, capfd: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    debug, x = torch.dipu.debug, torch.ones(3, device="dipu")
    debug.reset_comparisons()
    torch.dipu.autocompare(ops=r"add.*", on_mismatch="raise")
    x.add_(x + x)
    torch.dipu.autocompare(ops="")
    rows = {row.operator: (row.runs, row.differences, row.worst) for row in debug.comparisons()}
    assert rows == {"aten::add.Tensor": (1, 0, None), "aten::add_.Tensor": (1, 0, None)}
    eye = torch.eye(2).to("dipu")
    debug.dump("mm", level=1)
    torch.mm(eye, eye)
    assert capfd.readouterr().err == "dipu: aten::mm\n"
    debug.dump("mm")
    torch.mm(eye, eye)
    assert "  self: Tensor[2, 2] Float dipu:0 strides [2, 1]\n" in capfd.readouterr().err
    debug.dump("mm", level=3, format="json", path=tmp_path / "calls.jsonl")
    torch.mm(eye, eye)
    debug.dump()
    call = json.loads((tmp_path / "calls.jsonl").read_text())
    assert call["op"] == "aten::mm"
    assert call["args"]["self"] == {
        "dtype": "Float",
        "shape": [2, 2],
        "stride": [2, 1],
        "offset": 0,
        "device": "dipu:0",
        "values": [1, 0, 0, 1],
    }
    with pytest.raises(ValueError, match="the level of a dump is 0, 1, 2 or 3, not 4"):
        debug.dump("mm", level=4)
    with pytest.raises(ValueError, match="on_mismatch is 'log', 'raise' or 'dump', not 'stop'"):
        torch.dipu.autocompare(ops="mm", on_mismatch="stop")


def test_ways_to_choose_the_device(torch: Any) -> None:
    assert torch.get_device_module("dipu") is torch.dipu is torch.get_device_module()
    with torch.device("dipu"):
        assert torch.empty(2).is_dipu and torch.nn.Linear(2, 2).weight.is_dipu
    torch.set_default_device("dipu")
    try:
        assert torch.tensor([1.0]).is_dipu and torch.get_default_device().type == "dipu"
    finally:
        torch.set_default_device(None)
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).dipu()
    assert all(tensor.is_dipu for tensor in module.state_dict().values())
    storage = torch.arange(3).untyped_storage().dipu()
    assert storage.is_dipu and storage.device == torch.device("dipu", 0) and storage.cpu().tolist()[0] == 0


def test_what_devices_say_of_themselves(torch: Any) -> None:
    dipu = torch.dipu
    properties = dipu.get_device_properties("dipu:0")
    assert properties.name == dipu.get_device_name(0) and properties.total_memory == dipu.mem_get_info()[1]
    assert dipu.get_device_capability() == (properties.major, properties.minor)
    assert dipu.is_bf16_supported() and not dipu.is_tf32_supported() and dipu.get_arch_list() == []
    assert dipu.device_memory_used() == properties.total_memory - dipu.mem_get_info()[0]
    nested = dipu.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] == dipu.memory_allocated()
    assert dipu.get_allocator_backend() == "native" and not dipu.is_current_stream_capturing()


def test_the_supported_dtypes_are_those_that_torch_converts(torch: Any) -> None:
    def converts(dtype: Any, device: str) -> bool:
        try:
            return bool(torch.empty(2, dtype=dtype, device=device).to(torch.float32).to(dtype).dtype == dtype)
        except RuntimeError:
            return False

    dtypes = {each for each in vars(torch).values() if isinstance(each, torch.dtype)}
    supported = torch.accelerator.get_device_capability("dipu:0")["supported_dtypes"]
    assert torch.int4 not in supported and torch.uint16 in supported and torch.float8_e8m0fnu in supported
    assert {each for each in dtypes if converts(each, "dipu")} == supported
    assert {each for each in dtypes if converts(each, "cpu")} == supported


def test_streams_are_those_of_the_module(torch: Any) -> None:
    dipu = torch.dipu
    stream = dipu.Stream()
    with dipu.StreamContext(stream):
        assert isinstance(dipu.current_stream(), dipu.Stream) and dipu.current_stream() == stream
    assert isinstance(dipu.default_stream(), dipu.Stream) and dipu.current_stream() == dipu.default_stream()
    with stream:  # as torch.Stream itself does it
        assert dipu.current_stream() == stream
    event = stream.record_event()
    dipu.current_stream().wait_event(event)
    event.synchronize()
    with dipu.stream(None):
        assert dipu.current_stream() == dipu.default_stream()


def test_checkpointing_draws_the_same_random_numbers_again(torch: Any) -> None:
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(64, device="dipu", requires_grad=True)

    def dropped(x: Any) -> Any:
        return torch.nn.functional.dropout(x * 2, 0.5)

    for reentrant in (False, True):
        x.grad = None
        y = checkpoint(dropped, x, use_reentrant=reentrant)
        torch.rand(3, device="dipu")
        y.sum().backward()
        # The gradient is 4 where the output is: the second drawing dropped the same elements.
        assert torch.equal(x.grad.cpu(), y.detach().cpu())
        assert 0 < (y == 0).sum().item() < 64


@pytest.mark.parametrize("workers", [0, 1])
def test_loaders_pin_memory(torch: Any, workers: int) -> None:
    dataset = torch.utils.data.TensorDataset(torch.arange(8.0))
    loader = torch.utils.data.DataLoader(dataset, batch_size=4, pin_memory=True, num_workers=workers)
    batches = [batch for (batch,) in loader]
    assert all(batch.is_pinned() for batch in batches)
    total = sum(batch.to("dipu", non_blocking=True).sum() for batch in batches)
    assert total.item() == 28


def test_exchanging_devices(torch: Any) -> None:
    before = torch.dipu._exchange_device(torch.dipu.device_count() - 1)
    assert torch.dipu._exchange_device(before) == torch.dipu.device_count() - 1
    assert torch.dipu._maybe_exchange_device(-1) == before == torch.dipu.current_device()

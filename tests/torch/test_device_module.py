"""torch.dipu and torch.accelerator: devices, streams, random numbers, memory, mixed precision, reports."""

import gc
from typing import Any

import pytest


def test_devices(torch: Any) -> None:
    dipu = torch.dipu
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


def test_forced_fallback_and_comparison(torch: Any, capfd: pytest.CaptureFixture[str]) -> None:
    debug, x = torch.dipu.debug, torch.ones(3, device="dipu")
    assert "add.Tensor" in debug.force_fallback(r"add\..*")
    torch.dipu.fallback.reset()
    assert (x + x).cpu().tolist() == [2, 2, 2]
    assert [(row.operator, row.cause) for row in torch.dipu.fallback.report()] == [("aten::add.Tensor", "forced")]
    assert debug.force_fallback("") == []
    torch.dipu.fallback.reset()
    debug.reset_comparisons()
    debug.compare(r"add.*", raises=True)
    x.add_(x + x)
    debug.compare("")
    rows = {row.operator: (row.runs, row.differences) for row in debug.comparisons()}
    assert rows == {"aten::add.Tensor": (1, 0), "aten::add_.Tensor": (1, 0)}
    debug.dump("mm", 2)
    torch.mm(torch.eye(2).to("dipu"), torch.eye(2).to("dipu"))
    debug.dump("")
    assert "self: Tensor[2, 2] Float dipu:0 strides [2, 1] min 0 max 1 mean 0.5" in capfd.readouterr().err
    with pytest.raises(RuntimeError, match=r"'\(' is not a regular expression"):
        debug.dump("(")

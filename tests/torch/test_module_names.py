"""torch.dipu offers what the modules of torch's other devices offer, but for a list of names, each with its reason."""

from typing import Any

import pytest

TENSOR_TYPES = "the form of old; Tensor.to and factories take dtype and device"
GRAPHS = "torch.accelerator.Graph"
SENSORS = "the contract of vendors has no sensors"
POOLS = "there is one allocator, whose blocks belong to streams"
LIBRARIES = "a library or a tool of that vendor's own"
OLD = "deprecated there"

LEFT_OUT = {
    **dict.fromkeys(
        [
            f"{kind}{what}"
            for kind in ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
            for what in ("Tensor", "Storage")
        ],
        TENSOR_TYPES,
    ),
    **dict.fromkeys(["ComplexDoubleStorage", "ComplexFloatStorage"], TENSOR_TYPES),
    **dict.fromkeys(
        ["CUDAGraph", "MTIAGraph", "XPUGraph", "graph", "graph_pool_handle", "graphs", "export_dot"], GRAPHS
    ),
    **dict.fromkeys(["make_graphed_callables", "export_graph_data", "graph_annotations"], GRAPHS),
    **dict.fromkeys(["clock_rate", "memory_usage", "power_draw", "temperature", "utilization"], SENSORS),
    **dict.fromkeys(["CUDAPluggableAllocator", "XPUPluggableAllocator", "MemPool", "use_mem_pool"], POOLS),
    "change_current_allocator": POOLS,
    **dict.fromkeys(["caching_allocator_disabled", "caching_allocator_enable"], POOLS),
    **dict.fromkeys(["CudaError", "check_error", "cudaStatus", "cudart", "get_gencode_flags"], LIBRARIES),
    **dict.fromkeys(["current_blas_handle", "current_solver_handle", "has_half", "has_magma"], LIBRARIES),
    **dict.fromkeys(["jiterator", "list_gpu_processes", "nccl", "nvtx", "profiler", "sparse", "tunable"], LIBRARIES),
    "GreenContext": LIBRARIES,
    **dict.fromkeys(["max_memory_cached", "memory_cached"], OLD),
    **dict.fromkeys(["reset_max_memory_allocated", "reset_max_memory_cached"], OLD),
    "host_memory_stats_as_nested_dict": "host_memory_stats",
    "get_stream_from_external": "ExternalStream takes the handle",
    **dict.fromkeys(
        ["get_sync_debug_mode", "set_sync_debug_mode"], "torch.dipu.debug.synchronize finds where it fails"
    ),
    "attach_out_of_memory_observer": "the error itself says what memory was used",
    "DeferredCudaCallError": "the device is ready as soon as torch is imported, so that no call is deferred",
    "can_device_access_peer": "the contract of vendors does not say; copies between devices always work",
    "ipc_collect": "tensors of the device are not shared with other processes",
    "snapshot": "memory_snapshot",
}


@pytest.mark.parametrize("device", ["cuda", "xpu", "mtia"])
def test_every_name_is_there_or_left_out_for_a_reason(torch: Any, device: str) -> None:
    names = [name for name in getattr(torch, device).__all__ if not name.startswith("_")]
    assert len(names) > 30
    assert [name for name in names if not hasattr(torch.dipu, name) and name not in LEFT_OUT] == []


def test_nothing_that_is_left_out_is_there(torch: Any) -> None:
    assert [name for name in LEFT_OUT if hasattr(torch.dipu, name)] == []
    assert all(LEFT_OUT.values())


def test_all_is_complete(torch: Any) -> None:
    assert len(set(torch.dipu.__all__)) == len(torch.dipu.__all__)
    assert [name for name in torch.dipu.__all__ if not hasattr(torch.dipu, name)] == []


# Names that torch.accelerator has, with how each is called here; Graph needs what GRAPHS says.
ACCELERATOR = {
    "current_accelerator": lambda a: a.current_accelerator().type == "dipu",
    "current_device_idx": lambda a: a.current_device_index() == 0,
    "current_device_index": lambda a: a.current_device_index() == 0,
    "current_stream": lambda a: a.current_stream(0).device_index == 0,
    "device_count": lambda a: a.device_count() >= 1,
    "device_index": lambda a: a.device_index(0).__enter__() is None,
    "empty_cache": lambda a: a.empty_cache() is None,
    "empty_host_cache": lambda a: a.empty_host_cache() is None,
    "get_device_capability": lambda a: "supported_dtypes" in a.get_device_capability("dipu:0"),
    "get_memory_info": lambda a: 0 < a.get_memory_info()[0] <= a.get_memory_info("dipu:0")[1],
    "is_available": lambda a: a.is_available(),
    "max_memory_allocated": lambda a: a.max_memory_allocated(0) >= a.memory_allocated(0),
    "max_memory_reserved": lambda a: a.max_memory_reserved(0) >= a.memory_reserved(0),
    "memory_allocated": lambda a: a.memory_allocated("dipu:0") >= 0,
    "memory_reserved": lambda a: a.memory_reserved() >= a.memory_allocated(),
    "memory_stats": lambda a: "allocated_bytes.all.current" in a.memory_stats(),
    "reset_accumulated_memory_stats": lambda a: a.reset_accumulated_memory_stats() is None,
    "reset_peak_memory_stats": lambda a: a.reset_peak_memory_stats() is None,
    "set_device_idx": lambda a: a.set_device_index(0) is None,
    "set_device_index": lambda a: a.set_device_index("dipu:0") is None,
    "set_stream": lambda a: a.set_stream(a.current_stream()) is None,
    "synchronize": lambda a: a.synchronize(0) is None,
}


def test_accelerator_offers_nothing_else(torch: Any) -> None:
    assert set(torch.accelerator.__all__) - set(ACCELERATOR) <= {"Graph"}


@pytest.mark.parametrize("name", ACCELERATOR)
def test_accelerator(torch: Any, name: str) -> None:
    if not hasattr(torch.accelerator, name):
        pytest.skip("this torch has no such function")
    assert ACCELERATOR[name](torch.accelerator)


def test_accelerator_names_the_devices_that_there_are(torch: Any) -> None:
    for name in ("current_stream", "synchronize", "memory_stats"):
        with pytest.raises(RuntimeError, match="there is no device dipu:9; this machine has"):
            getattr(torch.accelerator, name)(9)

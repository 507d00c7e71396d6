"""Tests that a backend built with AddressSanitizer (`DIOPI_SANITIZER=address`) leaves out, each with its reason."""

SIZES = "each block has the size of its tensor there"
CACHE = "no memory is cached there: it goes back to the chip at once, which waits for its work"
FAULT = "the test makes a fault that AddressSanitizer ends the process for"

LEFT_OUT = {
    "test_exchange.py::test_dlpack_capsules_share_the_memory": SIZES,
    "test_memory.py::test_accelerator_functions": SIZES,
    "test_memory.py::test_memory_without_a_tensor": CACHE,
    "test_memory.py::test_many_sizes_do_not_fill_the_device_with_cached_blocks": CACHE,
    "test_memory.py::test_blocks_are_reused_in_stream_order": CACHE,
    "test_memory.py::test_leaks_are_reported_at_exit_with_the_stack": SIZES,
    "test_memory.py::test_faults_name_both_places": FAULT,
    "test_streams.py::test_without_waiting_the_streams_are_independent": CACHE,
    "test_streams.py::test_a_tensor_may_be_used_by_a_stream_of_another_device": CACHE,
}

"""Tests that a backend built with a sanitizer (`DIOPI_SANITIZER`) leaves out, each with its reason."""

SIZES = "each block has the size of its tensor there"
CACHE = "no memory is cached there: it goes back to the chip at once, which waits for its work"
ADDRESSES = "no run is recorded there: memory that goes back to the chip does not come back at the same address"
FAULT = "the test makes a fault that AddressSanitizer ends the process for"
FORKS = "a forked process may start a thread at the address of one of its parent, for which ThreadSanitizer ends it"

_ADDRESS = {
    "test_exchange.py::test_dlpack_capsules_share_the_memory": SIZES,
    "test_memory.py::test_accelerator_functions": SIZES,
    "test_memory.py::test_memory_without_a_tensor": CACHE,
    "test_memory.py::test_many_sizes_do_not_fill_the_device_with_cached_blocks": CACHE,
    "test_memory.py::test_blocks_are_reused_in_stream_order": CACHE,
    "test_memory.py::test_leaks_are_reported_at_exit_with_the_stack": SIZES,
    "test_memory.py::test_faults_name_both_places": FAULT,
    "test_streams.py::test_without_waiting_the_streams_are_independent": CACHE,
    "test_streams.py::test_a_tensor_may_be_used_by_a_stream_of_another_device": CACHE,
    "dicp/test_replays.py::test_a_training_step_is_recorded_once": ADDRESSES,
    "dicp/test_replays.py::test_other_memory_is_another_record": ADDRESSES,
    "dicp/test_replays.py::test_what_functions_ask_for_stays_with_the_record": ADDRESSES,
    "dicp/test_replays.py::test_the_explanation_counts": ADDRESSES,
}
LEFT_OUT = {
    "address": _ADDRESS,
    "thread": {"test_copies.py::test_a_loader_with_workers_and_pinned_memory": FORKS},
}

"""Plants faults in the portable kernels and the adaptor, and counts which of them the conformance suite sees."""

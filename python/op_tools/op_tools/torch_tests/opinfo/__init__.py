"""torch's own operator samples (OpInfo) on the device dipu against the CPU, in worker processes."""

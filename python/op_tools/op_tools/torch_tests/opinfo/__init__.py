"""torch's own samples of every operator (OpInfo): a device against the CPU."""

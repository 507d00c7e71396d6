"""A run: cases in batches, several processes, what is told meanwhile and kept."""

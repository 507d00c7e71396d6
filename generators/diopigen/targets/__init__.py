"""The outputs of a run: one folder per target, each with a view and `outputs()`."""
